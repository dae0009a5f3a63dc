"""
Tests for L{webhookrx.senders.times}.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.definition import TIME_FORMATS
from webhookrx.senders.times import READERS, from_rfc3339

SECOND = 1_000_000_000
NOON = 1_709_208_000  # 2024-02-29T12:00:00Z

MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2262, 4, 10))
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def nanoseconds(moment: datetime) -> int:
    """Return nanoseconds since the epoch."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


class Rfc3339Tests(SynchronousTestCase):
    """Dates and times with zones."""

    def test_table(self) -> None:
        """What RFC 3339 allows is read, and some that people write besides."""
        for text, expected in {
            "2024-02-29T12:00:00Z": NOON * SECOND,
            "2024-02-29t12:00:00z": NOON * SECOND,
            "2024-02-29 12:00:00": NOON * SECOND,
            "2024-02-29T12:00:00": NOON * SECOND,
            "2024-02-29 12:00:00 UTC": NOON * SECOND,
            "2024-02-29T13:00:00+01:00": NOON * SECOND,
            "2024-02-29T13:00:00+0100": NOON * SECOND,
            "2024-02-29T13:00:00 +01": NOON * SECOND,
            "2024-02-29T06:30:00-05:30": NOON * SECOND,
            "2024-02-29T12:00:00-00:00": NOON * SECOND,
            "2024-02-29T12:00:00.5Z": NOON * SECOND + 500_000_000,
            "2024-02-29T12:00:00,25Z": NOON * SECOND + 250_000_000,
            "2024-02-29T12:00:00.123456789Z": NOON * SECOND + 123_456_789,
            "2024-02-29T12:00:00.1234567899999+00:00": NOON * SECOND + 123_456_789,
            "2016-12-31T23:59:60Z": 1_483_228_800 * SECOND,
            "1970-01-01T00:00:00.000000001Z": 1,
            "2262-04-11T23:47:16.854775807Z": 2**63 - 1,
        }.items():
            self.assertEqual(from_rfc3339(text), expected, text)

    def test_nonsense(self) -> None:
        """Everything else is not read."""
        for value in (
            *("", "now", "2024-02-30T12:00:00Z", "2023-02-29T12:00:00Z", "2024-02-29T24:00:00Z", "2024-02-29"),
            *("2024-02-29T12:00:61Z", "2024-02-29T12:60:00Z", "2024-13-01T00:00:00Z", "2024-02-29T12:00:00.Z"),
            *(
                "2024-02-29T12:00:00+24:00",
                "2024-02-29T12:00:00Zulu",
                "2024-02-29T12:00:00 CET",
                "20240229T120000.000Z",
            ),
            *("2024-W01-1T03:04:05Z", "2024-02-29T12:00:00+1:00", "2024-02-29T12.00.00Z", "2024/02/29T12:00:00Z"),
            *("\u0662\u0660\u0662\u0664-02-29T12:00:00Z", "2024-02-29T12:00:00.\u0661Z", "9" * 100, " " * 40),
            *("1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2262-04-11T23:47:16.854775808Z", "0000-01-01T00:00:00Z"),
            *("2024-02-29T12:00:00." + "1" * 60 + "Z", None, True, 5, 1.5, [], {}, msgspec.Raw(b"1.5")),
        ):
            self.assertIsNone(from_rfc3339(value), value)

    @given(MOMENTS, OFFSETS, st.sampled_from("Tt "))
    def test_as_python_has_it(self, moment: datetime, offset: timezone, middle: str) -> None:
        """A moment is the one that C{datetime} makes of the same text."""
        aware = moment.replace(tzinfo=offset)
        expected = nanoseconds(aware)
        text = aware.isoformat(middle)
        self.assertEqual(from_rfc3339(text), expected if 0 < expected < 2**63 else None)
        self.assertEqual(READERS["auto"](text), expected if 0 < expected < 2**63 else None)


