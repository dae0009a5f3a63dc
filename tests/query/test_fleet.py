"""
Tests for L{webhookrx.query.fleet}. That it matches what queries match one by one is in C{test_properties}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query import Fleet, Query, parse
from webhookrx.query.query_tree import Term

ROUTERS = [
    {"name": f"router-{number:03d}", "label": {"site": ("fra", "AMS")[number % 2]}, "ip": [f"10.0.0.{number}"]}
    for number in range(100)
]


class Counted(Mapping[str, Any]):
    """A record that counts how often it is looked at."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        self.looks = 0

    def __getitem__(self, name: str) -> Any:
        self.looks += 1
        return self.record[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.record)

    def __len__(self) -> int:
        return len(self.record)


def counting(query: Query, asked: list[str]) -> Query:
    """Return a query of one term that notes each text that its predicate is asked."""
    term = query.tree
    assert isinstance(term, Term)
    holds = term.predicate.holds

    def noting(text: str) -> bool:
        asked.append(text)
        return holds(text)

    predicate = term.predicate._replace(holds=noting)
    changed = {name: getattr(term, name) for name in term.__struct_fields__} | {"predicate": predicate}
    return Query(query.text, Term(**changed))


class FleetTests(SynchronousTestCase):
    """Many records at once."""

    def test_indices(self) -> None:
        """The indices of the records come in order."""
        fleet = Fleet(ROUTERS)

        self.assertEqual([3, 5], fleet.matching(parse("ip = 10.0.0.5 OR name = ROUTER-003")))
        self.assertEqual(list(range(1, 100, 2)), fleet.matching(parse("label.site = ams")))
        self.assertEqual(list(range(100)), fleet.matching(parse("")))
        self.assertEqual([], fleet.matching(parse("name NOT EXISTS")))

    def test_empty(self) -> None:
        """A fleet may have no records."""
        for text in ("", "a = b", "a != b", "a =* b", "@ANY !* ''", "a =~ b", "NOT a EXISTS"):
            self.assertEqual([], Fleet([]).matching(parse(text)))

    def test_casefolded_lengths(self) -> None:
        """Texts whose casefolded form is longer or shorter are kept apart from their neighbours."""
        names = ["ß", "sS", "", "İx", "x", "a\nb", "ﬃ", "K"]
        fleet = Fleet([{"name": name} for name in names])
        table = {
            "ss": [0, 1],
            "s": [0, 1],
            "SS": [0, 1],
            "x": [3, 4],
            "b": [5],
            "fi": [6],
            "k": [7],
            "": list(range(8)),
        }
        for value, expected in table.items():
            with self.subTest(value=value):
                self.assertEqual(expected, fleet.matching(parse(f"name =* '{value}'")))

    def test_each_text_once(self) -> None:
        """A predicate is asked once for each text, whatever number of records and queries share it."""
        asked: list[str] = []
        fleet = Fleet(ROUTERS)
        for _ in range(2):
            self.assertEqual(50, len(fleet.matching(counting(parse("label.site =~ '^(f|x)'"), asked))))

        self.assertEqual(["AMS", "fra"], sorted(asked))

    def test_other_records(self) -> None:
        """A term that was asked of some records only is asked of the others when they are needed."""
        fleet = Fleet(ROUTERS)
        for text, expected in (
            ("label.site = fra AND name =~ '^router-00[0-3]'", [0, 2]),
            ("label.site = ams AND name =~ '^router-00[0-3]'", [1, 3]),
            ("name =~ '^router-00[0-3]'", [0, 1, 2, 3]),
            ("label.site = fra OR NOT name =~ '^router-00[4-9]|-0[1-9]'", [*range(4), *range(4, 100, 2)]),
        ):
            with self.subTest(query=text):
                self.assertEqual(expected, fleet.matching(parse(text)))

    def test_lists(self) -> None:
        """What was found for one list of values is not taken for another."""
        fleet = Fleet([{"name": "a, b"}, {"name": "a"}])

        self.assertEqual([1], fleet.matching(parse("name IN (a, b)")))
        self.assertEqual([0], fleet.matching(parse("name IN ('a, b')")))

    def test_few_texts(self) -> None:
        """Only texts that hold what an expression must find are asked."""
        asked: list[str] = []
        fleet = Fleet(ROUTERS)

        self.assertEqual([42], fleet.matching(counting(parse("name =~ '^Router-042$'"), asked)))
        self.assertEqual(["router-042"], asked)

    def test_index_once(self) -> None:
        """A field of a record is looked up once for all queries."""
        record = Counted({"name": "a"})
        fleet = Fleet([record])
        looks = set()
        for text in ("name = a", "name =* a", "NOT name = b", "name EXISTS"):
            self.assertEqual([0], fleet.matching(parse(text)))
            looks.add(record.looks)

        self.assertEqual(1, len(looks))
        self.assertNotIn(0, looks)

    def test_too_long(self) -> None:
        """A text that is too long for a regular expression is one that it does not match; nothing is raised."""
        fleet = Fleet([{"a": "ab" * 500_000}, {"a": "b"}])
        self.assertEqual([1], fleet.matching(parse("a =~ '^(a?){300}b$'")))
        self.assertEqual([0], fleet.matching(parse("a !~ '^(a?){300}b$'")))
