"""Tests for L{webhookrx.message.macros}."""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message import macros
from webhookrx.message.macros import canonical, is_hard_macro, is_reserved, isodate, macro_value, value_text
from webhookrx.message.message import Message, Value

#: 2026-11-20T11:05:07.123456789 UTC, a Friday.
MOMENT = 1_795_172_707_123_456_789

NANOSECONDS = 1_000_000_000


def nanoseconds(text: str) -> int:
    """Return a moment, given in UTC without an offset, as nanoseconds since the epoch."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * NANOSECONDS


class ZoneTestCase(SynchronousTestCase):
    """Runs in a time zone of its own."""

    def setUp(self) -> None:
        self.addCleanup(time.tzset)
        self.addCleanup(macros._local.cache_clear)
        if "TZ" in os.environ:
            self.addCleanup(os.environ.__setitem__, "TZ", os.environ["TZ"])
        else:
            self.addCleanup(os.environ.pop, "TZ", None)
        self.set_zone("UTC0")

    def set_zone(self, zone: str) -> None:
        """Go to a time zone in POSIX form, which needs no database."""
        os.environ["TZ"] = zone
        time.tzset()
        macros._local.cache_clear()


class NameTests(SynchronousTestCase):
    """Tests for the names of macros."""

    def test_hard(self) -> None:
        """What belongs to the message is hard, dates of every moment and second spellings included."""
        names = (
            "SOURCEIP SOURCEPORT PEERIP PEERPORT DESTIP DESTPORT PROTO PROTO_NAME IP-PROTO IP_PROTO RAWMSG_SIZE"
            " TRANSPORT RCPTID RUNID HOSTID UNIQID LOGHOST SYSUPTIME SEQNUM CONTEXT_ID SDATA TAG TAGS MSGHDR PRI"
            " PRIORITY LEVEL LEVEL_NUM FACILITY FACILITY_NUM BSDTAG DATE R_DATE S_ISODATE C_UNIXTIME P_STAMP HOUR12"
            " AMPM MSEC USEC WEEKDAY WEEK_DAY_NAME R_TZOFFSET ISOWEEK MONTH_WEEK YEAR_DAY"
        )
        for name in names.split():
            with self.subTest(name=name):
                self.assertTrue(is_hard_macro(name))
                self.assertTrue(is_reserved(name))

    def test_not_hard(self) -> None:
        """Soft macros, other cases of hard ones, and names of no macro may be set."""
        for name in (*macros.SOFT_MACROS, "date", "Date", "R_HOST", "X_DATE", "DATE.x", "", "webhook.query", "webhook"):
            with self.subTest(name=name):
                self.assertFalse(is_hard_macro(name))
                self.assertFalse(is_reserved(name))

    def test_reserved(self) -> None:
        """The receiver's own pairs are reserved without being macros."""
        for name in (
            "webhook.headers",
            "webhook.parse_error",
            "webhook.body_base64",
            "webhook.query.",
            "webhook.query.a",
        ):
            with self.subTest(name=name):
                self.assertTrue(is_reserved(name))
                self.assertFalse(is_hard_macro(name))

    def test_special_names_below_a_dot(self) -> None:
        """Every special name that holds a dot begins with C{webhook.}: flattening relies on it."""
        special = macros.HARD_MACROS | macros.RESERVED | macros.ALIASES.keys() | set(macros.RESERVED_PREFIXES)
        self.assertEqual([], [name for name in special if "." in name and not name.startswith("webhook.")])

    def test_canonical(self) -> None:
        """Second names lead to their soft macro, all others to themselves."""
        for name, expected in (
            ("MSG", "MESSAGE"),
            ("MSGONLY", "MESSAGE"),
            ("FULLHOST", "HOST"),
            ("FULLHOST_FROM", "HOST_FROM"),
            ("MESSAGE", "MESSAGE"),
            ("msg", "msg"),
            ("MSGHDR", "MSGHDR"),
        ):
            with self.subTest(name=name):
                self.assertEqual(expected, canonical(name))


