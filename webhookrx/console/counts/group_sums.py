"""
Sums of one measure by groups of series: only what the measure needs is read and added up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from operator import add
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from webhookrx.console.counts.count_reading import PlainMeasure, WantedSums, read_packed, read_sums, read_totals
from webhookrx.console.counts.count_tables import RowRest, unpacked_answers, unpacked_rest
from webhookrx.management.agent_protocol import BUCKETS
from webhookrx.management.rollups import CountedPart, answer_quantile

GroupMeasure: TypeAlias = Literal["messages", "bytes", "answers", "refused", "dropped", "text_bodies", "p50", "p99"]
"""What can be summed up by time."""

_T = TypeVar("_T")


def measured(part: CountedPart, measure: GroupMeasure) -> float | None:
    """Return one measure; C{p50} and C{p99} are seconds, and None without answers."""
    match measure:
        case "messages" | "bytes" | "dropped" | "text_bodies":
            count: int = getattr(part, measure)
            return count
        case "answers":
            return sum(part.answers) + sum(part.refused.values())
        case "refused":
            return sum(part.refused.values())
        case "p50":
            return answer_quantile(part.answers, 0.5)
        case "p99":
            return answer_quantile(part.answers, 0.99)


class GroupSums(Generic[_T]):
    """How a measure is read, added up and shown; amounts are such as can be added up."""

    def points(self, db: sqlite3.Connection, wanted: WantedSums) -> dict[int, dict[int, _T]]:
        """Return amounts by group and moment."""
        raise NotImplementedError

    def totals(self, db: sqlite3.Connection, wanted: WantedSums) -> dict[int, _T]:
        """Return amounts of the whole time by group."""
        raise NotImplementedError

    def total(self, amounts: Iterable[_T]) -> _T:
        """Return the sum of amounts."""
        raise NotImplementedError

    def shown(self, amount: _T) -> float | None:
        """Return the measure of an amount."""
        raise NotImplementedError


class _Counts(GroupSums[int]):
    """A count."""

    def total(self, amounts: Iterable[int]) -> int:
        """See L{GroupSums.total}."""
        return sum(amounts)

    def shown(self, amount: int) -> float | None:
        """See L{GroupSums.shown}."""
        return amount


class _PlainCounts(_Counts):
    """A count with a column of its own."""

    def __init__(self, column: PlainMeasure) -> None:
        self._column = column

    def points(self, db: sqlite3.Connection, wanted: WantedSums) -> dict[int, dict[int, int]]:
        """See L{GroupSums.points}."""
        points: dict[int, dict[int, int]] = {}
        for at, place, count in read_sums(db, wanted, self._column):
            points.setdefault(place, {})[at] = count
        return points

    def totals(self, db: sqlite3.Connection, wanted: WantedSums) -> dict[int, int]:
        """See L{GroupSums.totals}."""
        return dict(read_totals(db, wanted, self._column))


class _PackedCounts(_Counts):
    """A count from what has no column of its own."""

    def __init__(self, count: Callable[[RowRest], int]) -> None:
        self._count = count

    def points(self, db: sqlite3.Connection, wanted: WantedSums) -> dict[int, dict[int, int]]:
        """See L{GroupSums.points}."""
        points: dict[int, dict[int, int]] = {}
        for at, place, packed in read_packed(db, wanted):
            of = points.setdefault(place, {})
            of[at] = of.get(at, 0) + (self._count(unpacked_rest(packed)) if packed else 0)
        return points

    def totals(self, db: sqlite3.Connection, wanted: WantedSums) -> dict[int, int]:
        """See L{GroupSums.totals}."""
        totals: dict[int, int] = {}
        for _, place, packed in read_packed(db, wanted):
            totals[place] = totals.get(place, 0) + (self._count(unpacked_rest(packed)) if packed else 0)
        return totals


class _AnswerTimes(GroupSums[list[int]]):
    """A quantile of times to answers, whose amounts are answers by the bucket of their time."""

    def __init__(self, quantile: float) -> None:
        self._quantile = quantile

    def points(self, db: sqlite3.Connection, wanted: WantedSums) -> dict[int, dict[int, list[int]]]:
        """See L{GroupSums.points}."""
        points: dict[int, dict[int, list[int]]] = {}
        for at, place, packed in read_packed(db, wanted):
            _add_answers(points.setdefault(place, {}), at, packed)
        return points

    def totals(self, db: sqlite3.Connection, wanted: WantedSums) -> dict[int, list[int]]:
        """See L{GroupSums.totals}."""
        totals: dict[int, list[int]] = {}
        for _, place, packed in read_packed(db, wanted):
            _add_answers(totals, place, packed)
        return totals

    def total(self, amounts: Iterable[list[int]]) -> list[int]:
        """See L{GroupSums.total}."""
        return [sum(bucket) for bucket in zip(*amounts, strict=True)] or _NO_ANSWERS

    def shown(self, amount: list[int]) -> float | None:
        """See L{GroupSums.shown}."""
        return answer_quantile(amount, self._quantile)


_NO_ANSWERS: Final = [0] * BUCKETS


def _add_answers(amounts: dict[int, list[int]], key: int, packed: bytes | None) -> None:
    answers = unpacked_answers(packed).answers if packed else _NO_ANSWERS
    known = amounts.get(key)
    amounts[key] = answers if known is None else list(map(add, known, answers))


GROUP_SUMS: Final[dict[GroupMeasure, GroupSums[Any]]] = {
    "messages": _PlainCounts("messages"),
    "bytes": _PlainCounts("bytes"),
    "answers": _PackedCounts(lambda rest: sum(rest.answers) + sum(rest.refused.values())),
    "refused": _PackedCounts(lambda rest: sum(rest.refused.values())),
    "dropped": _PackedCounts(lambda rest: rest.dropped),
    "text_bodies": _PackedCounts(lambda rest: rest.text_bodies),
    "p50": _AnswerTimes(0.5),
    "p99": _AnswerTimes(0.99),
}
"""By measure."""
