"""
Tests for L{webhookrx.query} as a whole, against L{tests.query.queries}, which knows nothing of it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.query.queries import RECORDS, TREES, naive, text_of_tree
from webhookrx.query import Fleet, QueryError, explain, format_tree, parse, plain_tree

SNIPPETS = st.sampled_from(
    [
        *(
            "a",
            "label.b",
            "@ANY",
            "'x y'",
            '"',
            "`",
            "'",
            "\\",
            "(",
            ")",
            ",",
            " ",
            "\n",
            "\x00",
            "ü",
            "“",
            "*",
            "&",
            "|",
        ),
        *("=", "!=", "=*", "!*", "=~", "!~", "==", "!==", "==*", "!=*", "==~", "!=~", "<", ">", "!"),
        *("AND", "or", "NOT", " exists", " AND ", " or ", "NOT ", ".", "..", "-", "[", "(?=", "\ud800"),
    ]
)


def without_columns(tree: Any) -> Any:
    """Return a plain tree without columns, which differ with the way it is written."""
    if isinstance(tree, list):
        return [without_columns(each) for each in tree]
    if isinstance(tree, dict):
        return {name: without_columns(each) for name, each in tree.items() if name != "column"}
    return tree


class AgainstNaiveTests(SynchronousTestCase):
    """Random queries on random records."""

    @given(TREES, st.lists(RECORDS, max_size=6), st.data())
    def test_same(self, tree: Any, records: list[Any], data: st.DataObject) -> None:
        """One by one, all at once, and explained, a query matches the records that it should."""
        query = parse(text_of_tree(tree, lambda ways: data.draw(st.sampled_from(ways))))
        expected = [naive(tree, record) for record in records]

        self.assertEqual(expected, [query.matches(record) for record in records], query.text)
        self.assertEqual([index for index, each in enumerate(expected) if each], Fleet(records).matching(query))
        self.assertEqual(expected, [explain(query, record).matched for record in records])

    @given(st.lists(TREES, max_size=4), st.lists(RECORDS, min_size=1, max_size=6))
    def test_many_queries(self, trees: list[Any], records: list[Any]) -> None:
        """What a fleet remembers of queries does not change what others match."""
        fleet = Fleet(records)
        for tree in trees + trees[::-1]:
            query = parse(text_of_tree(tree, lambda ways: ways[0]))
            expected = [index for index, record in enumerate(records) if naive(tree, record)]

            self.assertEqual(expected, fleet.matching(query), query.text)

    @given(TREES, RECORDS)
    def test_deciding_terms(self, tree: Any, record: Any) -> None:
        """Something decided, and each deciding term stands in the query where it says."""
        query = parse(text_of_tree(tree, lambda ways: ways[-1]))
        deciding = explain(query, record).deciding

        self.assertTrue(deciding)
        for term in deciding:
            written = term.text.removeprefix("NOT ")
            self.assertEqual(written, query.text[term.column - 1 :][: len(written)])


class RoundTripTests(SynchronousTestCase):
    """The normalised text of a query."""

    @given(TREES, st.data())
    def test_round_trip(self, tree: Any, data: st.DataObject) -> None:
        """It is one line, says the same as the query, and is its own normalised text."""
        query = parse(text_of_tree(tree, lambda ways: data.draw(st.sampled_from(ways))))
        normalised = format_tree(query.tree)
        again = parse(normalised)

        self.assertEqual(1, len(normalised.splitlines()))
        self.assertEqual(without_columns(plain_tree(query.tree)), without_columns(plain_tree(again.tree)))
        self.assertEqual(normalised, format_tree(again.tree))

    @given(TREES)
    def test_plain_tree(self, tree: Any) -> None:
        """The tree can be written as JSON, and read again."""
        plain = plain_tree(parse(text_of_tree(tree, lambda ways: ways[0])).tree)

        self.assertEqual(plain, msgspec.json.decode(msgspec.json.encode(plain)))


class GarbageTests(SynchronousTestCase):
    """Texts that are no queries, mostly."""

    @given(st.lists(SNIPPETS, max_size=12).map("".join) | st.text(max_size=20))
    def test_garbage(self, text: str) -> None:
        """A text is a query, or there is an error that points into it."""
        try:
            query = parse(text)
        except QueryError as error:
            self.assertTrue(1 <= error.column <= len(text) + 1, error)
            self.assertTrue(error.problem.endswith("."), error)
        else:
            query.matches({"a": "x"})
