"""
Tests for L{webhookrx.quantities}.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.quantities import counted, format_duration, format_size, parse_duration, parse_size, readable_span

SIZES = [
    ("0", 0),
    ("1", 1),
    ("1023", 1023),
    ("7B", 7),
    ("64KiB", 65536),
    ("64kib", 65536),
    ("10MiB", 10485760),
    ("10 MiB", 10485760),
    (" 10MiB ", 10485760),
    ("1GiB", 1073741824),
    ("1TiB", 1099511627776),
    ("100kB", 100_000),
    ("100KB", 100_000),
    ("5MB", 5_000_000),
    ("2gb", 2_000_000_000),
    ("1TB", 1_000_000_000_000),
    ("007", 7),
]
NOT_SIZES = ["", " ", "MiB", "-1", "-1MiB", "+1", "1.5MiB", "1e3", "10M", "10K", "10 MiB B", "10  MiB", "0x10", "1_000"]
NOT_SIZES += ["ten", "10ſ", "١٠", "10\u212aB", "9" * 19, "9" * 5000, "10\nMiB", "inf"]

DURATIONS = [
    ("0", 0.0),
    ("30", 30.0),
    ("2.5", 2.5),
    ("30s", 30.0),
    ("30 S", 30.0),
    ("0.1s", 0.1),
    ("500ms", 0.5),
    ("0.5ms", 0.0005),
    ("2m", 120.0),
    ("1.5m", 90.0),
    ("1h", 3600.0),
    ("1D", 86400.0),
]
NOT_DURATIONS = [
    "",
    "s",
    "-1s",
    "+1s",
    "1e3",
    "1,5s",
    ".5s",
    "5.",
    "5 min",
    "1w",
    "1h30m",
    "nan",
    "inf",
    "٣s",
    "9" * 400,
]


class SizeTests(SynchronousTestCase):
    def test_sizes(self) -> None:
        """A whole number of bytes is read alone, with a decimal unit and with a binary unit, in any case."""
        for text, size in SIZES:
            self.assertEqual((text, size), (text, parse_size(text)))

    def test_not_sizes(self) -> None:
        """Anything else is an error that quotes the text and names the units."""
        for text in NOT_SIZES:
            error = self.assertRaises(ValueError, parse_size, text)

            self.assertIn(repr(text), str(error))
            self.assertIn("KiB", str(error))

    def test_format(self) -> None:
        """A size is written in the unit that makes the shortest text."""
        table = [
            (0, "0B"),
            (1, "1B"),
            (1023, "1023B"),
            (1000, "1kB"),
            (1024, "1KiB"),
            (10485760, "10MiB"),
            (5_000_000, "5MB"),
            (1_024_000, "1024kB"),
        ]
        for size, text in table:
            self.assertEqual(text, format_size(size))

    def test_format_negative(self) -> None:
        """No size is below zero."""
        self.assertRaises(ValueError, format_size, -1)

    @given(st.integers(min_value=0, max_value=10**18 - 1))
    def test_round_trip(self, size: int) -> None:
        """What is written is read back exactly."""
        self.assertEqual(size, parse_size(format_size(size)))

    @given(st.integers(min_value=0, max_value=1000), st.sampled_from([1000, 1024]), st.integers(0, 4))
    def test_round_trip_of_round_sizes(self, number: int, base: int, power: int) -> None:
        """What is written with a unit is read back exactly."""
        self.assertEqual(number * base**power, parse_size(format_size(number * base**power)))


class DurationTests(SynchronousTestCase):
    def test_durations(self) -> None:
        """A number is read as seconds, or in the unit it has, in any case."""
        for text, seconds in DURATIONS:
            self.assertEqual((text, seconds), (text, parse_duration(text)))

    def test_not_durations(self) -> None:
        """Anything else is an error that quotes the text and names the units."""
        for text in NOT_DURATIONS:
            error = self.assertRaises(ValueError, parse_duration, text)

            self.assertIn(repr(text), str(error))
            self.assertIn("ms, s, m, h or d", str(error))

    def test_format(self) -> None:
        """A duration is written in the largest unit that takes it whole."""
        table = [
            (0.0, "0s"),
            (30, "30s"),
            (90.0, "90s"),
            (120.0, "2m"),
            (3600.0, "1h"),
            (864000.0, "10d"),
            (0.5, "500ms"),
            (2.5, "2500ms"),
            (0.0001, "0.0001s"),
        ]
        for seconds, text in table:
            self.assertEqual(text, format_duration(seconds))

    def test_format_not_durations(self) -> None:
        """What is below zero, without end or no number is not written."""
        for seconds in (-1.0, float("inf"), float("nan")):
            self.assertRaises(ValueError, format_duration, seconds)

    @given(st.floats(min_value=0, allow_infinity=False, allow_nan=False))
    def test_round_trip(self, seconds: float) -> None:
        """What is written is read back exactly, however small or large."""
        self.assertEqual(seconds, parse_duration(format_duration(seconds)))

    @given(st.integers(min_value=0, max_value=10**12))
    def test_round_trip_of_whole_milliseconds(self, milliseconds: int) -> None:
        """A whole number of milliseconds is read back exactly."""
        self.assertEqual(milliseconds / 1000, parse_duration(format_duration(milliseconds / 1000)))


class ReadableSpanTests(SynchronousTestCase):
    """Lengths of time for people."""

    def test_spans(self) -> None:
        """A span has its two largest units, of which the second may be nothing; what is left is cut off."""
        for seconds, text in (
            (0, "0 s"),
            (0.25, "250 ms"),
            (59.9, "59 s"),
            (60, "1 min"),
            (500, "8 min 20 s"),
            (3599, "59 min 59 s"),
            (3600, "1 h"),
            (3659, "1 h"),
            (5400, "1 h 30 min"),
            (86_400 + 60, "1 d"),
            (183_600, "2 d 3 h"),
            (400 * 86_400, "400 d"),
        ):
            with self.subTest(seconds=seconds):
                self.assertEqual(text, readable_span(seconds))


class CountedTests(SynchronousTestCase):
    """Numbers with their nouns."""

    def test_counted(self) -> None:
        """One thing is one, all other numbers are many."""
        self.assertEqual(["0 rules", "1 rule", "1,000 rules"], [counted(number, "rule") for number in (0, 1, 1000)])
