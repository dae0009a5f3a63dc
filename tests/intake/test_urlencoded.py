"""
Tests for L{webhookrx.intake.urlencoded}.
"""

from __future__ import annotations

import json
import time
from urllib.parse import parse_qsl, quote, quote_plus, urlencode

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import BAD_ENCODING, BAD_REQUEST, RequestRefused
from webhookrx.intake import urlencoded as module
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.urlencoded import MAX_PARAMETERS, form_members, parse_query, remembered_query, says_form
from webhookrx.yield_point import PIECE

QUERIES: list[tuple[bytes, dict[str, str | list[str]]]] = [
    (b"", {}),
    (b"&", {}),
    (b"&&a=1&&", {"a": "1"}),
    (b"a=1", {"a": "1"}),
    (b"a=1&b=2", {"a": "1", "b": "2"}),
    (b"a=1&a=2", {"a": ["1", "2"]}),
    (b"a=1&a=&a=3", {"a": ["1", "", "3"]}),
    (b"a=1&b=2&%61=3", {"a": ["1", "3"], "b": "2"}),
    (b"b=", {"b": ""}),
    (b"c", {"c": ""}),
    (b"=v", {"": "v"}),
    (b"=", {"": ""}),
    (b"a=b=c", {"a": "b=c"}),
    (b"v=x%20y+z%2B", {"v": "x y z+"}),
    (b"+k+=1", {" k ": "1"}),
    (b"v=%C3%A9", {"v": "é"}),
    (b"%C3%A9=1", {"é": "1"}),
    (b"v=%F0%9F%90%8D", {"v": "🐍"}),
    (b"v=%zz", {"v": "%zz"}),
    (b"v=%", {"v": "%"}),
    (b"v=%4", {"v": "%4"}),
    (b"v=%%41", {"v": "%A"}),
    (b"v=%2541", {"v": "%41"}),
    (b"v=%26%3D", {"v": "&="}),
    (b"v=%00n", {"v": "\0n"}),
    (b"h=1;i=2", {"h": "1;i=2"}),
    (b".x=1&a.b=2", {".x": "1", "a.b": "2"}),
    (b"a=?", {"a": "?"}),
]


class ParseQueryTests(SynchronousTestCase):
    def test_queries(self) -> None:
        """Queries are read as HTML forms write them, and nothing in them is lost."""
        for query, values in QUERIES:
            self.assertEqual((query, values), (query, parse_query(query)))

    def test_order(self) -> None:
        """Names come in the order of their first appearance."""
        self.assertEqual(["b", "a", "c"], list(parse_query(b"b=1&a=1&c=1&a=2")))

    def test_not_utf8(self) -> None:
        """A name or value that is not UTF-8 once decoded is refused: overlong forms and surrogates too."""
        for query in (b"a=%ff%fe", b"%ff=1", b"a=1&b=%C3", b"a=%C0%AF", b"a=%ED%A0%80", b"a=%C3+%A9"):
            refused = self.assertRaises(RequestRefused, parse_query, query)

            self.assertEqual((query, BAD_ENCODING), (query, refused.reason))

    def test_many_parameters(self) -> None:
        """A thousand parameters are taken, and one more is refused."""
        most = b"&".join(b"p%d=" % number for number in range(MAX_PARAMETERS))

        self.assertEqual(1000, len(parse_query(most)))
        refused = self.assertRaises(RequestRefused, parse_query, most + b"&a")
        self.assertEqual(BAD_REQUEST, refused.reason)
        self.assertIn("1000 parameters", refused.detail)

    def test_repeated_parameters_count(self) -> None:
        """Each repetition of a name counts against the limit."""
        self.assertEqual({"a": [""] * MAX_PARAMETERS}, parse_query(b"&".join([b"a"] * MAX_PARAMETERS)))
        self.assertRaises(RequestRefused, parse_query, b"&".join([b"a"] * (MAX_PARAMETERS + 1)))

    def test_empty_pairs_do_not_count(self) -> None:
        """Separators with nothing between them are no parameters."""
        self.assertEqual({"a": "1"}, parse_query(b"&" * 5000 + b"a=1"))

    @given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=20))
    def test_round_trip(self, pairs: list[tuple[str, str]]) -> None:
        """Whatever text a form encodes comes out as it was."""
        expected: dict[str, list[str]] = {}
        for name, value in pairs:
            expected.setdefault(name, []).append(value)

        parsed = parse_query(urlencode(pairs, quote_via=quote_plus).encode("ascii"))

        self.assertEqual({name: text[0] if len(text) == 1 else text for name, text in expected.items()}, parsed)

    def test_remembered(self) -> None:
        """A query that comes again is not read again, unless it is long, or wrong, or has a list that may change."""
        lists, long = b"a=1&b=%20&a=2", b"a=" + b"b" * 127
        for query in (b"a=1", b"a=%c3%a9+&b", b"&", long[:-1], long, lists):
            self.assertEqual(parse_query(query), remembered_query(query))
            self.assertEqual(query not in (lists, long), remembered_query(query) is remembered_query(query), query)
        for _ in range(2):
            self.assertRaises(RequestRefused, remembered_query, b"a=%ff")

    @given(st.text(alphabet="ab=&+%;c32F9", max_size=40))
    def test_as_the_standard_library(self, text: str) -> None:
        """The pairs are those that the standard library finds, for all that is UTF-8."""
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            self.assertRaises(RequestRefused, parse_query, text.encode("ascii"))
            return
        expected: dict[str, list[str]] = {}
        for name, value in pairs:
            expected.setdefault(name, []).append(value)

        parsed = parse_query(text.encode("ascii"))

        self.assertEqual({name: found[0] if len(found) == 1 else found for name, found in expected.items()}, parsed)


