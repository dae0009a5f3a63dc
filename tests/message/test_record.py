"""Tests for L{webhookrx.message.record}, and for what macros, templates and lines make of such messages."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.message.test_encoders import spelled
from tests.message.test_macros import MOMENT, ZoneTestCase
from webhookrx.message.encoders import decode_stored, encode_line, encode_object, encode_stored
from webhookrx.message.fields import MISSING
from webhookrx.message.macros import DATE_MACROS, macro_value
from webhookrx.message.message import Message, Value
from webhookrx.message.record import (
    field_value,
    is_router_form,
    own_time,
    pairs,
    path_group,
    record_macro,
    syslog_severity,
)
from webhookrx.message.rfc5424 import SyslogFormat
from webhookrx.message.template import Template

#: 2026-01-02T03:04:05.678901234 UTC, a Friday: when it happened. It was received at MOMENT.
OWN = 1_767_323_045_678_901_234

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        _TEXT,
        st.sampled_from([b"1.50", b"-0.0", b"1E400", b"12", b"1" + b"0" * 300]).map(msgspec.Raw),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=10,
)
_NAMES = st.sampled_from(
    "body attributes time_unix_nano severity_number connector connection router host product id".split()  # noqa: SIM905
)
_PARTS: st.SearchStrategy[Any] = st.dictionaries(_NAMES, _VALUES, max_size=5)
_MESSAGES = st.builds(
    lambda log, meta, received: Message({"log": log, "meta": meta}, received),
    _PARTS,
    _PARTS,
    st.integers(0, (1 << 63) - 1),
)


def a_message(**log: Any) -> Message:
    """Return a message of the router form, with C{log} changed as given."""
    return Message(
        {
            "log": {
                "body": {"user": "ann", "n": [1, 2]},
                "attributes": {"webhook.query.team": "a", "webhook.path.PID": "77", "webhook.path.DOOR": "d1"},
                "observed_time_unix_nano": MOMENT,
                "time_unix_nano": 0,
                "severity_number": 0,
                "severity_text": "",
                **log,
            },
            "meta": {
                "connector": {
                    "type": "webhook",
                    "name": "r1-web-in",
                    "port": 8443,
                    "labels": {"product": "webhook", "vendor": "generic"},
                },
                "connection": {"src_ip": "2001:db8::1", "src_port": 40000, "transport": "https", "bytes": 64},
                "router": {"name": "r1", "labels": {}},
                "host": {"name": "web1"},
                "id": "0001",
                "product": "doors",
            },
        },
        MOMENT,
    )


class FormTests(SynchronousTestCase):
    """Tests for L{is_router_form}."""

    def test_told(self) -> None:
        """Two objects by these names, and nothing beside them."""
        table: list[tuple[dict[str, Value], bool]] = [
            ({"log": {}, "meta": {}}, True),
            ({"meta": {}, "log": {}}, True),
            ({"log": {}, "meta": {}, "MESSAGE": "x"}, False),
            ({"log": {}}, False),
            ({"log": {}, "MESSAGE": "x"}, False),
            ({"log": {}, "meta": "x"}, False),
            ({}, False),
        ]
        for values, expected in table:
            self.assertIs(is_router_form(values), expected, values)


class ReadingTests(SynchronousTestCase):
    """Tests for single things in a message."""

    def test_severity(self) -> None:
        """Severities of OpenTelemetry are those of syslog that mean the same; what is none of them is unknown."""
        table: list[tuple[Any, int | None]] = [
            *((number, 7) for number in range(1, 9)),
            (9, 6),
            *((number, 5) for number in (10, 11, 12)),
            *((number, 4) for number in range(13, 17)),
            *((number, 3) for number in range(17, 21)),
            (21, 2),
            *((22, 1), (23, 1)),
            (24, 0),
            *((number, None) for number in (0, -1, 25, "9", True, None)),
        ]
        for number, expected in table:
            self.assertEqual(syslog_severity({"log": {"severity_number": number}}), expected, number)
        self.assertIsNone(syslog_severity({}))

    def test_time(self) -> None:
        """The message's own time is nanoseconds that can be; else it is not known."""
        table: list[tuple[Any, int]] = [(OWN, OWN), (0, 0), (-5, 0), (1 << 63, 0), ("1", 0), (True, 0), (None, 0)]
        for moment, expected in table:
            self.assertEqual(own_time({"log": {"time_unix_nano": moment}}), expected, moment)
        self.assertEqual(own_time({}), 0)

    def test_record_macro(self) -> None:
        """Named groups of the path and the places of macros are found; other names have none."""
        values = a_message().values
        self.assertEqual(path_group("PID", values), "77")
        self.assertIsNone(path_group("HOST", values))
        self.assertEqual(record_macro("HOST", values), "web1")
        self.assertIs(record_macro("MSGID", values), MISSING)
        self.assertIs(record_macro("HOST", {"log": {}, "meta": {"host": "x"}}), MISSING)

    def test_fields(self) -> None:
        """A field is found by its path, an attribute by its name; zero and empty text are values."""
        values = a_message(zero=0, empty="").values
        table: list[tuple[str, Value]] = [
            ("log.body.user", "ann"),
            ("log.body.n.1", 2),
            ("log.zero", 0),
            ("log.empty", ""),
            ("meta.connector.labels.vendor", "generic"),
            ("log.attributes.webhook.query.team", "a"),
            ("webhook.query.team", "a"),
            ("log.no", None),
            ("no", None),
            ("", None),
        ]
        for name, expected in table:
            self.assertEqual(field_value(name, values), expected, name)


