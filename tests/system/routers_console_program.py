"""
A console's port for routers as a process, which does what each line of its input says, and answers with a line of JSON.

C{token}: makes an enrolment token. C{rules [TEXT, ...]}: hands out these rules. C{masks [NAME, ...]}: hands out these
masks. C{routers}: tells what routers report.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
from twisted.internet import reactor, stdio, task
from twisted.internet.defer import Deferred
from twisted.protocols.basic import LineReceiver

from webhookrx.console.routers.authority import load_authority, make_authority
from webhookrx.console.routers.bundle_plan import HandedRule
from webhookrx.console.routers.fleet import KEEP_EVERY, FleetOfRouters
from webhookrx.console.routers.listening import RoutersPort
from webhookrx.console.routers.port import RoutersResource
from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.console.store.history import Author, Change
from webhookrx.console.store.threads import StoreThreads
from webhookrx.query import parse

AUTHOR = Author("mara", "api")


class Lines(LineReceiver):
    """Does what lines say."""

    delimiter = b"\n"

    def __init__(
        self,
        store: StoreThreads,
        fleet: FleetOfRouters,
        rules: list[HandedRule],
        masks: list[str],
        counts: dict[str, Any],
    ):
        self.store, self.fleet, self.rules, self.masks, self.counts = store, fleet, rules, masks, counts

    def lineReceived(self, line: bytes) -> None:
        """Answer."""
        done = Deferred.fromCoroutine(self.do(line.decode()))
        done.addBoth(lambda result: print(json.dumps(result, default=str), flush=True))

    async def do(self, line: str) -> Any:
        """Return the answer to a line."""
        verb, _, rest = line.partition(" ")
        match verb:
            case "token":
                return (await self.fleet.enrolments.add(AUTHOR, "auto", 1, 3600.0, {}))[1].text
            case "rules":
                change = Change("rule", "all", "update", before={}, after={})
                await self.store.write(lambda t: t.revise(AUTHOR, [change]))
                everywhere = parse("os = linux")
                self.rules[:] = [HandedRule(str(n), everywhere, text) for n, text in enumerate(json.loads(rest))]
                await self.fleet.replan()
                return True
            case "masks":
                self.masks[:] = json.loads(rest)
                await self.fleet.replan()
                return True
            case "routers":
                return [
                    {
                        "name": each.name,
                        "applied": msgspec.to_builtins(each.applied),
                        "connectors": msgspec.to_builtins(each.connectors),
                        "gate": msgspec.to_builtins(each.gate),
                        "facts": msgspec.to_builtins(each.facts),
                        "health": each.health,
                        "counts": self.counts.get(each.guid),
                    }
                    for each in self.fleet.registry
                ]
        return None


def main() -> None:
    """Run until killed."""
    directory, port = sys.argv[1], int(sys.argv[2])
    path = os.path.join(directory, "console.sqlite")
    if not os.path.exists(path):
        make_authority(directory, datetime.now(UTC))
    store = StoreThreads(reactor, StoreWriter(path, time.time), StoreReader(path), StoreReader(path))
    rules: list[HandedRule] = []
    masks: list[str] = []
    counts: dict[str, Any] = {}
    fleet = FleetOfRouters(reactor, store, load_authority(directory), time.time, lambda: rules, lambda: masks)

    def counted(router: Any, number: int, report: Any) -> None:
        counts[router.guid] = msgspec.to_builtins(report)

    listening = RoutersPort(
        reactor,
        fleet.authority,
        RoutersResource(fleet, time.monotonic, on_counts=counted),
        f"tcp:{port}:interface=127.0.0.1",
        "the test's",
        ("localhost", "127.0.0.1"),
    )

    async def begin() -> None:
        await fleet.load()
        listening.start()
        for work, seconds in ((listening.tick, 0.5), (lambda: Deferred.fromCoroutine(fleet.keep()), KEEP_EVERY)):
            task.LoopingCall(work).start(seconds)
        stdio.StandardIO(Lines(store, fleet, rules, masks, counts))
        print(json.dumps("up"), flush=True)

    store.start()
    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(begin()).addErrback(lambda f: f.printTraceback()))
    reactor.run()


if __name__ == "__main__":
    main()
