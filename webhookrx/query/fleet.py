"""
Which of many records match, for many queries: an index by field, so that each text is asked once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, compress
from typing import Any, Final, TypeAlias

from webhookrx.message.fields import MISSING, Path, getter, leaves
from webhookrx.query.predicates import Predicate
from webhookrx.query.query import Query
from webhookrx.query.query_tree import And, Everything, Exists, Node, Not, Or, Term
from webhookrx.query.texts import compared_text, compared_texts
from webhookrx.regex import RegexTooCostly

_AS_NUMBERS: Final = bytes.maketrans(b"01", b"\x00\x01")
_EFFORTS: Final = {"equals": 0, "contains": 2, "compares": 2, "among": 2, "matches": 4}


#: A set of records is an integer: bit 0 is the first record.
Records: TypeAlias = int


class _Index:
    """
    The texts of a field.

    @ivar present: the records that have the field.
    @ivar by_text: the records that have a text.
    """

    def __init__(self, texts: Iterable[Iterable[str] | None]) -> None:
        self.present: Records = 0
        self.by_text: dict[str, Records] = {}
        by_text = self.by_text
        for number, each in enumerate(texts):
            if each is not None:
                bit = 1 << number
                self.present |= bit
                for text in each:
                    by_text[text] = by_text.get(text, 0) | bit

    @cached_property
    def by_folded(self) -> dict[str, Records]:
        """The records that have a text, by the casefolded text."""
        by_folded: dict[str, Records] = {}
        for text, records in self.by_text.items():
            folded = text.casefold()
            by_folded[folded] = by_folded.get(folded, 0) | records
        return by_folded

    def containing(self, needed: str) -> Iterator[str]:
        """
        Yield each text that contains another one when both are casefolded.

        @param needed: casefolded, with no line end in it; not empty.
        """
        texts, joined, ends = self._joined
        at = joined.find(needed)
        while at >= 0:
            which = bisect_right(ends, at)
            yield texts[which]
            at = joined.find(needed, ends[which])

    @cached_property
    def _joined(self) -> tuple[list[str], str, list[int]]:
        """All texts; the same casefolded, as lines of one text, since to find lines is quick; where each line ends."""
        texts = list(self.by_text)
        lines = [text.casefold() + "\n" for text in texts]
        return texts, "".join(lines), list(accumulate(map(len, lines)))


class _Question:
    """
    What is known about one predicate on one field: the records that were asked, and those for which it holds.
    """

    def __init__(self, index: _Index, predicate: Predicate) -> None:
        self._index = index
        self._predicate = predicate
        self._asked: Records = 0
        self._holding: Records = 0

    def holding(self, among: Records) -> Records:
        """Return those records for a text of which the predicate holds."""
        asking = among & ~self._asked
        if asking:
            if self._predicate.kind == "equals":
                by_text = self._index.by_text if self._predicate.strict else self._index.by_folded
                self._holding |= by_text.get(self._predicate.value, 0)
            else:
                self._ask(asking)
            self._asked |= asking
        return self._holding & among

    def _ask(self, asking: Records) -> None:
        holds, needs = self._predicate.holds, self._predicate.needs
        by_text = self._index.by_text
        for text in self._index.containing(needs) if needs else by_text:
            if by_text[text] & asking and _holds(holds, text):
                self._holding |= by_text[text]


def _holds(holds: Callable[[str], bool], text: str) -> bool:
    try:
        return holds(text)
    except RegexTooCostly:
        return False


class Fleet:
    """
    Many records, asked many queries. A text that is too long for a regular expression counts as one that it does not
    match.

    @param records: nested dicts; they must not change as long as this is in use.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records = records
        self._all: Records = (1 << len(records)) - 1
        self._indices: dict[Path | None, _Index] = {}
        self._questions: dict[tuple[Path | None, str, bool, str], _Question] = {}

    def matching(self, query: Query) -> list[int]:
        """Return the index of each record that L{Query.matches}, in order."""
        bits = f"{self._find(query.tree, self._all):b}"
        return list(compress(range(len(self._records)), bits[::-1].encode().translate(_AS_NUMBERS)))

    def _find(self, node: Node, among: Records) -> Records:
        match node:
            case Term():
                holding = self._question(node).holding(among)
                return among & ~holding if node.negated else holding
            case Exists():
                return among & self._index(node.path).present
            case Not():
                return among & ~self._find(node.operand, among)
            case And():
                for operand in sorted(node.operands, key=_effort):
                    among = self._find(operand, among)
                return among
            case Or():
                found = 0
                for operand in sorted(node.operands, key=_effort):
                    found |= self._find(operand, among & ~found)
                return found
            case Everything():
                return among

    def _question(self, term: Term) -> _Question:
        predicate = term.predicate
        key = (term.path, predicate.kind, predicate.strict, predicate.value)
        question = self._questions.get(key)
        if question is None:
            question = self._questions[key] = _Question(self._index(term.path), predicate)
        return question

    def _index(self, path: Path | None) -> _Index:
        index = self._indices.get(path)
        if index is None:
            index = self._indices[path] = _Index(self._texts(path))
        return index

    def _texts(self, path: Path | None) -> Iterable[Iterable[str] | None]:
        if path is None:
            return (map(compared_text, leaves(record)) for record in self._records)
        values = map(getter(path), self._records)
        return (None if value is MISSING else compared_texts(value) for value in values)


def _effort(node: Node) -> int:
    """Return a number that is higher for what takes longer, so that it is asked of the fewest records."""
    match node:
        case Term():
            return _EFFORTS[node.predicate.kind] + (node.path is None)
        case Not():
            return _effort(node.operand)
        case And() | Or():
            return max(map(_effort, node.operands))
        case _:
            return 0
