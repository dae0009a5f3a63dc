"""
The tables of counts: sums by step and series, which only grow until they are cut, and what is counted already.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from webhookrx.console.store.history import StoreTransaction
from webhookrx.management.rollups import ROLLUP_STEPS, CountedPart, CountedStart, RollupStep

MOST_CUT: Final = 5_000
"""Old rows that one transaction cuts off, so that no other write waits long for it."""


class SeriesKey(NamedTuple):
    """
    What is counted by itself.

    @ivar router: the guid of a router; empty for the sum of all routers, whose C{connector} is made of the labels.
    """

    router: str
    connector: str


class SeriesLabels(msgspec.Struct, frozen=True):
    """
    The labels of a series; those of a cube of all routers have no C{router}, and only product and vendor in C{labels}.

    @ivar labels: of the connector.
    @ivar router_labels: of the router.
    """

    connector: str = ""
    rule: str = ""
    port: int = 0
    labels: dict[str, str] = {}
    router: str = ""
    router_labels: dict[str, str] = {}

    def for_all_routers(self) -> tuple[SeriesKey, SeriesLabels]:
        """Return the series to which this one adds in the cube without routers."""
        product, vendor = (self.labels.get(name, "") for name in ("product", "vendor"))
        key = SeriesKey("", msgspec.json.encode([self.rule, product, vendor, self.port]).decode())
        return key, SeriesLabels(rule=self.rule, port=self.port, labels={"product": product, "vendor": vendor})

    @property
    def record(self) -> dict[str, Any]:
        """The fields of queries. C{meta.connector} is as messages have it."""
        connector = {"type": "webhook", "name": self.connector, "port": self.port, "labels": self.labels}
        connector = {name: value for name, value in connector.items() if value}
        record: dict[str, Any] = {"connector": connector, "meta": {"connector": connector}, "rule": self.rule}
        if self.router:
            record |= {"router": self.router, "label": self.router_labels}
        return record


class KnownSeries(NamedTuple):
    """
    A series in the store.

    @ivar number: by which its sums are found.
    @ivar last: when its last message came, seconds since the epoch; 0 if none ever has.
    """

    number: int
    labels: SeriesLabels
    last: float


class CountWrites(NamedTuple):
    """
    What one transaction adds.

    @ivar parts: by series and minute, seconds since the epoch.
    @ivar labels: of each series.
    @ivar last: the last message of each, seconds since the epoch.
    @ivar starts: by router and start, what is counted with it.
    """

    parts: Mapping[SeriesKey, Mapping[int, CountedPart]]
    labels: Mapping[SeriesKey, SeriesLabels]
    last: Mapping[SeriesKey, float]
    starts: Mapping[str, Mapping[int, CountedStart]]


class RowAnswers(msgspec.Struct, array_like=True, gc=False):
    """The first that a row has in C{other}: answers by the bucket of their time."""

    answers: list[int]


class RowRest(RowAnswers, array_like=True, gc=False):
    """What a row has in C{other}; see L{CountedPart}. An older version has written the first three alone."""

    answer_seconds: float
    refused: dict[str, int]
    dropped: int = 0
    text_bodies: int = 0


_DAY: Final = 86_400
_SERIES_KEPT: Final = 2 * _DAY
"""Seconds for which a series is kept once all its sums are gone."""

_pack: Final = msgspec.msgpack.encode
unpacked_rest: Final = msgspec.msgpack.Decoder(RowRest).decode
unpacked_answers: Final = msgspec.msgpack.Decoder(RowAnswers).decode
_decode_labels: Final = msgspec.json.Decoder(SeriesLabels).decode
_unpack_start: Final = msgspec.msgpack.Decoder(CountedStart).decode


def write_counts(transaction: StoreTransaction, writes: CountWrites) -> None:
    """Add counts to every step and to both cubes, and remember what they contain."""
    db = transaction.db
    db.create_function("joined_rest", 2, _joined_rest, deterministic=True)
    cube: dict[SeriesKey, dict[int, CountedPart]] = {}
    cube_labels: dict[SeriesKey, SeriesLabels] = {}
    cube_last: dict[SeriesKey, float] = {}
    for key, parts in writes.parts.items():
        whole, labels = writes.labels[key].for_all_routers()
        cube_labels[whole] = labels
        cube_last[whole] = max(cube_last.get(whole, 0.0), writes.last.get(key, 0.0))
        _add(cube.setdefault(whole, {}), parts.items())
    for table, series, of, last in (
        ("roll", writes.parts, writes.labels, writes.last),
        ("cube", cube, cube_labels, cube_last),
    ):
        numbers = {key: _number(db, key, of[key], last.get(key, 0.0), max(series[key])) for key in series}
        for step in ROLLUP_STEPS:
            _add_rows(db, table, step, {numbers[key]: parts for key, parts in series.items()})
    for router, starts in writes.starts.items():
        db.execute("DELETE FROM counted_start WHERE router = ?", (router,))
        db.executemany(
            "INSERT INTO counted_start (router, begun, place, number, until, series) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (router, begun, place, start.number, start.until, _pack(start))
                for place, (begun, start) in enumerate(starts.items())
            ],
        )


def read_starts(db: sqlite3.Connection) -> dict[str, dict[int, CountedStart]]:
    """Return by router what is counted already."""
    found: dict[str, dict[int, CountedStart]] = {}
    for router, begun, packed in db.execute("SELECT router, begun, series FROM counted_start ORDER BY router, place"):
        found.setdefault(router, {})[begun] = _unpack_start(packed)
    return found


def read_last_messages(db: sqlite3.Connection) -> dict[str, dict[str, float]]:
    """
    Return by router the connectors of which there are sums, and when the last message of each came, seconds since the
    epoch; 0 if none ever has.
    """
    found: dict[str, dict[str, float]] = {}
    rows = db.execute("SELECT router, connector, coalesce(last_message, 0) FROM series WHERE router != ''")
    for router, connector, last in rows:
        found.setdefault(router, {})[connector] = last
    return found


def cut_counts(transaction: StoreTransaction, steps: Sequence[RollupStep] = ROLLUP_STEPS) -> int:
    """
    Delete what is older than it is kept: sums, and then series without any. There is more of it when L{MOST_CUT} were
    deleted.

    @param steps: those of L{ROLLUP_STEPS}, perhaps kept for another time.
    """
    now, left = int(transaction.now), MOST_CUT
    for table in ("roll", "cube"):
        for step in steps:
            name = f"{table}_{step.name}"
            left -= transaction.execute(
                f"DELETE FROM {name} WHERE (at, series) IN (SELECT at, series FROM {name} WHERE at < ? LIMIT ?)",  # noqa: S608
                (now - step.kept, left),
            ).rowcount
    # Not before their sums: the number of one that is deleted may be another's later.
    left -= transaction.execute(
        "DELETE FROM series WHERE id IN (SELECT id FROM series WHERE counted_day < ? LIMIT ?)",
        (now - steps[-1].kept - _SERIES_KEPT, left),
    ).rowcount
    return MOST_CUT - left


def read_series(db: sqlite3.Connection, *, of_routers: bool) -> Iterator[KnownSeries]:
    """
    Yield all series.

    @param of_routers: by router and connector; else the cube of all routers.
    """
    for number, labels, last in db.execute(
        "SELECT id, labels, coalesce(last_message, 0) FROM series WHERE (router != '') = ?", (of_routers,)
    ):
        yield KnownSeries(number, _decode_labels(labels), last)


def _number(db: sqlite3.Connection, key: SeriesKey, labels: SeriesLabels, last: float, newest: int) -> int:
    (number,) = db.execute(
        "INSERT INTO series (router, connector, rule, labels, last_message, counted_day) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (router, connector) DO UPDATE SET rule = excluded.rule, labels = excluded.labels,"
        " last_message = max(coalesce(last_message, 0), excluded.last_message),"
        " counted_day = max(counted_day, excluded.counted_day) RETURNING id",
        (*key, labels.rule, msgspec.json.encode(labels).decode(), last, newest - newest % _DAY),
    ).fetchone()
    return int(number)


def _add_rows(
    db: sqlite3.Connection, table: str, step: RollupStep, series: Mapping[int, Mapping[int, CountedPart]]
) -> None:
    rows: list[tuple[int, int, int, int, bytes | None]] = []
    for number, parts in series.items():
        sums: dict[int, CountedPart] = {}
        _add(sums, ((at - at % step.seconds, part) for at, part in parts.items()))
        rows += [(at, number, part.messages, part.bytes, _packed_rest(part)) for at, part in sums.items()]
    # In the order of the table, so that its pages are written once.
    rows.sort(key=lambda row: row[:2])
    db.executemany(
        f"INSERT INTO {table}_{step.name} (at, series, messages, bytes, other) VALUES (?, ?, ?, ?, ?)"  # noqa: S608
        " ON CONFLICT (at, series) DO UPDATE SET messages = messages + excluded.messages,"
        " bytes = bytes + excluded.bytes, other = joined_rest(other, excluded.other)",
        rows,
    )


def _add(sums: dict[int, CountedPart], parts: Iterable[tuple[int, CountedPart]]) -> None:
    for at, part in parts:
        sums.setdefault(at, CountedPart()).add(part)


def _packed_rest(part: CountedPart) -> bytes | None:
    if not any(part.answers) and not part.refused and not part.dropped and not part.text_bodies:
        return None
    return _pack(RowRest(part.answers, part.answer_seconds, part.refused, part.dropped, part.text_bodies))


def unpacked_part(messages: int, size: int, packed: bytes | None) -> CountedPart:
    """Return the sum of a row, of its columns C{messages}, C{bytes} and C{other}."""
    if packed is None:
        return CountedPart(messages, size)
    rest = unpacked_rest(packed)
    return CountedPart(messages, size, rest.answers, rest.answer_seconds, rest.refused, rest.dropped, rest.text_bodies)


def _joined_rest(first: bytes | None, second: bytes | None) -> bytes | None:
    if first is None or second is None:
        return second if first is None else first
    joined = unpacked_part(0, 0, first)
    joined.add(unpacked_part(0, 0, second))
    return _packed_rest(joined)
