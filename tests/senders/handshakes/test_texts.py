"""
Tests for L{webhookrx.senders.handshakes.texts}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import evidence_of
from webhookrx.senders.handshakes.texts import (
    AnswerText,
    NoValue,
    Values,
    exact_text,
    filled,
    scope_of,
    texts_in,
    words_of_now,
    words_of_settings,
)
from webhookrx.senders.locator import LocatorError


def anything(value: str) -> bool:
    """Let each value be answered."""
    return True


def values_of(body: Any = b"", fits: Callable[[str], bool] = anything, **words: str | int) -> Values:
    """Return where the places of a text lead in a request."""
    evidence = evidence_of(body, {"X-A": "of a header"}, query={"q": "of a query"})
    return Values(scope_of(evidence), words, fits)


class TextTests(SynchronousTestCase):
    """Texts of answers."""

    def test_text(self) -> None:
        """Each place has its value, exactly; what stands around them stays."""
        for text, said in (
            ("plain", "plain"),
            ("", ""),
            ("{/a}", " b "),
            ("<{/a}>: {header:x-a}, {query:q}", "< b >: of a header, of a query"),
            ("{{{/a}}}", "{ b }"),
            ("{{}}", "{}"),
            ("{proof}/{proof}", "p/p"),
            ("{/n}{/l/1}", "42two"),
            ("{/huge}", "123456789012345678901234567890"),
        ):
            body = {"a": " b ", "n": 42, "l": ["one", "two"], "huge": 123456789012345678901234567890}
            read = AnswerText(text, ("proof",))
            self.assertEqual(read.text(values_of(body, proof="p")), said, text)

    def test_no_value(self) -> None:
        """A place without a text, or with one that may not be answered, makes none, and is named."""
        for place in ("/a", "/b", "/c", "/d", "/e", "/f", "/g/0", "header:x-b", "query:r"):
            body = {"a": "", "b": None, "c": [], "d": {}, "e": 1.5, "f": True}
            error = self.assertRaises(NoValue, AnswerText(f"a{{{place}}}").text, values_of(body))
            self.assertEqual(error.place, place)
        self.assertRaises(NoValue, AnswerText("{/a}").text, values_of({"a": "b"}, lambda value: value != "b"))
        error = self.assertRaises(NoValue, AnswerText("{setting:code}").text, values_of())
        self.assertEqual(error.place, "setting:code")

    def test_bodies(self) -> None:
        """Places look into the first object, then into the whole body; also into a form."""
        for body, place, said in (
            ([{"a": "first"}, {"a": "second"}], "/a", "first"),
            ([{"a": "first"}, {"a": "second"}], "/1/a", "second"),
            (b"a=of+a+form&b=2", "/a", "of a form"),
            (b'{"a":"line"}\n{"a":"another"}', "/a", "line"),
        ):
            self.assertEqual(AnswerText(f"{{{place}}}").text(values_of(body)), said)

    def test_numbers(self) -> None:
        """A word that stands alone is a number if that is what it is; a value of the request is a text."""
        values = values_of({"n": 1}, now=7)
        for text, value in (("{now}", 7), ("{now}s", "7s"), (" {now}", " 7"), ("{/n}", "1")):
            self.assertEqual(AnswerText(text, ("now",)).value(values), value, text)

    def test_problems(self) -> None:
        """What is wrong with a text is told with its column."""
        for text, column in (
            ("a { b", 3),
            ("a } b", 3),
            ("{a}", 2),
            ("ab{a}", 4),
            ("ab{header:}", 11),
            ("{/a/*}", 2),
            ("{same:/a}", 2),
            ("{tally:/a/*}", 2),
            ("{path}", 2),
            ("{proof}", 2),
            ("{setting:}", 2),
            ("{}", 2),
        ):
            error = self.assertRaises(LocatorError, AnswerText, text)
            self.assertEqual(error.column, column, text)

    def test_parts(self) -> None:
        """A text tells what is in it."""
        text = AnswerText("{/a}{header:x}{proof}{setting:b}{setting:a}", ("proof",))
        self.assertEqual([place.text for place in text.places], ["/a", "header:x"])
        self.assertEqual((text.words, text.settings), ({"proof", "setting:a", "setting:b"}, ["a", "b"]))
        self.assertFalse(text.has_plain)
        self.assertTrue(AnswerText("{/a} ").has_plain)

    def test_json(self) -> None:
        """JSON is filled at any depth, and all its texts are known."""
        json = {
            "a": AnswerText("{/a}"),
            "b": [AnswerText("b"), {"c": AnswerText("{/c}")}],
            "d": 1,
            "e": None,
            "f": True,
        }
        filled_in = {"a": "1", "b": ["b", {"c": "2"}], "d": 1, "e": None, "f": True}
        self.assertEqual(filled(json, values_of({"a": "1", "c": "2"})), filled_in)
        self.assertEqual([[place.text for place in text.places] for text in texts_in(json)], [["/a"], [], ["/c"]])

    def test_words(self) -> None:
        """A moment has three words; a setting is a word if it is a text."""
        self.assertEqual(
            words_of_now(1_578_090_903_599_999_999),
            {"now:unix": 1578090903, "now:unix-ms": 1578090903599, "now:rfc3339": "2020-01-03T22:35:03.599Z"},
        )
        self.assertEqual(words_of_settings({"a": "b", "c": ("d",), "e": True}), {"setting:a": "b"})

    def test_exact(self) -> None:
        """Texts and whole numbers have a text, nothing else has."""
        for value, text in (("a", "a"), (" ", " "), ("", None), (0, "0"), (True, None), (None, None), ([], None)):
            self.assertEqual(exact_text(value), text)
