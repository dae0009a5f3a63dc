"""
Reads sums of counts by groups of series, within bounds of rows and time.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from webhookrx.console.counts.count_tables import unpacked_part
from webhookrx.errors import WebhookrxError
from webhookrx.management.rollups import CountedPart, RollupStep

PlainMeasure: TypeAlias = Literal["messages", "bytes"]
"""Measures that have columns of their own."""

SEEK_COST: Final = 4
"""Rows that can be read one after the other in the time in which one is looked for."""

_STEPS_BETWEEN_LOOKS: Final = 10_000
"""Instructions of SQLite after which it looks at the time: less than a millisecond."""

#: Moments and series come as JSON: a statement has some thousand parameters at most. SQLite joins them by itself, so
#: that no thread holds the interpreter for each row. C{CROSS JOIN} keeps the order.
_WANTED: Final = (
    "WITH wanted(series, place) AS MATERIALIZED (SELECT CAST(key AS INTEGER), value FROM json_each(:places)),"
    " moment(at) AS MATERIALIZED (SELECT value FROM json_each(:moments)) SELECT {columns}"
)
_SCAN: Final = (
    " FROM {table} AS part CROSS JOIN wanted ON wanted.series = part.series WHERE part.at >= :start AND part.at < :end"
)
_SEEK: Final = (
    " FROM moment CROSS JOIN wanted CROSS JOIN {table} AS part ON part.at = moment.at AND part.series = wanted.series"
)


class TookTooLong(WebhookrxError):
    """A question about counts was not answered in its time."""


class TimeLimit:
    """
    The time that a question may take.

    @param monotonic: the monotonic clock, seconds.
    """

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until = monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Whether it is over."""
        return self._monotonic() > self._until

    def check(self) -> None:
        """
        @raise TookTooLong: it is over.
        """
        if self.is_over:
            raise TookTooLong

    @contextmanager
    def bounds(self, db: sqlite3.Connection) -> Iterator[None]:
        """
        Have the statements of a connection end with it.

        @raise TookTooLong: they did.
        """
        db.set_progress_handler(lambda: self.is_over, _STEPS_BETWEEN_LOOKS)
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise TookTooLong from None
        finally:
            db.set_progress_handler(None, 0)


class WantedSums(NamedTuple):
    """
    Which sums are read.

    @ivar start: seconds since the epoch, rounded down to the step; C{end} is not included, unless inside of a step.
    @ivar places: the group of each series that is wanted, by its number.
    @ivar known: how many series there are.
    """

    of_routers: bool
    step: RollupStep
    start: int
    end: int
    places: Mapping[int, int]
    known: int


def rows_of_a_step(wanted: int, known: int) -> int:
    """Return how many rows are read for one moment, to find some of all series, as far as their time goes."""
    return min(known, wanted * SEEK_COST)


def read_sums(db: sqlite3.Connection, wanted: WantedSums, column: PlainMeasure) -> Iterator[tuple[int, int, int]]:
    """Yield moment, group and sum of a measure with a column of its own: SQLite adds them up."""
    yield from _rows(db, wanted, f"part.at, wanted.place, sum(part.{column})", " GROUP BY 1, 2")


def read_totals(db: sqlite3.Connection, wanted: WantedSums, column: PlainMeasure) -> Iterator[tuple[int, int]]:
    """Yield group and sum of the whole time; see L{read_sums}."""
    yield from _rows(db, wanted, f"wanted.place, sum(part.{column})", " GROUP BY 1")


def read_packed(db: sqlite3.Connection, wanted: WantedSums) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield moment, group and what has no column of its own, as it is written, for each row; None for nothing."""
    yield from _rows(db, wanted, "part.at, wanted.place, part.other", "")


def read_whole(db: sqlite3.Connection, wanted: WantedSums) -> Iterator[tuple[int, int, CountedPart]]:
    """Yield moment, group and all that a row has, for each row."""
    columns = "part.at, wanted.place, part.messages, part.bytes, part.other"
    for at, place, messages, size, rest in _rows(db, wanted, columns, ""):
        yield at, place, unpacked_part(messages, size, rest)


def _rows(db: sqlite3.Connection, wanted: WantedSums, columns: str, more: str) -> sqlite3.Cursor:
    table = f"{'roll' if wanted.of_routers else 'cube'}_{wanted.step.name}"
    first = wanted.start - wanted.start % wanted.step.seconds
    seeks = len(wanted.places) * SEEK_COST < wanted.known
    moments = list(range(first, wanted.end, wanted.step.seconds)) if seeks else []
    statement = (_WANTED + (_SEEK if seeks else _SCAN)).format(columns=columns, table=table) + more
    places, at = (msgspec.json.encode(each).decode() for each in (wanted.places, moments))
    return db.execute(statement, {"places": places, "moments": at, "start": first, "end": wanted.end})