class NumberTests(SynchronousTestCase):
    """Times since the epoch."""

    def test_table(self) -> None:
        """A number, or its text, is exact to the nanosecond."""
        for name, value, expected in (
            ("unix", NOON, NOON * SECOND),
            ("unix", str(NOON), NOON * SECOND),
            ("unix", f" {NOON}.5 ", NOON * SECOND + 500_000_000),
            ("unix", msgspec.Raw(b"1732100000.123456789"), 1_732_100_000_123_456_789),
            ("unix", msgspec.Raw(b"1732100000.1234567899"), 1_732_100_000_123_456_789),
            ("unix", msgspec.Raw(b"1.7321e9"), 1_732_100_000 * SECOND),
            ("unix", msgspec.Raw(b"17321000001234567891E-10"), 1_732_100_000_123_456_789),
            ("unix-ms", 1_732_100_000_123, 1_732_100_000_123_000_000),
            ("unix-ms", "1732100000123.25", 1_732_100_000_123_250_000),
            ("unix-us", 1_732_100_000_123_456, 1_732_100_000_123_456_000),
            ("unix-ns", 1_732_100_000_123_456_789, 1_732_100_000_123_456_789),
            ("unix-ns", 2**63 - 1, 2**63 - 1),
            ("auto", NOON, NOON * SECOND),
            ("auto", NOON * 1000, NOON * SECOND),
            ("auto", NOON * 1_000_000, NOON * SECOND),
            ("auto", str(NOON * SECOND), NOON * SECOND),
            ("auto", msgspec.Raw(b"1709208000.25"), NOON * SECOND + 250_000_000),
            ("auto", "Thu, 29 Feb 2024 12:00:00 +0000", NOON * SECOND),
        ):
            self.assertEqual(READERS[name](value), expected, (name, value))

    def test_nonsense(self) -> None:
        """What is none, or out of range, is not read, and costs nothing."""
        for value in (
            *(0, -1, 2**63, 10**5000, "", "-5", "1_000", "0x10", "1e", "NaN", "Infinity", "-Infinity", "9" * 60),
            *("1e999999999", "1e-999999999", "\u0661\u0662", "1.2.3", True, False, None, [], {}, 1.5, "0", "0.0"),
            *(msgspec.Raw(b"1e400"), msgspec.Raw(b"-1.5"), msgspec.Raw(b"0.0"), msgspec.Raw(b"1" * 6000 + b".5")),
        ):
            for name in ("unix", "unix-ms", "unix-us"):
                self.assertIsNone(READERS[name](value), (name, value))

    @given(st.integers(1, 2**63 - 1))
    def test_exact(self, moment: int) -> None:
        """No digit is lost in any unit."""
        self.assertEqual(READERS["unix-ns"](moment), moment)
        for name, digits in (("unix", 9), ("unix-ms", 6), ("unix-us", 3)):
            whole, fraction = divmod(moment, 10**digits)
            raw = f"{whole}.{fraction:0{digits}}"
            self.assertEqual(READERS[name](raw), moment)
            self.assertEqual(READERS[name](msgspec.Raw(raw.encode())), moment)


class Rfc2822Tests(SynchronousTestCase):
    """Dates as mails have them."""

    @given(MOMENTS.map(lambda moment: moment.replace(microsecond=0)), OFFSETS)
    def test_as_python_writes_it(self, moment: datetime, offset: timezone) -> None:
        """A date that Python has written comes back."""
        aware = moment.replace(tzinfo=offset)
        expected = nanoseconds(aware)
        self.assertEqual(READERS["rfc2822"](format_datetime(aware)), expected if 0 < expected < 2**63 else None)

    def test_nonsense(self) -> None:
        """Everything else is not read."""
        for value in (
            "",
            "Thu, 31 Feb 2024 12:00:00 +0000",
            "Thu, 29 Feb",
            "29 Feb 99999 00:00:00 +0000",
            5,
            None,
            "x" * 70,
        ):
            self.assertIsNone(READERS["rfc2822"](value), value)


class WhateverTests(SynchronousTestCase):
    """What senders send."""

    @given(st.sampled_from(TIME_FORMATS), st.text(max_size=70) | st.integers() | st.booleans() | st.none())
    def test_anything(self, name: str, value: Any) -> None:
        """A reader returns a moment in range, or nothing."""
        moment = READERS[name](value)
        self.assertTrue(moment is None or 0 < moment < 2**63)

    @given(st.text("0123456789-+:.TZ ,UC", max_size=40))
    def test_nearly_a_time(self, text: str) -> None:
        """Nearly a time is one or nothing, too."""
        for reader in READERS.values():
            moment = reader(text)
            self.assertTrue(moment is None or 0 < moment < 2**63)

    def test_all_formats(self) -> None:
        """Each format that a data file may name has a reader."""
        self.assertEqual(sorted(READERS), sorted(TIME_FORMATS))
