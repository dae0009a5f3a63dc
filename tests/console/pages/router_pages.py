"""
A console with routers that are made up, for tests of pages.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
from twisted.internet.defer import Deferred, succeed

from tests.console.pages.paging import PageCase
from tests.console.routers.test_authority import NOW
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.console.routers.authority import make_authority
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.part import HandedRules
from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.console.store.history import Author
from webhookrx.management.agent_protocol import AppliedState, ConnectorState, CountsReport, RouterFacts, SeriesCounts
from webhookrx.management.rollups import SECOND

HOSTILE = "<script>alert(1)</script>\"'\u202e"


class RouterPagesCase(PageCase):
    """A console with routers, which are made up."""

    def setUp(self) -> None:
        """Make a fleet."""
        super().setUp()
        directory = self.mktemp()
        os.mkdir(directory)
        self.done(self.console.rulebook.start())
        self.fleet = self.console.fleet = FleetOfRouters(
            self.clock,
            self.store,
            make_authority(directory, NOW),
            self.clock.seconds,
            HandedRules(self.console.rulebook),
            in_thread=lambda work: succeed(work()),
        )
        self.console.rulebook.changed.append(lambda saved: self.fleet.replan())
        self.done(self.fleet.load())

    def done(self, work: Any) -> Any:
        """Return the result of a coroutine that never waits."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def fake(self, count: int, connectors: int = 0) -> None:
        """Have so many routers, C{edge-0000} and on, which do in one way or another."""
        for number in range(count):
            self.router(f"edge-{number:04}", connectors=connectors, labels={"site": f"s{number % 50}", "tier": "web"})
        self.successResultOf(self.fleet.replan())

    def router(self, name: str, state: Any = "approved", **parts: Any) -> EnrolledRouter:
        """Add a router, to the store as well, which is here."""
        now = self.clock.seconds()
        labels = parts.pop("labels", {})
        connectors = parts.pop("connectors", 0)
        told = tuple(ConnectorState(f"{name}-r{n}-r{n}", f"rule-{n}", 8000 + n) for n in range(connectors))
        number = len(self.fleet.registry)
        facts = RouterFacts(name, f"{name}.example", ("192.0.2.1",), "linux", "x86_64", "26.11.10", labels=labels)
        values: dict[str, Any] = {
            "facts": facts,
            "applied": AppliedState("APPLIED", 0, "a" * 64, 0),
            "connectors": told,
            "seen_at": now,
            "enrolled_at": now,
            "certificates": {f"{number:064x}": now + 86_400 * 30},
            "health": "ready",
            "instance": "one",
        }
        router = EnrolledRouter(f"00000000-0000-0000-0000-{number:012x}", name, state, **{**values, **parts})
        self.fleet.registry.add(router)
        row = (router.guid, name, state, "{}", msgspec.json.encode(router.facts).decode(), now)
        self.store.writer.write(
            lambda tx: tx.execute(
                "INSERT INTO router (guid, name, state, labels, facts, enrolled_at) VALUES (?, ?, ?, ?, ?, ?)", row
            )
        )
        return router

    def console_rule(self, name: str, port: int, *more: str) -> None:
        """Save a rule."""
        lines = (f"name: {name}", "protocol: HTTP" if not more else "protocol: HTTPS", f"port: {port}", *more, "")
        text = "\n".join(lines)
        self.done(self.console.rulebook.save(text, Author("mara", "ui"), name=None, generation=None, as_written=True))

    def count(self, router: EnrolledRouter, messages: int, number: int = 1) -> None:
        """Have a router report messages."""
        now = int(self.clock.seconds())
        series = SeriesCounts(name="c", messages=messages, last=float(now), refused={"late": 3})
        report = CountsReport((now - 15) * SECOND, 0, now * SECOND, (series,))
        self.console.counts.take(router.guid, number, report, lambda connector: SeriesLabels(connector=connector))