class IsodateTests(ZoneTestCase):
    """Tests for L{isodate}."""

    def test_zones(self) -> None:
        """The text has microseconds and the offset of the time zone of the process."""
        for zone, expected in (
            ("UTC0", "2026-11-20T11:05:07.123456+00:00"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-11-20T12:05:07.123456+01:00"),
            ("<+0530>-5:30", "2026-11-20T16:35:07.123456+05:30"),
            ("<-0330>3:30", "2026-11-20T07:35:07.123456-03:30"),
        ):
            self.set_zone(zone)
            with self.subTest(zone=zone):
                self.assertEqual(expected, isodate(MOMENT))

    def test_summer_time(self) -> None:
        """The offset changes with the season, between one second and the next."""
        self.set_zone("CET-1CEST,M3.5.0,M10.5.0/3")
        change = nanoseconds("2026-03-29T01:00:00")
        self.assertEqual("2026-03-29T01:59:59.999999+01:00", isodate(change - 1))
        self.assertEqual("2026-03-29T03:00:00.000000+02:00", isodate(change))

    @given(st.integers(0, nanoseconds("2200-01-01T00:00:00")))
    def test_reads_back(self, moment: int) -> None:
        """ISO 8601 readers find the same microsecond."""
        delta = datetime.fromisoformat(isodate(moment)) - datetime(1970, 1, 1, tzinfo=UTC)
        self.assertEqual(moment // 1000, (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds)


class DateMacroTests(ZoneTestCase):
    """Tests for the macros that follow from the moment of receipt."""

    def test_moment(self) -> None:
        """Each date macro has the collector's format."""
        message = Message({}, MOMENT)
        for name, expected in {
            "AMPM": "AM",
            "DATE": "Nov 20 11:05:07",
            "DAY": "20",
            "FULLDATE": "2026 Nov 20 11:05:07",
            "HOUR": "11",
            "HOUR12": "11",
            "ISODATE": "2026-11-20T11:05:07.123456+00:00",
            "ISOWEEK": "47",
            "MIN": "05",
            "MONTH": "11",
            "MONTH_ABBREV": "Nov",
            "MONTH_NAME": "November",
            "MONTH_WEEK": "3",
            "MSEC": "123",
            "SEC": "07",
            "STAMP": "Nov 20 11:05:07",
            "SYSUPTIME": None,
            "TZ": "+00:00",
            "TZOFFSET": "+00:00",
            "UNIXTIME": 1_795_172_707,
            "USEC": "123456",
            "WEEK": "46",
            "WEEKDAY": "Fri",
            "WEEK_DAY": "6",
            "WEEK_DAY_ABBREV": "Fri",
            "WEEK_DAY_NAME": "Friday",
            "YEAR": "2026",
            "YEAR_DAY": "324",
        }.items():
            for moment in ("", "R_", "S_", "C_", "P_"):
                with self.subTest(name=moment + name):
                    self.assertEqual(expected, macro_value(moment + name, message))

    def test_every_date_macro_is_tried(self) -> None:
        """All date macros but one, which needs a clock, have a value."""
        message = Message({}, MOMENT)
        self.assertEqual({"SYSUPTIME"}, {name for name in macros.DATE_MACROS if macro_value(name, message) is None})

    def test_edges(self) -> None:
        """Single digits, midnight, noon, Sundays and weeks around the new year come out as they should."""
        for moment, name, expected in (
            ("2026-01-02T00:00:00", "DATE", "Jan  2 00:00:00"),
            ("2026-01-02T00:00:00", "DAY", "02"),
            ("2026-01-02T00:00:00", "HOUR12", "12"),
            ("2026-01-02T00:00:00", "AMPM", "AM"),
            ("2026-01-02T12:00:00", "HOUR12", "12"),
            ("2026-01-02T12:00:00", "AMPM", "PM"),
            ("2026-01-02T13:00:00", "HOUR12", "01"),
            ("2026-01-02T13:00:00", "YEAR_DAY", "002"),
            ("2026-01-02T13:00:00", "WEEK", "00"),
            ("2026-01-05T13:00:00", "WEEK", "01"),
            ("2027-01-01T00:00:00", "ISOWEEK", "53"),
            ("2026-11-22T00:00:00", "WEEK_DAY", "1"),
            ("2026-11-22T00:00:00", "WEEK_DAY_NAME", "Sunday"),
            ("2026-11-23T00:00:00", "WEEK_DAY", "2"),
            ("2026-11-28T00:00:00", "WEEK_DAY", "7"),
        ):
            with self.subTest(moment=moment, name=name):
                self.assertEqual(expected, macro_value(name, Message({}, nanoseconds(moment))))

    def test_month_week(self) -> None:
        """Week 1 begins on the first Monday; a month of 31 days that begins on a Sunday has weeks 0 to 5."""
        for day, expected in ((1, "0"), (2, "1"), (8, "1"), (9, "2"), (29, "4"), (30, "5"), (31, "5")):
            with self.subTest(day=day):
                message = Message({}, nanoseconds(f"2023-01-{day:02d}T00:00:00"))
                self.assertEqual(expected, macro_value("MONTH_WEEK", message))

    def test_locale_plays_no_part(self) -> None:
        """Names of months and days are English ones."""
        self.assertEqual(
            "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
            " ".join(
                str(macro_value("MONTH_ABBREV", Message({}, nanoseconds(f"2026-{month:02d}-01T00:00:00"))))
                for month in range(1, 13)
            ),
        )


class MacroValueTests(SynchronousTestCase):
    """Tests for L{macro_value}, dates apart."""

    def check(self, values: dict[str, Value], expected: dict[str, Value]) -> None:
        message = Message(values, MOMENT)
        for name, value in expected.items():
            with self.subTest(name=name):
                self.assertEqual(value, macro_value(name, message))

    def test_pairs(self) -> None:
        """A pair of the message is its own value, under a second name too; no pair is None."""
        self.check(
            {"MESSAGE": "m", "HOST": "h", "a.b": ["x"], ".dot": 1, "n": None},
            {
                "MESSAGE": "m",
                "MSG": "m",
                "MSGONLY": "m",
                "FULLHOST": "h",
                "a.b": ["x"],
                ".dot": 1,
                "n": None,
                "x": None,
            },
        )

    def test_priority(self) -> None:
        """A message that did not come as syslog has facility user and severity notice, in all spellings."""
        self.check(
            {},
            {
                "PRI": 13,
                "PRIORITY": "notice",
                "LEVEL": "notice",
                "LEVEL_NUM": 5,
                "FACILITY": "user",
                "FACILITY_NUM": 1,
                "BSDTAG": "5B",
                "TAG": "0d",
            },
        )

    def test_receiver_wins(self) -> None:
        """A hard macro that the receiver set is used rather than worked out."""
        self.check(
            {"PEERIP": "192.0.2.1", "SOURCEIP": "192.0.2.9", "TAGS": ["t"]}, {"PEERIP": "192.0.2.1", "TAGS": ["t"]}
        )

    def test_peer_without_proxy(self) -> None:
        """Without a proxy between, the peer is the source."""
        self.check(
            {"SOURCEIP": "192.0.2.9", "SOURCEPORT": 4711},
            {"PEERIP": "192.0.2.9", "PEERPORT": 4711, "HOST_FROM": "192.0.2.9", "FULLHOST_FROM": "192.0.2.9"},
        )

    def test_ip_version(self) -> None:
        """The IP version is that of the connection, not of the address that a proxy reports."""
        self.check({"SOURCEIP": "192.0.2.9"}, {"IP-PROTO": 4, "IP_PROTO": 4})
        self.check({"SOURCEIP": "2001:db8::1"}, {"IP-PROTO": 6})
        self.check({"SOURCEIP": "2001:db8::1", "PEERIP": "192.0.2.1"}, {"IP-PROTO": 4})
        self.check({}, {"IP-PROTO": None, "PEERIP": None, "PEERPORT": None, "HOST_FROM": None})

    def test_header(self) -> None:
        """The syslog header is made of program and process, unless it was set whole."""
        for values, expected in (
            ({}, None),
            ({"PID": "5"}, None),
            ({"PROGRAM": "cron"}, "cron: "),
            ({"PROGRAM": "cron", "PID": None}, "cron: "),
            ({"PROGRAM": "cron", "PID": "5"}, "cron[5]: "),
            ({"PROGRAM": "cron", "PID": 0}, "cron[0]: "),
            ({"PROGRAM": "cron", "LEGACY_MSGHDR": "x: "}, "x: "),
        ):
            with self.subTest(values=values):
                self.check(values, {"MSGHDR": expected})

    def test_own_host(self) -> None:
        """The receiver's own name is the host's."""
        self.check({}, {"LOGHOST": socket.gethostname()})

    def test_unknown_to_a_webhook(self) -> None:
        """Hard macros that nothing here can know are empty rather than made up."""
        names = "CONTEXT_ID DESTIP DESTPORT HOSTID PROTO PROTO_NAME RUNID SDATA SEQNUM SYSUPTIME TAGS UNIQID"
        self.check({"SOURCEIP": "192.0.2.9"}, dict.fromkeys(names.split()))


class ValueTextTests(SynchronousTestCase):
    """Tests for L{value_text}."""

    def test_kinds(self) -> None:
        """Each kind of value has its text; numbers keep their spelling."""
        cases: list[tuple[Value, str]] = [
            ("a\nb", "a\nb"),
            ("", ""),
            (None, ""),
            (True, "true"),
            (False, "false"),
            (0, "0"),
            (10**30, "1" + "0" * 30),
            (msgspec.Raw(b"1.50"), "1.50"),
            (msgspec.Raw(b"1e400"), "1e400"),
            (msgspec.Raw(b'["a", "b c","\\u00e9"]'), 'a,"b c",é'),
            (msgspec.Raw(b"[]"), ""),
            (msgspec.Raw(b'["a", 1.50]'), '["a", 1.50]'),
            ([], ""),
            ([1, "a", None, msgspec.Raw(b"2.0")], '[1,"a",null,2.0]'),
            ([["a"]], '[["a"]]'),
            ({}, "{}"),
            ({"a": ["é", True]}, '{"a":["é",true]}'),
        ]
        for value, expected in cases:
            with self.subTest(expected=expected):
                self.assertEqual(expected, value_text(value))

    def test_lists(self) -> None:
        """Strings of a list are joined by commas and quoted as the collector does, where it is needed."""
        cases: list[tuple[list[Value], str]] = [
            (["foo"], "foo"),
            (["foo", "bar"], "foo,bar"),
            (["foo", "a,b"], 'foo,"a,b"'),
            (["", "x"], '"",x'),
            (["a b"], '"a b"'),
            (["it's"], '"it\'s"'),
            (['say "x"'], "'say \"x\"'"),
            (["'\""], '"\'\\""'),
            (["a\\b"], '"a\\\\b"'),
            (["a\nb\t\x07"], '"a\\nb\\t\\x07"'),
            (["é"], "é"),
        ]
        for value, expected in cases:
            with self.subTest(expected=expected):
                self.assertEqual(expected, value_text(value))
