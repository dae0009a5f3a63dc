"""
Tests for L{webhookrx.config.spec_strings}.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.endpoints import quoteStringArgument
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.spec_strings import escaped, split_raw, split_spec, unescaped
from webhookrx.errors import ConfigError


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
        """A keyword that is there twice is an error that names it."""
        error = self.assertRaises(ConfigError, split_spec, "tcp:1:backlog=1:backlog=2")
        self.assertIn("backlog= twice", error.problem)

    @settings(deadline=None)
    @given(st.lists(st.text(), min_size=1), st.dictionaries(st.text(), st.text(), max_size=3))
    def test_round_trip(self, args: list[str], options: dict[str, str]) -> None:
        """Whatever is escaped and joined comes back when it is split."""
        parts = [escaped(arg) for arg in args]
        parts += [f"{escaped(key)}={escaped(value)}" for key, value in options.items()]
        self.assertEqual((args, options), split_spec(":".join(parts)))

    @settings(deadline=None)
    @given(st.text())
    def test_as_twisted_quotes(self, value: str) -> None:
        """What Twisted's own quoting makes of a value is read back."""
        self.assertEqual(([], {"k": value}), split_spec(f"k={quoteStringArgument(value)}"))

    @settings(deadline=None)
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
