"""
Tests for L{webhookrx.config.specs}.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.endpoints import quoteStringArgument
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.specs import SpecOptions, escaped, split_raw, split_spec, unescaped
from webhookrx.errors import ConfigError
from webhookrx.quantities import FLAG_WORDS


class SplitSpecTests(SynchronousTestCase):
    """
    Tests for L{split_spec} and L{escaped}.
    """

    def test_parts(self) -> None:
        """Colons separate, the first equals sign of a part makes a keyword, a backslash takes the next character."""
        cases = {
            "": ([""], {}),
            "a": (["a"], {}),
            "a:b": (["a", "b"], {}),
            "a::b": (["a", "", "b"], {}),
            "a:k=v": (["a"], {"k": "v"}),
            "a:k=v=w": (["a"], {"k": "v=w"}),
            "a:k=:b": (["a", "b"], {"k": ""}),
            r"a\:b:k=\=\\c": (["a:b"], {"k": r"=\c"}),
            r"a\=b": (["a=b"], {}),
            "=v": ([], {"": "v"}),
        }
        for text, expected in cases.items():
            self.assertEqual(expected, split_spec(text), text)

    def test_trailing_backslash(self) -> None:
        """A backslash at the end has nothing to escape."""
        error = self.assertRaises(ConfigError, split_spec, "file:a\\")
        self.assertIn("backslash", error.problem)

    def test_repeated_keyword(self) -> None:
        """A keyword that is given twice is an error that names it."""
        error = self.assertRaises(ConfigError, split_spec, "tcp:1:backlog=1:backlog=2")
        self.assertIn("backlog= twice", error.problem)

    @given(st.lists(st.text(), min_size=1), st.dictionaries(st.text(), st.text(), max_size=3))
    def test_round_trip(self, args: list[str], options: dict[str, str]) -> None:
        """Whatever is escaped and joined comes back when it is split."""
        parts = [escaped(arg) for arg in args]
        parts += [f"{escaped(key)}={escaped(value)}" for key, value in options.items()]
        self.assertEqual((args, options), split_spec(":".join(parts)))

    @given(st.text())
    def test_as_twisted_quotes(self, value: str) -> None:
        """What Twisted's own quoting makes of a value is read back."""
        self.assertEqual(([], {"k": value}), split_spec(f"k={quoteStringArgument(value)}"))

    @given(st.lists(st.text(), min_size=1))
    def test_raw(self, texts: list[str]) -> None:
        """Parts come out as they were written, and unescaped as they were meant."""
        parts = [escaped(text) for text in texts]
        self.assertEqual(parts, split_raw(":".join(parts)))
        self.assertEqual(texts, [unescaped(part) for part in parts])

    def test_raw_trailing_backslash(self) -> None:
        """A backslash at the end is a part's own affair until it is unescaped."""
        self.assertEqual(["a", "b\\"], split_raw("a:b\\"))
        self.assertIn("backslash", self.assertRaises(ConfigError, unescaped, "b\\").problem)


Read = Callable[[SpecOptions], object]


def options(**given: str) -> SpecOptions:
    """Return options of an observer C{x}."""
    return SpecOptions("x", given)


READS: dict[str, Read] = {
    "flag": lambda read: read.flag("k", False),
    "choice": lambda read: read.choice("k", ("a", "b", "c"), "b"),
    "size": lambda read: read.size("k", 7, at_least=2),
    "duration": lambda read: read.duration("k", 7.0, at_least=0.5, at_most=60.0),
    "count": lambda read: read.count("k", 7),
    "read": lambda read: read.read("k", 7, int),
}


class ReadTests(SynchronousTestCase):
    """What fits."""

    def test_values(self) -> None:
        """A value is read by what its option takes."""
        for name, text, expected in (
            ("choice", "c", "c"),
            ("size", "2B", 2),
            ("size", "1KiB", 1024),
            ("duration", "500ms", 0.5),
            ("duration", "1m", 60.0),
            ("count", "1", 1),
            ("count", "999999999", 999_999_999),
            ("read", "12", 12),
        ):
            with self.subTest(f"{name} {text}"):
                self.assertEqual(expected, READS[name](options(k=text)))

    def test_flags(self) -> None:
        """A flag takes the words that every flag takes, in any case."""
        for word, value in FLAG_WORDS.items():
            self.assertIs(value, options(k=word).flag("k", not value))
            self.assertIs(value, options(k=word.upper()).flag("k", not value))

    def test_defaults(self) -> None:
        """What is not given is its default, bounds or not."""
        for name, expected in {"flag": False, "choice": "b"}.items():
            self.assertEqual(expected, READS[name](options()))
        for name in ("size", "duration", "count", "read"):
            self.assertEqual(7, READS[name](options(other="1")))
        self.assertIsNone(options().size("k", None, at_least=1))
        self.assertIsNone(options().duration("k", None, at_least=1.0))

    def test_given(self) -> None:
        """It tells what is given."""
        self.assertIn("k", options(k=""))
        self.assertNotIn("k", options(other="k"))


class MisfitTests(SynchronousTestCase):
    """What does not fit is one line that names observer, option and value, and says what it takes."""

    def test_words(self) -> None:
        """Each kind has its words."""
        for name, text, expected in (
            ("flag", "maybe", "is not yes or no; it takes yes, on, true, no, off or false"),
            ("flag", "1", "is not yes or no"),
            ("choice", "d", "is not known; it takes a, b or c"),
            ("choice", "", "is not known"),
            ("size", "much", "is not a size; it takes bytes, or a number with a unit, such as 10MiB"),
            ("size", "1", "is not enough; it takes 2B or more"),
            ("duration", "long", "is not a length of time; it takes seconds, or a number with a unit, such as 30s"),
            ("duration", "0.4", "is not enough; it takes 500ms or more"),
            ("duration", "2m", "is not sensible; it takes 1m or less"),
            ("count", "0", "is not a count; it takes a whole number from 1 on, such as 500"),
            ("count", "-1", "is not a count"),
            ("count", "1_0", "is not a count"),
            ("count", "\u0661", "is not a count"),
            ("count", "1000000000", "is not a count"),
        ):
            with self.subTest(f"{name} {text}"):
                error = str(self.assertRaises(ConfigError, READS[name], options(k=text)))

                self.assertTrue(error.startswith(f"observer 'x': k=\"{text}\" {expected}"), error)

    def test_read(self) -> None:
        """What only one observer knows has its own words."""
        error = str(self.assertRaises(ConfigError, READS["read"], options(k="twelve")))

        self.assertTrue(error.startswith("observer 'x': k=\"twelve\": invalid literal"), error)

    def test_one_line(self) -> None:
        """A value can't break the line."""
        for name in ("flag", "choice", "size", "duration", "count"):
            error = str(self.assertRaises(ConfigError, READS[name], options(k="a\nb\x1b")))

            self.assertIn(r'k="a\nb\x1b" is not', error)
