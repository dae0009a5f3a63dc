"""
Counts of a day that a console has in its store before it is measured.
"""

from __future__ import annotations

import time
from typing import Final

import msgspec

from webhookrx.console.counts.count_tables import CountWrites, SeriesKey, SeriesLabels, write_counts
from webhookrx.console.store.database import StoreWriter
from webhookrx.management.agent_protocol import BUCKETS
from webhookrx.management.rollups import ROLLUP_STEPS, CountedPart

#: For how long there are sums: of each router and connector less than a console keeps, as a benchmark would write for
#: minutes; but enough of each step for questions of up to a month.
_OF_ROUTERS: Final = {"1m": 3600, "10m": 6 * 3600, "1h": 86_400, "1d": 30 * 86_400}
_OF_ALL: Final = {"1m": 6 * 3600, "10m": 3 * 86_400, "1h": 30 * 86_400, "1d": 30 * 86_400}


def write_past(path: str, labels: dict[str, list[SeriesLabels]]) -> int:
    """
    Write as if each connector had been busy in every minute.

    @param path: of the store, which has none yet.
    @param labels: of all connectors, by the guid of their router.
    @return: how many rows were written.
    """
    writer = StoreWriter(path, time.time)
    at = int(time.time()) // 60 * 60 - 60
    answers = [5, 4, 1, *[0] * (BUCKETS - 3)]
    known = {SeriesKey(guid, each.connector): each for guid, of in labels.items() for each in of}
    parts = {
        key: {at: CountedPart(10 + number % 97, 5000 + number, answers, 0.02, {"bad_token": 1 + number % 3})}
        for number, key in enumerate(known)
    }
    writer.write(lambda tx: write_counts(tx, CountWrites(parts, known, dict.fromkeys(known, float(at)), {})))
    rows = 0
    for table, kept in (("roll", _OF_ROUTERS), ("cube", _OF_ALL)):
        for step in ROLLUP_STEPS:
            newest = at - at % step.seconds
            moments = list(range(newest - kept[step.name], newest, step.seconds))
            for begin in range(0, len(moments), 5):
                some = msgspec.json.encode(moments[begin : begin + 5]).decode()
                rows += writer.write(
                    lambda tx, name=f"{table}_{step.name}", some=some, newest=newest: (
                        tx.execute(  # type: ignore[misc]
                            f"INSERT INTO {name} SELECT value, series, messages + value / 60 * 7919 % 50, bytes, other"
                            f" FROM json_each(?) CROSS JOIN {name} WHERE {name}.at = ?",
                            (some, newest),
                        ).rowcount
                    )
                )
    writer.close()
    return rows
