"""
Decides many queries for many records: an index by field, in which each text is tested once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, Final, TypeAlias

from webhookrx.message.fields import MISSING, Path, getter, leaves
from webhookrx.query.predicates import Predicate
from webhookrx.query.query import Query, compared_text, compared_texts
from webhookrx.query.query_tree import And, Everything, Exists, Node, Not, Or, Term
from webhookrx.regex import RegexTooCostly

_AS_NUMBERS: Final = bytes.maketrans(b"01", b"\x00\x01")

#: A set of records is an integer: bit 0 is the first record.
Records: TypeAlias = int


class Fleet:
    """
    Many records, for many queries. A text that is too long for a regular expression counts as one that it does not
    match.

    @param records: nested dicts; they must not change as long as this is in use.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records = records
        self._all: Records = (1 << len(records)) - 1
        self._columns: dict[Path | None, _Column] = {}
        self._answers: dict[tuple[Path | None, str, bool, str], Records] = {}

    def matching(self, query: Query) -> list[int]:
        """Return the index of each record that L{Query.matches}, in order."""
        bits = f"{self._find(query.tree):b}"
        return list(compress(range(len(self._records)), bits[::-1].encode().translate(_AS_NUMBERS)))

    def _find(self, node: Node) -> Records:
        match node:
            case Term():
                holding = self._holding(node)
                return self._all & ~holding if node.negated else holding
            case Exists():
                return self._column(node.path).present
            case Not():
                return self._all & ~self._find(node.operand)
            case And():
                found = self._all
                for operand in node.operands:
                    found &= self._find(operand)
                return found
            case Or():
                found = 0
                for operand in node.operands:
                    found |= self._find(operand)
                return found
            case Everything():
                return self._all

    def _holding(self, term: Term) -> Records:
        predicate = term.predicate
        question = (term.path, predicate.kind, predicate.strict, predicate.value)
        answer = self._answers.get(question)
        if answer is None:
            answer = self._answers[question] = self._column(term.path).holding(predicate)
        return answer

    def _column(self, path: Path | None) -> _Column:
        column = self._columns.get(path)
        if column is None:
            column = self._columns[path] = _Column(self._texts(path))
        return column

    def _texts(self, path: Path | None) -> Iterable[Iterable[str] | None]:
        if path is None:
            return (map(compared_text, leaves(record)) for record in self._records)
        values = map(getter(path), self._records)
        return (None if value is MISSING else compared_texts(value) for value in values)


class _Column:
    """
    A field of all records.

    @ivar present: the records that have the field.
    """

    def __init__(self, texts: Iterable[Iterable[str] | None]) -> None:
        self.present: Records = 0
        self._by_text: dict[str, Records] = {}
        by_text = self._by_text
        for number, each in enumerate(texts):
            if each is not None:
                bit = 1 << number
                self.present |= bit
                for text in each:
                    by_text[text] = by_text.get(text, 0) | bit

    def holding(self, predicate: Predicate) -> Records:
        """Return the records with a text for which a predicate holds."""
        kind, strict, wanted, holds, needs, _ = predicate
        if kind == "equals":
            return (self._by_text if strict else self._by_folded).get(wanted, 0)
        found = 0
        if kind == "contains" and not strict:
            for folded, records in self._by_folded.items():
                if wanted in folded:
                    found |= records
            return found
        for text, records in self._by_text.items():
            if needs in self._folded[text] and _holds(holds, text):
                found |= records
        return found

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {text: text.casefold() for text in self._by_text}

    @cached_property
    def _by_folded(self) -> dict[str, Records]:
        by_folded: dict[str, Records] = {}
        for text, records in self._by_text.items():
            folded = self._folded[text]
            by_folded[folded] = by_folded.get(folded, 0) | records
        return by_folded


def _holds(holds: Callable[[str], bool], text: str) -> bool:
    try:
        return holds(text)
    except RegexTooCostly:
        return False
