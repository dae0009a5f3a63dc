"""
Tests for L{webhookrx.query.thorough}: records that hold long texts, or many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from hypothesis import given, settings
from twisted.trial.unittest import SynchronousTestCase

from tests.query.queries import RECORDS, TREES, naive, text_of_tree
from webhookrx.linear_regex import RegexTooCostly
from webhookrx.query import QueryTooCostly, parse, thorough
from webhookrx.query.thorough import Thorough

LONG = "x" * 5_000
LARGE = {
    "text": f"{LONG}Straße\nend",
    "list": [*map(str, range(100)), "Straße\nend", None],
    "few": ["a", LONG + "Straße"],
    "object": {"a": LONG, "b": "Straße"},
    "number": msgspec.Raw(b"1." + b"0" * 5_000),
    "none": [],
    "empty": [""] * 100,
}


class Counted(Mapping[str, Any]):
    """An object that counts how often all its members are asked for."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members
        self.looks = 0

    def __getitem__(self, name: str) -> Any:
        return self.members[name]

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


class ThoroughTests(SynchronousTestCase):
    """What matches, and what it costs."""

    @settings(deadline=None, derandomize=True, max_examples=150)
    @given(TREES, RECORDS)
    def test_same(self, tree: Any, record: Any) -> None:
        """It says of small records what a naive reading of the query says."""
        query = parse(text_of_tree(tree, lambda choices: choices[0]))
        self.assertEqual(naive(tree, record), Thorough(record).matches(query.tree))

    def test_large(self) -> None:
        """Long texts and arrays mean what short ones do."""
        for text, expected in {
            "text =* STRASSE": True,
            "text ==* STRASSE": False,
            "text !* strasse": False,
            "text =* xend": False,
            "text =~ '^x+Stra.e$'": False,
            "text =~ 'stra.e\\nEND$'": True,
            "text ==~ END": False,
            f"text = {LONG}": False,
            "list = 'straße'": False,
            "list = 99": True,
            "list == 100": False,
            "list = null": True,
            "list =* 98end": False,
            "list =* SSe": True,
            "list =~ '^end$'": False,
            "list =~ '^9.$' AND list =~ 'raß'": True,
            "few = A AND few =* asse": True,
            "few == A OR few ==* asse": False,
            "object =* 'b\":\"STRASSE'": True,
            "object.b = strasse": True,
            "number =* .000 AND number !~ 1$": True,
            "none =* '' OR none =~ ''": False,
            "empty =* '' AND empty = '' AND empty =~ ''": True,
            "@ANY =* strasse AND NOT @ANY =* nowhere": True,
            "gone =* a OR text = y": False,
            "gone !* a AND text EXISTS": True,
        }.items():
            with self.subTest(query=text):
                query = parse(text)
                self.assertIs(expected, query.matches(LARGE))
                self.assertIs(expected, Thorough(LARGE).matches(query.tree))
        self.assertTrue(Thorough(LARGE).matches(parse("").tree))

    def test_once(self) -> None:
        """However many terms ask for all fields, they are looked at once."""
        record = Counted({"a": "b"})
        self.assertFalse(parse(" OR ".join(f"@ANY =* {number}" for number in range(100))).matches(record))
        self.assertEqual(1, record.looks)

    def test_too_costly(self) -> None:
        """All terms together look at so much and no more."""
        self.patch(thorough, "MOST_WORK", 100_000)
        record = {"a": LONG, "b": ["y"] * 300}
        for kind, most in {"a =* y": 20, "a ==* Y": 20, "a =~ y": 20, "a =~ '[y]'": 5, "b =~ '[z]'": 1}.items():
            with self.subTest(term=kind):
                self.assertFalse(parse(" OR ".join([kind] * most)).matches(record))
                query = parse(" OR ".join([kind] * (2 * most + 1)))
                error = self.assertRaises(QueryTooCostly, query.matches, record)
                self.assertNotIn("xxx", str(error))
        self.assertFalse(parse(" OR ".join(["a = y"] * 500)).matches(record))

    def test_costly_expressions(self) -> None:
        """Large regular expressions count on short texts too, and one alone has its own bound."""
        large = " OR ".join(f"a =~ '(z?){{900}}{number}'" for number in range(100))
        self.assertRaises(QueryTooCostly, parse(large).matches, {"a": "z" * 2_000})
        self.assertRaises(RegexTooCostly, parse("a =~ '(z?){900}y'").matches, {"a": "z" * 100_000})
