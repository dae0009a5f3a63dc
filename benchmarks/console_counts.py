"""
C{python -m benchmarks.console_counts}: how long a console takes for a minute of counts, and for questions about them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from time import perf_counter, process_time
from typing import Final

import msgspec

from webhookrx.console.counts.analytics import CountRange, read_counts
from webhookrx.console.counts.count_reading import TimeLimit
from webhookrx.console.counts.count_tables import CountWrites, SeriesKey, SeriesLabels, write_counts
from webhookrx.console.counts.group_sums import GroupMeasure
from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.management.agent_body import read_body
from webhookrx.management.agent_protocol import (
    BUCKETS,
    CountsReport,
    RouterReport,
    SeriesCounts,
)
from webhookrx.management.rollups import SECOND, CountedPart, RouterCounts
from webhookrx.query import parse

NOW: Final = 1_800_000_000
PRODUCTS: Final = 20
CONNECTORS: Final = 20
"""Of a router."""

QUESTIONS: Final[tuple[tuple[str, str, GroupMeasure, bool], ...]] = (
    ("", "connector.labels.product", "messages", True),
    ("", "router", "messages", True),
    ("", "connector.name", "messages", True),
    ("", "router", "p99", True),
    ("router = router-7", "connector.name", "messages", False),
    ("router = router-7", "connector.name", "p99", False),
)
"""A query, a label, a measure, and whether all series are asked for."""

INTERVAL: Final = 15
"""Seconds between two reports of a router."""


def labels(router: int, connector: int) -> SeriesLabels:
    """Return the labels of a connector."""
    of_connector = {"product": f"product-{connector % PRODUCTS}", "vendor": "generic"}
    name = f"router-{router}"
    return SeriesLabels(f"{name}-{connector}", f"rule-{connector}", 8000 + connector, of_connector, name)


def minute(routers: int, at: int) -> CountWrites:
    """Return a minute in which every connector of every router was busy."""
    known = {}
    for router in range(routers):
        for connector in range(CONNECTORS):
            each = labels(router, connector)
            known[SeriesKey(each.router, each.connector)] = each
    answers = [5, 4, 1, *[0] * (BUCKETS - 3)]
    parts = {key: {at: CountedPart(10, 5000, answers, 0.02, {"bad_token": 1})} for key in known}
    return CountWrites(parts, known, dict.fromkeys(known, float(at)), {})


def report_seconds(rounds: int) -> float:
    """Return the processor time for one report: decoded, and its differences taken."""
    counts = RouterCounts()
    spent = 0.0
    for number in range(1, rounds + 1):
        until = NOW + number * INTERVAL
        series = tuple(
            SeriesCounts(
                name=f"router-1-{each}",
                messages=number * 10,
                bytes=number * 5000,
                last=until,
                answers=(number * 5, number * 5, *[0] * (BUCKETS - 2)),
                refused={"bad_token": number},
            )
            for each in range(CONNECTORS)
        )
        report = CountsReport(begun=NOW * SECOND, since=0, until=until * SECOND, series=series)
        body = msgspec.json.encode(RouterReport(number=number, begun=NOW, instance="a", counts=report))
        start = process_time()
        read = read_body(body, RouterReport)
        assert read.counts is not None
        found = counts.take(number, read.counts, until * SECOND)
        spent += process_time() - start
        if len(found) != CONNECTORS:
            raise RuntimeError("A report counted nothing, so that nothing was measured.")
    return spent / rounds


def main(arguments: Sequence[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console_counts", description=__doc__)
    parser.add_argument("--routers", type=int, default=1000, help=f"each has {CONNECTORS} connectors")
    parser.add_argument("--minutes", type=int, default=5)
    asked = parser.parse_args(arguments)
    seconds = report_seconds(200)
    share = seconds * asked.routers / INTERVAL
    print(f"a report: {seconds * 1000:.2f} ms; of {asked.routers:,} routers each {INTERVAL} s: {share:.1%} of a core")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "console.sqlite")
        writer = StoreWriter(path, lambda: float(NOW))
        times = []
        for number in range(asked.minutes):
            writes = minute(asked.routers, NOW + 60 * number)
            start = perf_counter()
            writer.write(partial(write_counts, writes=writes))
            times.append(perf_counter() - start)
        rows = asked.routers * CONNECTORS
        print(f"a minute of {rows:,} series at once: first {times[0]:.2f} s, later {max(times[1:]):.2f} s")
        size = sum(os.path.getsize(os.path.join(directory, name)) for name in os.listdir(directory))
        print(f"{asked.minutes} minutes: {size / 1e6:.0f} MB on disk, log included")
        reader = StoreReader(path)
        for query, by, measure, share in QUESTIONS:
            wanted = CountRange(query=parse(query), start=NOW, end=NOW + 60 * asked.minutes, by=by)
            limit = TimeLimit(3600.0)
            start = perf_counter()
            answer = reader.read(partial(read_counts, asked=wanted, measure=measure, now=NOW + 600, limit=limit))
            seconds = perf_counter() - start
            found = sum(group.total or 0 for group in answer.groups)
            expected = (rows if share else CONNECTORS) * asked.minutes * 10
            if measure != "p99" and found != expected:
                raise RuntimeError(f"{found} messages were found, so that something else was measured.")
            of = f"by {by}" + (f", {query}" if query else "")
            print(f"{measure} {of}, {answer.series:,} series of {answer.step.name}: {seconds:.2f} s")
        reader.close()
        writer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