def head_of(*types: bytes) -> Head:
    """Return a head with these content types."""
    return Head(b"POST", b"/", b"", [(b"content-type", each) for each in types], Peer("192.0.2.7", 1, False))


class FormTests(SynchronousTestCase):
    """
    Tests for L{says_form} and L{form_members}.
    """

    def test_content_types(self) -> None:
        """Capitals and parameters make no difference."""
        for kind in (b"application/x-www-form-urlencoded", b"Application/X-WWW-Form-Urlencoded ; charset=UTF-8"):
            self.assertTrue(says_form(head_of(kind)))
        for types in ((), (b"",), (b"application/json",), (b"application/x-www-form-urlencoded-x",)):
            self.assertFalse(says_form(head_of(*types)))

    def test_forms(self) -> None:
        """Fields are texts, or lists of them where a name is repeated; a line end at the end is none of it."""
        for body, members in (
            (b"a=1", {"a": "1"}),
            (b"a=&b.c=x+y%21\r\n", {"a": "", "b.c": "x y!"}),
            (b"a=1&b=2&a=3", {"a": ["1", "3"], "b": "2"}),
            (b"%7Bname%7D=%C3%A4&a=b=c", {"{name}": "\u00e4", "a": "b=c"}),
        ):
            self.assertEqual(members, form_members(body), body)

    def test_payload(self) -> None:
        """The JSON object in the field of code hosts stands in its place; other contents of that field are text."""
        inner = '{"action":"opened","n":1.50,"a":{"b":[1]}}'
        value = {"action": "opened", "n": 1.5, "a": {"b": [1]}}
        for body, members in (
            (urlencode({"payload": inner}), value),
            (urlencode({"x": "1", "payload": inner, "action": "no"}), {"x": "1", **value}),
            (urlencode({"payload": "{no"}), {"payload": "{no"}),
            (urlencode({"payload": "[1]"}), {"payload": "[1]"}),
            ("payload=1&payload=2", {"payload": ["1", "2"]}),
        ):
            self.assertEqual(json.dumps(members), json.dumps(form_members(body.encode()), default=float), body)

    def test_text(self) -> None:
        """Plain text is no form, nor is what could be a form but for one part of it."""
        for body in (
            b"",
            b"disk is full",
            b"disk",
            b"level=error msg=full",
            b"a=b is wrong",
            b"=a",
            b"a=1&b",
            b"a=1&",
            b"&a=1",
            b"a=1\nb=2",
            b'a="x"',
            b"<a=b>",
            b'{"a"=1}',
            b"a=%ff",
            b"a=\xff",
            b"&".join([b"a=1"] * (MAX_PARAMETERS + 1)),
        ):
            self.assertEqual(None, form_members(body), body[:40])
        self.assertNotEqual(None, form_members(b"&".join([b"a=1"] * MAX_PARAMETERS)))

    @given(st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=5))
    def test_round_trip(self, fields: dict[str, str]) -> None:
        """What a browser encodes comes out as it was."""
        if any(ord(char) in range(0xD800, 0xE000) for text in (*fields, *fields.values()) for char in text):
            return
        if "payload" in fields:
            return
        self.assertEqual(fields, form_members(urlencode(fields, quote_via=quote).encode()))

    @given(st.lists(st.sampled_from(["%", "%4", "%41", "%3d", "%0A", "%25", "=", "+", "z", "~", "_", "f0"])))
    def test_pieces(self, parts: list[str]) -> None:
        """Long values are read as short ones are, escapes that are none included."""
        value = "".join(parts)
        filler = "x" * PIECE
        short, long = form_members(f"a={value}".encode()), form_members(f"a={value}{filler}".encode())
        self.assertEqual(None if short is None else {"a": f"{short['a']}{filler}"}, long)

    def test_turns(self) -> None:
        """Others have turns while a long one is read, be it one value or many."""
        turns: list[None] = []
        self.patch(module, "yield_point", lambda: turns.append(None))
        for body in (b"a=" + b"%41" * 300_000, b"&".join(b"a=" + b"x" * 900 for _ in range(999))):
            turns.clear()
            self.assertNotEqual(None, form_members(body))
            self.assertGreater(len(turns), len(body) // PIECE - 2)

    def test_long(self) -> None:
        """A long one is read exactly, in time that stays in proportion to its length."""
        text = "\u00e4\x00" * 200_000
        for shift in range(3):
            value = "x" * shift + text
            self.assertEqual({"a": value}, form_members(b"a=" + quote(value).encode()))
        times = []
        for size in (250_000, 1_000_000):
            started = time.thread_time()
            form_members(b"a=" + b"%00" * size)
            times.append(time.thread_time() - started)
        self.assertLess(times[1], 12 * times[0])
