"""
Tests for L{webhookrx.senders.locator}.
"""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import evidence_of, scope_of
from webhookrx.senders.locator import MAX_TRIES, Locator, LocatorError, LookupContext, parse_pointer, scalar_text

EVENT: dict[str, Any] = {
    "a": {
        "b": [{"c": "first"}, {"c": "second", "d": None, "": "empty"}],
        "e": 5,
        "f": True,
        "/": "slash",
        "~": "tilde",
    },
    "g": "",
    "h": None,
    "*": "star",
    "n": 1.25,
    "blank": " \n",
    "wide": " a b\n",
}


def scope_first(place: str, body: Any) -> str | None:
    """Return the text that a place in a body yields."""
    return Locator(place).first(scope_of(body), scalar_text)


class PlaceTests(SynchronousTestCase):
    """Where to look."""

    def test_table(self) -> None:
        """A place yields the text that is there, or nothing."""
        scope = scope_of(
            EVENT, {"X-Event": " push ", "X-Empty": ""}, path=b"/events/a%20b", query={"team": "red", "tag": ["x", "y"]}
        )
        for text, expected in {
            "/a/b/0/c": "first",
            "/a/b/1/c": "second",
            "/a/b/1/": "empty",
            "/a/b/2/c": None,
            "/a/b/00/c": None,
            "/a/b/-1/c": None,
            "/a/b/-/c": None,
            "/a/b/9999999999999999999999/c": None,
            "/a/b/\u0661/c": None,
            "/a/b/*/c": "first",
            "/a/b/*/d": None,
            "/a/e": "5",
            "/a/f": "true",
            "/n": "1.25",
            "/blank": None,
            "/wide": "a b",
            "/a/~1": "slash",
            "/a/~0": "tilde",
            "/*": "star",
            "/a": None,
            "/a/b": None,
            "/g": None,
            "/h": None,
            "/h/i": None,
            "/g/i": None,
            "/missing": None,
            "/": None,
            "header:X-EVENT": "push",
            "header:x-empty": None,
            "header:x-missing": None,
            "query:team": "red",
            "query:tag": "x",
            "query:missing": None,
            "path": "/events/a%20b",
        }.items():
            self.assertEqual(Locator(text).first(scope, scalar_text), expected, text)

    def test_bad(self) -> None:
        """What is no place is a mistake with its column."""
        for text, column in {
            "": 1,
            "a": 1,
            "paths": 1,
            "header:": 8,
            "header:a b": 8,
            "header:\u00e9": 8,
            "query:": 7,
            "/a/~2": 4,
            "/~": 2,
            "cookie:a": 1,
            "same:": 6,
            "same:a": 6,
            "tally:header:a": 7,
            "tally:/a/~2": 10,
        }.items():
            with self.assertRaises(LocatorError, msg=text) as caught:
                Locator(text)
            self.assertEqual(caught.exception.column, column, text)
        self.assertRaises(LocatorError, parse_pointer, "a")
        self.assertEqual(self.assertRaises(LocatorError, parse_pointer, "/a/[b=c]/d").column, 4)
        self.assertEqual(parse_pointer("/a~1b//*"), ("a/b", "", "*"))
        # RFC 6901 section 4: ~1 is replaced first.
        self.assertEqual(parse_pointer("/~01/~0~1"), ("~1", "~/"))

    def test_whole_body(self) -> None:
        """What the event does not say, what is around it may."""
        scope = LookupContext(evidence_of(), {"a": 1}, {"a": 2, "b": 3, "events": [{"a": 1}]})
        self.assertEqual(Locator("/a").first(scope, scalar_text), "1")
        self.assertEqual(Locator("/b").first(scope, scalar_text), "3")
        self.assertEqual(Locator("/events/0/a").first(scope, scalar_text), "1")

    def test_first_that_counts(self) -> None:
        """Of several values the first counts that what asks for it can use."""
        scope = scope_of({"a": [{"b": [None, "x"]}, {"b": ["y", 7]}, {"b": [8]}]})
        self.assertEqual(Locator("/a/*/b/*").first(scope, lambda value: value if type(value) is int else None), 7)

    def test_all(self) -> None:
        """All values that count can be asked for; those around the event when there are none in it."""
        body = {"a": [{"b": 1}, {"b": "x"}, {"b": 2}], "c": [3]}
        scope = LookupContext(evidence_of(), {"a": [], "c": [4]}, body)
        self.assertEqual(Locator("/a/*/b").all(scope, lambda value: value if type(value) is int else None), [1, 2])
        self.assertEqual(Locator("/c/*").all(scope, scalar_text), ["4"])
        self.assertEqual(Locator("/d/*").all(scope, scalar_text), [])

    def test_long_arrays(self) -> None:
        """Only so many elements are looked at, however they nest."""
        seen: list[Any] = []
        scope = scope_of({"a": [{"b": list(range(100))} for _ in range(100)]})
        self.assertIsNone(Locator("/a/*/b/*").first(scope, seen.append))
        self.assertLessEqual(len(seen), MAX_TRIES)
        self.assertGreater(len(seen), MAX_TRIES // 2)

    def test_picked(self) -> None:
        """Elements are picked by the text of one of their members; the first that yields something counts."""
        pairs = [{"key": "a", "value": {}}, {"key": "host.name", "value": {"s": "h1"}}, {"key": "a/b", "value": 2}, 5]
        scope = scope_of({"of": pairs, "n": [{"key": 5, "v": "five"}], "o": {"[key=a]": "no array"}})
        for text, expected in {
            "/of/[key=host.name]/value/s": "h1",
            "/of/[key=host]/value/s": None,
            "/of/[key=a~1b]/value": "2",
            "/of/[key=a]/value": None,
            "/n/[key=5]/v": "five",
            "/o/[key=a]": None,
            "/o/[key=a]/x": None,
        }.items():
            self.assertEqual(Locator(text).first(scope, scalar_text), expected, text)
            self.assertTrue(Locator(text).has_star, text)
        self.assertEqual(scope_first("/[a]", {"[a]": "a name"}), "a name")

    def test_same(self) -> None:
        """What all elements have is yielded, and nothing when one lacks it, or has something else."""
        for members, expected in (
            ([{"s": 1, "h": "a"}, {"s": 1, "h": "a"}, {"s": 2, "h": "b"}], "a"),
            ([{"s": 1, "h": "a"}, {"s": 1, "h": "b"}], None),
            ([{"s": 1, "h": "a"}, {"s": 1}], None),
            ([{"s": 1, "h": "a"}, {"s": 1, "h": ""}], None),
            ([{"s": 2, "h": "a"}], None),
            ([], None),
            ([{"s": 1, "h": "a"}] * (MAX_TRIES + 1), None),
            ([{"s": 1, "h": "a"}] * MAX_TRIES, "a"),
        ):
            self.assertEqual(scope_first("same:/e/[s=1]/h", {"e": members}), expected, members[:3])

    def test_tally(self) -> None:
        """Texts are counted, and come by text; one element is not counted."""
        for members, expected in (
            ([{"s": "resolved"}, {"s": "firing"}, {"s": "resolved"}, {}], "firing 1, resolved 2"),
            ([{"s": "firing"}], "firing"),
            ([{"s": n} for n in [*range(10, 22), 21]], f"{', '.join(f'{n} 1' for n in range(10, 20))}, 3 others"),
            ([{"s": "firing"}, {"s": "firing"}], "firing 2"),
            ([{}], None),
            ([], None),
            ({}, None),
            ([{"s": "firing"}] * (MAX_TRIES + 1), None),
            ([{"s": "firing"}] * MAX_TRIES, f"firing {MAX_TRIES}"),
        ):
            self.assertEqual(scope_first("tally:/e/*/s", {"e": members}), expected, members)

    def test_text_of(self) -> None:
        """Arrays, objects and integers of hundreds of digits are no text."""
        for value, expected in (
            (10**400, None),
            (-5, "-5"),
            (False, "false"),
            ([], None),
            ({"a": 1}, None),
            ("x", "x"),
        ):
            self.assertEqual(scalar_text(value), expected)  # type: ignore[arg-type]  # dict is invariant
        self.assertEqual(scalar_text(msgspec.Raw(b"1e5")), "1e5")