class PairsTests(SynchronousTestCase):
    """Tests for L{pairs}."""

    def test_order(self) -> None:
        """Attributes come by their names, then what is below meta by its path, in order; lists stay whole."""
        values: dict[str, Value] = {
            "log": {"body": "x", "attributes": {"a.b": "1", "c": {"d": None}}},
            "meta": {"connector": {"name": "n", "labels": {"team": "t"}}, "ip": ["1", "2"], "empty": {}},
        }
        self.assertEqual(
            list(pairs(values, 32)),
            [
                *(("a.b", "1"), ("c.d", None)),
                *(("connector.name", "n"), ("connector.labels.team", "t"), ("ip", ["1", "2"])),
            ],
        )

    def test_long_names(self) -> None:
        """Only the end of a long name is kept on the way down, so that depth costs no more than length."""
        inner: dict[str, Value] = {"last": 1}
        for _ in range(50):
            inner = {"x" * 1000: inner}
        ((name, value),) = pairs({"log": {}, "meta": {"deep": inner}}, 8)
        self.assertEqual((name, value), ("xxx.last", 1))


class MacroTests(ZoneTestCase):
    """Tests for macros of such messages."""

    def test_counterparts(self) -> None:
        """The usual macros mean what stands in their place."""
        table: list[tuple[str, Value]] = [
            ("HOST", "web1"),
            ("FULLHOST", "web1"),
            ("HOST_FROM", "2001:db8::1"),
            ("MESSAGE", '{"user":"ann","n":[1,2]}'),
            ("MSG", '{"user":"ann","n":[1,2]}'),
            ("SOURCEIP", "2001:db8::1"),
            ("SOURCEPORT", 40000),
            ("PEERIP", "2001:db8::1"),
            ("PEERPORT", 40000),
            ("IP-PROTO", 6),
            ("TRANSPORT", "https"),
            ("RAWMSG_SIZE", 64),
            ("RCPTID", "0001"),
            ("SOURCE", "r1-web-in"),
            ("PROGRAM", "doors"),
            ("PID", "77"),
            ("DOOR", "d1"),
            ("MSGHDR", "doors[77]: "),
            ("MSGID", None),
            ("TAGS", None),
            ("SEQNUM", None),
            ("FACILITY", "user"),
            ("LEVEL", "notice"),
            ("LEVEL_NUM", 5),
            ("PRI", 13),
            ("PRIORITY", "notice"),
            ("TAG", "0d"),
            ("BSDTAG", "5B"),
            ("log", a_message().values["log"]),
            ("meta.router.name", "r1"),
        ]
        for name, expected in table:
            self.assertEqual(macro_value(name, a_message()), expected, name)

    def test_severity(self) -> None:
        """Those of the severity follow the message's own."""
        message = a_message(severity_number=17)
        table = [("LEVEL", "err"), ("LEVEL_NUM", 3), ("PRI", 11), ("PRIORITY", "err"), ("TAG", "0b"), ("BSDTAG", "3B")]
        for name, expected in table:
            self.assertEqual(macro_value(name, message), expected, name)

    def test_groups(self) -> None:
        """A named group of the path sets a soft macro, and never a hard one."""
        attributes = {"webhook.path.PROGRAM": "p", "webhook.path.MESSAGE": "m", "webhook.path.RCPTID": "x"}
        message = a_message(attributes=attributes)
        for name, expected in (("PROGRAM", "p"), ("MESSAGE", "m"), ("RCPTID", "0001"), ("MSGHDR", "p: ")):
            self.assertEqual(macro_value(name, message), expected, name)

    def test_bodies(self) -> None:
        """A text is itself; a list is JSON, and JSON stays JSON on a terminal."""
        table: list[tuple[Value, Value]] = [
            ("disk full\n", "disk full\n"),
            (["a", "b"], '["a","b"]'),
            ({"a": "\x7f\u2028"}, '{"a":"\\u007f\\u2028"}'),
            (msgspec.Raw(b"1.50"), msgspec.Raw(b"1.50")),
            (None, None),
        ]
        for body, expected in table:
            self.assertEqual(macro_value("MESSAGE", a_message(body=body)), expected)

    def test_dates(self) -> None:
        """Dates are of the message's own time, save those of receipt; of receipt as well when there is none."""
        message, undated = a_message(time_unix_nano=OWN), a_message()
        for name in sorted(DATE_MACROS):
            own = macro_value(name, Message({}, OWN))
            received = macro_value(name, Message({}, MOMENT))
            for moment in ("", "S_"):
                self.assertEqual(macro_value(moment + name, message), own, name)
                self.assertEqual(macro_value(moment + name, undated), received, name)
            for moment in ("R_", "C_", "P_"):
                self.assertEqual(macro_value(moment + name, message), received, name)
        self.assertEqual(macro_value("ISODATE", message), "2026-01-02T03:04:05.678901+00:00")

    def test_templates(self) -> None:
        """Templates reach every field."""
        template = Template.parse("${UNIXTIME} ${log.body.user} ${meta.no:-x} ${webhook.query.team} ${log.body.n}")
        self.assertEqual(template.render_line(a_message(time_unix_nano=OWN)), b"1767323045 ann x a [1,2]\n")


