"""
Tests for L{webhookrx.query.query}: records that hold long texts, or many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from hypothesis import given
from twisted.trial.unittest import SynchronousTestCase

from tests.query.queries import RECORDS, TREES, naive, text_of_tree
from webhookrx.query import QueryTooCostly, parse, query
from webhookrx.query.query import MOST_WORK, most_work
from webhookrx.work import Work

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


class ManyTextsTests(SynchronousTestCase):
    """What matches, and what it costs."""

    @given(TREES, RECORDS)
    def test_same(self, tree: Any, record: Any) -> None:
        """Texts made for all terms at once match as a naive reading of the query says, on small records too."""
        self.patch(query, "_INCLUDED", -1)
        self.patch(query, "_SHORT", -1)
        self.patch(query, "_FEW", -1)
        asked = parse(text_of_tree(tree, lambda choices: choices[0]))
        self.assertEqual(naive(tree, record), asked.matches(record))

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
                self.assertIs(expected, parse(text).matches(LARGE))
        self.assertTrue(parse("").matches(LARGE))

    def test_once(self) -> None:
        """However many terms ask for all fields, they are looked at once."""
        record = Counted({"a": "b"})
        self.assertFalse(parse(" OR ".join(f"@ANY =* {number}" for number in range(100))).matches(record))
        self.assertEqual(1, record.looks)

    def test_too_costly(self) -> None:
        """All terms together look at so much and no more."""
        self.patch(query, "MOST_WORK", 600_000)
        record = {"a": LONG, "b": ["y"] * 300}
        for kind in ("a =* y", "a ==* Y", "a =~ y", "a =~ '[y]'", "b =~ '[z]'", "a < 5", "a IN (1, ::/0)"):
            with self.subTest(term=kind):
                self.assertFalse(parse(" OR ".join([kind] * 5)).matches(record))
                costly = parse(" OR ".join([kind] * 95))
                error = self.assertRaises(QueryTooCostly, costly.matches, record)
                self.assertNotIn("xxx", str(error))
        self.assertFalse(parse(" OR ".join(["a = y"] * 500)).matches(record))

    def test_counted_before(self) -> None:
        """What is looked through, or written as JSON, is counted before that is done, texts and names and all."""
        objects: dict[str, Any] = {"text": {"b": LONG}, "name": {LONG: 1}, "raw": {"n": msgspec.Raw(b"1" * 5_000)}}
        for name in objects:
            self.assertRaises(QueryTooCostly, parse(f"{name} =* y").decide, objects, Work(3 * len(LONG)))
        empty = {"a": [[]] * 100, "b": {str(number): {} for number in range(100)}}
        for field in ("@ANY", "a", "b"):
            self.assertRaises(QueryTooCostly, parse(f"{field} =* y").decide, empty, Work(100 * 100))

    def test_short(self) -> None:
        """Terms that look at short texts count, too: each for itself, and for what it looks at."""
        query = parse(" AND ".join(["a != y"] * 10))
        spent = []
        for text in ("x", "x" * 1_000, "日" * 1_000):
            work = Work(MOST_WORK)
            self.assertTrue(query.decide({"a": text}, work))
            spent.append(MOST_WORK - work.left)
        self.assertGreater(spent[0], 10 * 100)
        self.assertGreater(spent[1], 10 * 1_000)
        self.assertGreater(spent[2], 10 * 3_000)
        self.assertRaises(QueryTooCostly, query.decide, {"a": "x" * 1_000}, Work(spent[1] - 1))

    def test_costly_expressions(self) -> None:
        """Large regular expressions count for more, on short texts too."""
        large = " OR ".join(f"a =~ '(z?){{900}}{number}'" for number in range(100))
        self.assertRaises(QueryTooCostly, parse(large).matches, {"a": "z" * 2_000})
        self.assertRaises(QueryTooCostly, parse("a =~ '(z?){900}y'").matches, {"a": "z" * 200_000})


class MostWorkTests(SynchronousTestCase):
    """What a query takes at most."""

    def test_no_record_takes_more(self) -> None:
        """A record of single values takes no more than what was told, and some take nearly as much."""
        for text in (
            "a = x",
            "a =~ '^x+y$' AND b !* y",
            "a IN (x, 10.0.0.0/8, 10.1.0.0/16)",
            "NOT (a == x OR b EXISTS)",
        ):
            query = parse(text)
            most = most_work(query, 1000)
            assert most is not None
            for value in ("x" * 1000, "x", "ß" * 1000, 7):
                work = Work(most)
                query.decide({"a": value, "b": value}, work)
            self.assertGreaterEqual(work.left, 0)
        work = Work(1_000_000)
        parse("a = y").decide({"a": "ß" * 1000}, work)
        self.assertEqual(most_work(parse("a = y"), 1000), 1_000_000 - work.left)

    def test_any_field(self) -> None:
        """With all fields it depends on how many there are."""
        self.assertIsNone(most_work(parse("a = x OR @ANY = y"), 1000))
