"""
Tests for L{webhookrx.intake.query}.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote_plus, urlencode

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import BAD_ENCODING, BAD_REQUEST, RequestRefused
from webhookrx.intake.query import MAX_PARAMETERS, parse_query

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
    @settings(deadline=None)
    def test_round_trip(self, pairs: list[tuple[str, str]]) -> None:
        """Whatever text a form encodes comes out as it was."""
        expected: dict[str, list[str]] = {}
        for name, value in pairs:
            expected.setdefault(name, []).append(value)

        parsed = parse_query(urlencode(pairs, quote_via=quote_plus).encode("ascii"))

        self.assertEqual({name: text[0] if len(text) == 1 else text for name, text in expected.items()}, parsed)

    @given(st.text(alphabet="ab=&+%;c32F9", max_size=40))
    @settings(deadline=None)
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
