"""Messages as RFC 5424, read back by a parser that knows the grammar of section 6 and nothing of how it was written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message.message import Message, Value
from webhookrx.message.rfc5424 import (
    FACILITIES,
    LONGEST_APP_NAME,
    LONGEST_HOSTNAME,
    LONGEST_MSGID,
    LONGEST_PROCID,
    SEVERITIES,
    SyslogFormat,
    check_sd_id,
    timestamp,
)
from webhookrx.message.template import Template
from webhookrx.testing import make_message

BOM = b"\xef\xbb\xbf"


class Parsed(NamedTuple):
    """A SYSLOG-MSG taken apart."""

    priority: int
    timestamp: str
    hostname: str
    app_name: str
    procid: str
    msgid: str
    elements: list[tuple[str, list[tuple[str, str]]]]
    text: bytes | None


#: The ABNF of section 6, in the order of the RFC.
HEADER = re.compile(
    rb"<(?P<pri>[0-9]{1,3})>(?P<version>[1-9][0-9]{0,2})"
    rb" (?P<time>-|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2}))"
    rb" (?P<host>[\x21-\x7e]{1,255}) (?P<app>[\x21-\x7e]{1,48}) (?P<procid>[\x21-\x7e]{1,128})"
    rb" (?P<msgid>[\x21-\x7e]{1,32}) "
)
SD_NAME = rb"[\x21\x23-\x3c\x3e-\x5c\x5e-\x7e]{1,32}"
ELEMENT = re.compile(rb"\[(" + SD_NAME + rb")")
PARAM = re.compile(rb" (" + SD_NAME + rb')="((?:[^"\\\]]|\\.)*)"', re.DOTALL)


def parse(data: bytes) -> Parsed:
    """Take a SYSLOG-MSG apart; an assertion fails where it breaks the grammar."""
    head = HEADER.match(data)
    assert head is not None, data
    assert head["version"] == b"1"
    assert int(head["pri"]) <= 191
    assert head["pri"] == b"%d" % int(head["pri"])
    elements, position = parse_elements(data, head.end())
    rest = data[position:]
    assert rest == b"" or rest.startswith(b" "), data
    text = rest[1:] if rest else None
    if text is not None and text.startswith(BOM):
        text.decode()  # MSG-UTF8
    return Parsed(
        int(head["pri"]),
        *(head[name].decode("ascii") for name in ("time", "host", "app", "procid", "msgid")),
        elements,
        text,
    )


def parse_elements(data: bytes, position: int) -> tuple[list[tuple[str, list[tuple[str, str]]]], int]:
    """Read STRUCTURED-DATA."""
    if data[position : position + 1] == b"-":
        return [], position + 1
    elements = []
    while element := ELEMENT.match(data, position):
        position = element.end()
        params = []
        while param := PARAM.match(data, position):
            # Section 6.3.3: a backslash before any other character is a backslash.
            value = re.sub(r'\\(["\\\]])', r"\1", param[2].decode())
            params.append((param[1].decode("ascii"), value))
            position = param.end()
        assert data[position : position + 1] == b"]", data
        position += 1
        elements.append((element[1].decode("ascii"), params))
    assert elements, data
    return elements, position


#: Any text that a message may hold.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
VALUES: st.SearchStrategy[Value] = st.one_of(
    TEXTS,
    st.none(),
    st.booleans(),
    st.integers(),
    st.lists(TEXTS, max_size=3),
    st.dictionaries(TEXTS, TEXTS, max_size=2),
)
NAMES = st.one_of(TEXTS, st.sampled_from(["HOST", "PROGRAM", "PID", "MSGID", "MESSAGE", "SOURCEIP"]))
MESSAGES = st.builds(
    Message,
    st.dictionaries(NAMES, VALUES, max_size=8),
    st.integers(0, 4_102_444_800_000_000_000),
)
FORMATS = st.builds(
    SyslogFormat,
    facility=st.integers(0, 23),
    severity=st.integers(0, 7),
    app_name=st.sampled_from([Template.parse(text) for text in ("${PROGRAM:-webhookrx}", "$MESSAGE", "")]),
    text=st.sampled_from([Template.parse(text) for text in ("${MESSAGE}", "$(format-json)", "é $HOST", "")]),
    sd_id=st.sampled_from([None, "meta@32473", "a@1.2.3"]),
    bom=st.booleans(),
    one_line=st.booleans(),
)


class ExampleTests(SynchronousTestCase):
    """Single messages, as bytes."""

    def test_defaults(self) -> None:
        """Without any option it is user.notice from webhookrx, without structured data, its text as it came."""
        self.assertEqual(
            b"<13>1 2026-01-02T03:04:05.678901Z 192.0.2.1 webhookrx - - - hello", SyslogFormat().encode(make_message())
        )

    def test_all_fields(self) -> None:
        """The message of the RFC's first example comes out as it stands there, but for the digits of the time."""
        message = Message(
            {
                "HOST": "mymachine.example.com",
                "PROGRAM": "su",
                "MSGID": "ID47",
                "MESSAGE": "'su root' failed for lonvick on /dev/pts/8",
            },
            1_065_910_455_003_000_000,
        )

        self.assertEqual(
            b"<34>1 2003-10-11T22:14:15.003000Z mymachine.example.com su - ID47 - "
            b"'su root' failed for lonvick on /dev/pts/8",
            SyslogFormat(facility=FACILITIES.index("auth"), severity=SEVERITIES.index("crit")).encode(message),
        )

    def test_structured_data(self) -> None:
        """With an SD-ID all pairs but the text are parameters, in order; three characters of a value are escaped."""
        message = Message({"iut": "3", "MESSAGE": "text", "event Source": 'a"b\\c]d', "id": 1011}, 0)

        self.assertEqual(
            b'<13>1 1970-01-01T00:00:00.000000Z - webhookrx - - [exampleSDID@32473 iut="3" '
            b'event_Source="a\\"b\\\\c\\]d" id="1011"] text',
            SyslogFormat(sd_id="exampleSDID@32473").encode(message),
        )

    def test_long_names(self) -> None:
        """Of a name that is too long for a parameter the end stays; an empty one is an underscore."""
        message = Message({"webhook.pull_request.head.repository.owner.login": "x", "": "y"}, 0)

        parsed = parse(SyslogFormat(sd_id="a@1").encode(message))

        self.assertEqual([("a@1", [("equest.head.repository.owner.login"[-32:], "x"), ("_", "y")])], parsed.elements)

    def test_no_text(self) -> None:
        """An empty text leaves nothing behind the structured data, no blank either."""
        self.assertEqual(
            b"<13>1 2026-01-02T03:04:05.678901Z 192.0.2.1 webhookrx - - -", SyslogFormat().encode(make_message(""))
        )

    def test_mark(self) -> None:
        """Text that is not ASCII begins with a byte order mark, unless that is not wanted; ASCII never does."""
        for bom, text, expected in (
            (True, "é", BOM + "é".encode()),
            (False, "é", "é".encode()),
            (True, "e", b"e"),
        ):
            self.assertEqual(expected, parse(SyslogFormat(bom=bom).encode(make_message(text))).text)

    def test_host_names(self) -> None:
        """A HOST that can't be a HOSTNAME gives way to the address, and never becomes another name."""
        for host, expected in (
            ("web-1.example.com", "web-1.example.com"),
            ("2001:db8::1", "2001:db8::1"),
            ("a b", "192.0.2.1"),
            ("böse", "192.0.2.1"),
            ("a\nb", "192.0.2.1"),
            ("", "192.0.2.1"),
            ("x" * LONGEST_HOSTNAME, "x" * LONGEST_HOSTNAME),
            ("x" * (LONGEST_HOSTNAME + 1), "192.0.2.1"),
        ):
            self.assertEqual(expected, parse(SyslogFormat().encode(make_message(values={"HOST": host}))).hostname)
        self.assertEqual("-", parse(SyslogFormat().encode(Message({}, 0))).hostname)

    def test_fields(self) -> None:
        """What does not fit into a field is cut, and what it may not hold becomes an underscore."""
        message = make_message(values={"PROGRAM": "my prög" + "x" * 90, "PID": "1\n" * 90, "MSGID": "[" * 90})

        parsed = parse(SyslogFormat().encode(message))

        self.assertEqual("my_pr_g" + "x" * (LONGEST_APP_NAME - 7), parsed.app_name)
        self.assertEqual("1_" * (LONGEST_PROCID // 2), parsed.procid)
        self.assertEqual("[" * LONGEST_MSGID, parsed.msgid)

    def test_one_line(self) -> None:
        """For a framing by lines, what ends a line or hides text is escaped in the text and in parameters."""
        message = Message({"k": "a\nb\x00\u2028", "MESSAGE": 'x\r\n\x1b[2J "\\ é'}, 0)

        data = SyslogFormat(sd_id="a@1", one_line=True).encode(message)

        self.assertEqual([("a@1", [("k", r"a\nb\x00\u2028")])], parse(data).elements)
        self.assertEqual(BOM + r'x\r\n\x1b[2J "\ é'.encode(), parse(data).text)

    def test_time(self) -> None:
        """A moment is in UTC; what is less than a microsecond is cut off."""
        for moment, expected in (
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_709_251_199_999_999_999, "2024-02-29T23:59:59.999999Z"),
        ):
            self.assertEqual(expected, timestamp(moment))


class SdIdTests(SynchronousTestCase):
    """Names of structured data."""

    def test_good(self) -> None:
        """A name, an at sign and a number are one, with further numbers, too."""
        for text in ("meta@32473", "a@1.2.3", "x" * 30 + "@1", "a.b-c@0"):
            check_sd_id(text)

    def test_bad(self) -> None:
        """A name of IANA's, a broken or a long one is not, and the error quotes it."""
        for text in (
            *("", "meta", "@1", "a@", "a@b", "a b@1", "a=b@1", 'a"@1'),
            *("a]@1", "é@1", "a@b@1", "x" * 31 + "@1", "a@1\n"),
        ):
            error = self.assertRaises(ValueError, check_sd_id, text)
            self.assertIn(repr(text), str(error))


class GrammarTests(SynchronousTestCase):
    """Whatever a sender chose."""

    @given(MESSAGES, FORMATS)
    def test_grammar(self, message: Message, made: SyslogFormat) -> None:
        """It keeps to the grammar, and priority, time and text are those of the message."""
        parsed = parse(made.encode(message))

        self.assertEqual(made.facility * 8 + made.severity, parsed.priority)
        since_epoch = datetime.fromisoformat(parsed.timestamp) - datetime(1970, 1, 1, tzinfo=UTC)
        self.assertEqual(message.received // 1000, since_epoch // timedelta(microseconds=1))
        if not made.one_line:
            expected = made.text.render(message).encode()
            text = parsed.text or b""
            self.assertEqual(expected, text.removeprefix(BOM) if made.bom and not expected.isascii() else text)
        self.assertEqual(made.sd_id is not None, bool(parsed.elements))

    @given(st.dictionaries(TEXTS.filter(lambda name: name != "MESSAGE"), TEXTS, max_size=6))
    def test_parameters(self, pairs: dict[str, str]) -> None:
        """Every value comes back from structured data as it was, in order."""
        parsed = parse(SyslogFormat(sd_id="a@1").encode(Message({**pairs}, 0)))

        self.assertEqual(list(pairs.values()), [value for _, value in parsed.elements[0][1]])

    @given(MESSAGES, FORMATS)
    def test_lines(self, message: Message, made: SyslogFormat) -> None:
        """For a framing by lines it holds no control character at all, and is one line for any reader."""
        data = SyslogFormat(made.facility, made.severity, made.app_name, made.text, made.sd_id, made.bom, True).encode(
            message
        )

        self.assertIsNone(re.search(rb"[\x00-\x1f\x7f]", data))
        self.assertEqual(1, len(data.decode().splitlines()))
