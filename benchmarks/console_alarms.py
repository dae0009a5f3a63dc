"""
C{python -m benchmarks.console_alarms}: how long a console looks at the alarms of many routers, and how long at once.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from time import perf_counter, process_time, thread_time, time
from typing import Any, Final

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.python.threadable import isInIOThread

from webhookrx.console.alarms.alarm_routes import MOST_ROWS, AlarmsQuery, show_alarms
from webhookrx.console.alarms.documents import AlarmDocument
from webhookrx.console.alarms.fleet_facts import SETTLING
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.route import ApiCall
from webhookrx.console.console import Console
from webhookrx.console.routers.authority import make_authority
from webhookrx.console.routers.counted import RouterCounting
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.console.settings import ConsoleSettings
from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.console.store.history import Author
from webhookrx.console.store.threads import StoreThreads
from webhookrx.management.agent_protocol import (
    AppliedState,
    ConnectorState,
    CountsReport,
    GateState,
    RouterFacts,
    SeriesCounts,
)
from webhookrx.management.rollups import SECOND

SITES: Final = ("fra", "ams", "lon", "nyc", "sfo", "sin", "syd", "gru")
CONNECTORS: Final = 20
"""Of a router."""

GOAL: Final = 0.02
"""Seconds of processor time for which a look must not hold the reactor."""

_DAY: Final = 86_400.0

VIEWER: Final = Principal("mara", "viewer")

KINDS: Final[tuple[dict[str, str], ...]] = (
    {"kind": "silent", "lasts": "1h", "when": "label.site = {site} AND connector.port = 80{number:02}"},
    {"kind": "refused", "above": "5%", "when": "reason = bad_token AND rule = rule-{number}"},
    {"kind": "certificate", "lasts": "14d", "when": "label.site = {site}"},
    {"kind": "silent", "lasts": "6h", "expect_within": "2d"},
    {"kind": "gate_closed", "when": "label.site = {site}"},
)
"""Alarms that are written, in turns."""


class ManyRouters:
    """
    A console with many routers, which report without a network.

    @ivar held: the longest processor time between two turns of the reactor, but for collections of garbage, which are
        of all that the process has; C{waited}: the longest time, with them.
    @ivar collected: the longest processor time of such a collection.
    """

    def __init__(self, directory: str, routers: int) -> None:
        path = os.path.join(directory, "console.sqlite")
        authority = make_authority(directory, datetime.now(UTC))
        self.store = StoreThreads(reactor, StoreWriter(path), StoreReader(path), StoreReader(path))
        self.store.start()
        self.console = Console(ConsoleSettings(path, "https://console.example.com"), self.store, reactor)
        fleet = self.console.fleet = FleetOfRouters(reactor, self.store, authority, time)
        self.routers = [router(number) for number in range(routers)]
        for each in self.routers:
            fleet.registry.add(each)
        self._counting = RouterCounting(self.console.counts, self.console.rulebook, self.console.reactor)
        self.number = 0
        self._began = time()
        self.held = self.waited = self.collected = 0.0
        self._last = thread_time(), perf_counter()
        self._collecting = self._in_collections = 0.0
        self._beating = LoopingCall(self._beat)
        gc.callbacks.append(self._collect)

    async def write(self, alarms: int) -> None:
        """Write alarms, and start what looks at them."""
        for part in (self.console.counts, self.console.rulebook, self.console.alarms):
            await part.start()
        # Routers have had the time to come again after its start.
        self.console.alarms._facts._began -= SETTLING
        for number in range(alarms):
            texts = KINDS[number % len(KINDS)]
            site = SITES[number % len(SITES)]
            filled = {key: text.format(site=site, number=number % CONNECTORS) for key, text in texts.items()}
            await self.console.alarms.book.create(f"alarm-{number}", AlarmDocument(**filled), Author("mara", "api"))

    def report(self, *, is_wrong: bool = False) -> None:
        """Let all routers report."""
        self.number += 1
        now, at = time(), int(time() * SECOND)
        begun = int((self._began - 60.0) * SECOND)
        for router in self.routers:
            series = tuple(
                SeriesCounts(
                    name=each.name,
                    messages=100 * self.number,
                    last=now - (2 * _DAY if is_wrong else 10.0),
                    refused={"bad_token": (90 if is_wrong else 1) * self.number},
                )
                for each in router.connectors
            )
            router.seen_at = now
            router.gate = GateState(reasons=("/keys/key.pem is missing.",)) if is_wrong else GateState()
            counts = CountsReport(begun=begun, since=begun, until=at, series=series)
            self.console.counts.take(router.guid, self.number, counts, self._counting.labels(router))

    async def measured(self, work: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
        """Return the time and the processor time of some work; see also C{held}."""
        self.held = self.waited = self.collected = self._in_collections = 0.0
        self._last = thread_time(), perf_counter()
        self._beating.start(0)
        start = perf_counter(), process_time()
        await work()
        spent = perf_counter() - start[0], process_time() - start[1]
        self._beat()
        self._beating.stop()
        return spent

    def end(self) -> None:
        """Leave nothing behind."""
        gc.callbacks.remove(self._collect)
        self.store.stop()

    def _beat(self) -> None:
        now = thread_time(), perf_counter()
        self.held = max(self.held, now[0] - self._last[0] - self._in_collections)
        self._in_collections = 0.0
        self.waited = max(self.waited, now[1] - self._last[1])
        self._last = now

    def _collect(self, phase: str, info: object) -> None:
        if not isInIOThread():
            return
        if phase == "start":
            self._collecting = thread_time()
            return
        spent = thread_time() - self._collecting
        self._in_collections += spent
        self.collected = max(self.collected, spent)


def router(number: int) -> EnrolledRouter:
    """Return a router that is well."""
    name = f"router-{number}"
    end = int((time() + 60 * _DAY) * SECOND)
    return EnrolledRouter(
        f"guid-{number}",
        name,
        "approved",
        labels={"site": SITES[number % len(SITES)], "rack": str(number % 40)},
        facts=RouterFacts(hostname=name, os="linux"),
        applied=AppliedState(status="APPLIED", revision=1, newest=1),
        connectors=tuple(
            ConnectorState(name=f"{name}-rule-{each}-hooks", rule=f"rule-{each}", port=8000 + each, certificate_end=end)
            for each in range(CONNECTORS)
        ),
        seen_at=time(),
        instance="one",
    )


async def run(asked: argparse.Namespace) -> int:
    """Print the figures; return 1 if the goal is missed."""
    missed = False
    for alarms in asked.alarms:
        with tempfile.TemporaryDirectory() as directory:
            many = ManyRouters(directory, asked.routers)
            await many.write(alarms)
            asks = partial(show_alarms, ApiCall(many.console, VIEWER, query=AlarmsQuery(count=MOST_ROWS)))
            print(f"{asked.routers:,} routers of {CONNECTORS} connectors, {alarms} alarms and those that are built in:")
            for what, is_wrong, is_away in (
                ("first look", False, False),
                ("all well", False, False),
                ("all wrong now", True, False),
                ("all wrong still", True, False),
                ("all away now", False, True),
            ):
                if is_away:
                    for each in many.routers:
                        each.seen_at -= 100
                else:
                    many.report(is_wrong=is_wrong)
                seconds, spent = await many.measured(many.console.alarms.look)
                missed |= many.held > GOAL
                standing = sum(each.pending + each.firing + each.unknown for each in many.console.alarms.alarms.counts)
                turn, garbage, clock = (1000 * each for each in (many.held, many.collected, many.waited))
                print(f"  {what:15}  {seconds:6.3f} s, {spent:6.3f} s of processor time; {standing:,} not ok")
                print(
                    f"{'':19}longest turn {turn:.1f} ms, collection of garbage {garbage:.1f} ms; {clock:.1f} ms in all"
                )
            seconds, spent = await many.measured(asks)
            print(f"  GET /alarms      {seconds:6.3f} s, {spent:6.3f} s of processor time")
            many.end()
    return int(missed)


def main(arguments: Sequence[str]) -> int:
    """Print the figures; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console_alarms", description=__doc__)
    parser.add_argument("--routers", type=int, default=1000)
    parser.add_argument("--alarms", type=int, nargs="+", default=[0, 10, 100])
    asked = parser.parse_args(arguments)
    outcome: list[Any] = []
    done = Deferred.fromCoroutine(run(asked))
    done.addBoth(outcome.append)
    done.addBoth(lambda result: reactor.stop())
    if not outcome:
        reactor.run()
    (result,) = outcome
    if not isinstance(result, int):
        result.raiseException()
    return int(result)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