class LineTests(SynchronousTestCase):
    """Tests for lines of such messages."""

    def test_line(self) -> None:
        """A line is the two objects, with no date before them."""
        message = Message({"log": {"body": "a\u2028b"}, "meta": {"id": "1"}}, MOMENT)
        self.assertEqual(encode_line(message), b'{"log":{"body":"a\\u2028b"},"meta":{"id":"1"}}\n')
        self.assertEqual(Template.parse("$(format-json)").render(message), encode_object(message).decode())

    @given(_MESSAGES)
    def test_any(self, message: Message) -> None:
        """Whatever steps have left in it, it is one line of JSON, and every macro has a value."""
        line = encode_line(message)
        self.assertEqual(len(line.decode().splitlines()), 1)
        self.assertEqual(set(json.loads(line, parse_int=str)), {"log", "meta"})
        for name in ("HOST", "MESSAGE", "MSGHDR", "PRI", "IP_PROTO", "S_ISODATE", "R_DATE", "log.body.a", "x.y"):
            macro_value(name, message)
        self.assertTrue(Template.parse("${MESSAGE} ${log} ${HOST}").render_line(message).endswith(b"\n"))

    @given(_MESSAGES)
    def test_stored(self, message: Message) -> None:
        """A spool gives it back exactly: numbers, kinds and order."""
        again = decode_stored(encode_stored(message))
        self.assertEqual(spelled(message.values), spelled(again.values))
        self.assertEqual(message.received, again.received)


class SyslogTests(SynchronousTestCase):
    """Tests for such messages as RFC 5424."""

    def test_own(self) -> None:
        """Severity, time, host and program are the message's own; the text is its body."""
        message = a_message(body="door open", time_unix_nano=OWN, severity_number=17)
        self.assertEqual(
            SyslogFormat().encode(message),
            b"<11>1 2026-01-02T03:04:05.678901Z web1 doors 77 - - door open",
        )

    def test_unknown(self) -> None:
        """What the message does not know is as for others: severity of the settings, time of receipt."""
        message = a_message()
        meta: Any = message.values["meta"]
        del meta["product"], meta["host"]
        received = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(MOMENT // 10**9)).encode()
        self.assertEqual(
            SyslogFormat(facility=16, severity=6).encode(message),
            b"<134>1 " + received + b'.123456Z 2001:db8::1 webhookrx 77 - - {"user":"ann","n":[1,2]}',
        )

    def test_structured_data(self) -> None:
        """Attributes and all of meta are structured data; the body is not."""
        message = Message(
            {
                "log": {"body": {"secret": 1}, "attributes": {"webhook.query.team": 'a"b'}},
                "meta": {"connector": {"labels": {"team": "secops"}}, "id": "7", "tries": [1, 2]},
            },
            0,
        )
        self.assertIn(
            b'[meta@32473 webhook.query.team="a\\"b" connector.labels.team="secops" id="7" tries="[1,2\\]"]',
            SyslogFormat(sd_id="meta@32473").encode(message),
        )

    @given(_MESSAGES)
    def test_any(self, message: Message) -> None:
        """Whatever steps have left in it, it can be sent on one line."""
        data = SyslogFormat(sd_id="a@1", one_line=True).encode(message)
        self.assertEqual(len(data.decode().splitlines()), 1)
