"""
Tests for L{webhookrx.service.console_agent}: what a console is told of a receiver.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.agent.played import GUID, SIGNING_TEXT, bundle_of
from tests.operations.snapshots import make_snapshot
from webhookrx.agent.reports import Reports
from webhookrx.agent.router_keys import new_key
from webhookrx.config.console_files import (
    IDENTITY,
    RouterIdentity,
    accept_bundle,
    mark_applied,
    read_console_files,
    write_identity,
)
from webhookrx.config.files import write_state
from webhookrx.config.machine import HostFacts, this_host
from webhookrx.errors import ConfigError
from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.management.agent_body import read_body, write_body
from webhookrx.management.agent_protocol import (
    AppliedState,
    ConnectorState,
    GateState,
    HeardSender,
    RouterReport,
    SeriesCounts,
    SpoolState,
)
from webhookrx.management.bundle import digest
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import ALONE
from webhookrx.router.gate import ClosedConnector, GateReason
from webhookrx.router.steps.step import Preprocessing
from webhookrx.service.console_agent import HOST_EVERY, AgentOfService, FactsOfHost, refuse_bundle
from webhookrx.service.service_taps import ServiceTaps
from webhookrx.settings import (
    TLS,
    AgentSettings,
    BundleInUse,
    ConnectorSettings,
    Listener,
    RouterSettings,
    Settings,
    Source,
)
from webhookrx.transport.listener_service import CannotListen


class AgentOfServiceTests(SynchronousTestCase):
    """Tests for L{AgentOfService}."""

    def setUp(self) -> None:
        self.snapshot = make_snapshot(
            endpoints={"8443": True, "8444": False, "unix:/caf\udce9": True},
            certificates={"/c.pem": 1.5},
            sources=["h"],
        )
        self.counters = Counters()
        self.console = AgentSettings("https://console.example:9443", "/d", labels={"site": "fra"})

    def of(self, router: RouterSettings | None, *sources: Source, admin: Listener | None = None) -> AgentOfService:
        """Return the agent of a receiver."""
        settings = Settings(sources, (), router=router, console=self.console, admin=admin)
        nothing: Any = lambda: None  # noqa: E731
        reactor = Clock()
        receiver: Any = SimpleNamespace(settings=settings)
        taps = ServiceTaps(reactor, receiver)
        return AgentOfService(
            reactor, lambda: settings, nothing, lambda: self.counters, self.told_snapshot, lambda: (ALONE,), taps
        )

    def told_snapshot(self) -> Any:
        """Return the receiver as it is."""
        return self.snapshot

    def connector(self, name: str, port: int) -> Source:
        """Return a connector."""
        listener = Listener(str(port), f"tcp:{port}", tls=TLS("/k.pem", "/c.pem"))
        settings = ConnectorSettings(name, port, {}, Preprocessing())
        return Source(f"fra-1-{name}-{name}", "connector", listeners=(listener,), connector=settings)

    def test_connectors(self) -> None:
        """Open connectors, those without a port, and those that wait for files are told with rule, port and reason."""
        router = RouterSettings("fra-1", closed=(ClosedConnector("fra-1-c-c", "c", 8445, "No /k."),))
        state = self.of(router, self.connector("a", 8443), self.connector("b", 8444)).state()
        self.assertEqual(
            (
                ConnectorState(name="fra-1-a-a", rule="a", port=8443, certificate_end=1_500_000_000),
                ConnectorState(
                    name="fra-1-b-b",
                    rule="b",
                    port=8444,
                    state="closed",
                    reason="Its port is not open.",
                    certificate_end=1_500_000_000,
                ),
                ConnectorState(name="fra-1-c-c", rule="c", port=8445, state="closed", reason="No /k."),
            ),
            state.connectors,
        )

    def test_gate(self) -> None:
        """The gate is told with its reasons, and each file once; a path that no file can have is left out."""
        reasons = (GateReason("No /k.", "/k"), GateReason("No /k either.", "/k"), GateReason("x" * 9999, "/" * 9999))
        gate = self.of(RouterSettings("fra-1", blocked=reasons)).state().gate
        self.assertEqual(GateState(reasons=("No /k.", "No /k either.", "x" * 2000), paths=("/k",)), gate)

    def test_facts(self) -> None:
        """The machine is told with form, labels, and the endpoints of sources of its own, whatever bytes they have."""
        own = Source("own", listeners=(Listener("unix:/caf\udce9", "unix:/caf\udce9"),))
        facts = self.of(None, own).state().facts
        self.assertEqual(
            ("source", {"site": "fra"}, ("unix:/caf\\udce9",)), (facts.form, facts.labels, facts.endpoints)
        )
        facts = self.of(RouterSettings("r"), self.connector("a", 8443)).state().facts
        self.assertEqual(("router", ()), (facts.form, facts.endpoints))

    def test_admin(self) -> None:
        """An admin endpoint is told with the address at which others reach it; one for this machine alone is not."""
        for host, told in (("127.0.0.1", ""), ("192.0.2.5", "192.0.2.5:9180")):
            admin = Listener("9180", f"tcp:9180:interface={host}")
            self.assertEqual(told, self.of(None, admin=admin).state().facts.admin)
        self.assertEqual("", self.of(None).state().facts.admin)

    def test_health(self) -> None:
        """Health is told with its reasons, but not that the console was away: the report says that it is there."""
        agent = self.of(RouterSettings("fra-1", blocked=(GateReason("No /k."),)))
        standing = agent.standing._replace(away=7200.0, lacks_bundle=False)
        self.snapshot = replace(self.snapshot, console=standing, endpoints={}, blocked=(GateReason("No /caf\udce9."),))
        state = agent.state()
        self.assertEqual(
            ("degraded", ("The router is blocked: No /caf\\udce9.",)), (state.health, state.health_reasons)
        )

    def test_series(self) -> None:
        """Each source is told with its counts, among them refusals by reason, what steps dropped, and texts."""
        self.counters.sources["a"].messages = 5
        self.counters.add("refused", "bad_token", "a", amount=3)
        self.counters.add("refused", "bad_token", "", amount=9)
        for step, count in (("first", 2), ("second", 1)):
            self.counters.add("dropped", "a", step, amount=count)
        self.counters.add("text_body", "a", amount=4)
        first, second, before = self.of(None, Source("a"), Source("b")).state().series
        self.assertEqual(
            ("a", 5, {"bad_token": 3}, 3, 4),
            (first.name, first.messages, first.refused, first.dropped, first.text_bodies),
        )
        self.assertEqual(("b", 0, {}, 0, 0), (second.name, second.messages, second.refused, second.dropped, 0))
        self.assertEqual(SeriesCounts(name="", refused={"bad_token": 9}), before)

    def test_spools(self) -> None:
        """Each observer with a spool is told with what waits, each name once, up to a bound; others are not told."""
        lanes = [
            LaneStatus("file:/x"),
            LaneStatus("spool:/caf\udce9", backlog=Backlog(2, 9, 5, 0, 0, None, False)),
            LaneStatus("spool:/y", backlog=Backlog(0, 0, None, 0, 0, None, False)),
            *(
                LaneStatus(f"spool:/{'z' * 2_000}{number}", backlog=Backlog(1, 1, 1, 0, 0, None, False))
                for number in "ab"
            ),
        ]
        self.snapshot = replace(self.snapshot, lanes=lanes)
        spools = self.of(None).state().spools
        self.assertEqual(
            (
                SpoolState(name="spool:/caf\\udce9", messages=2, bytes=9, oldest=5),
                SpoolState(name="spool:/y"),
                SpoolState(name=f"spool:/{'z' * 1_017}", messages=1, bytes=1, oldest=1),
            ),
            spools,
        )
        many = [LaneStatus(f"spool:/{number}", backlog=Backlog(1, 1, 1, 0, 0, None, False)) for number in range(99)]
        self.snapshot = replace(self.snapshot, lanes=many)
        self.assertEqual(64, len(self.of(None).state().spools))

    def test_senders(self) -> None:
        """Senders that were heard are told by source, up to a bound, and those that are waited for; no empty id is."""
        self.counters.sources["a"].heard("", 1.0)
        self.counters.sources["a"].heard("github", 2.0)
        self.counters.sources["b"].hears("gitlab")
        self.counters.sources["gone"].heard("github", 3.0)
        agent = self.of(None, Source("a"), Source("b"), Source("c"))
        self.assertEqual((HeardSender("a", "github", 2.0), HeardSender("b", "gitlab")), agent.state().senders)
        for number in range(300):
            self.counters.sources["b"].heard(f"s{number}", 4.0)
        senders = agent.state().senders
        self.assertEqual((200, HeardSender("a", "github", 2.0)), (len(senders), senders[0]))

    def test_report(self) -> None:
        """What is told passes the bounds of a report, also with many thousands of everything."""
        many = tuple(self.connector(f"a{number}", 8443) for number in range(5_100))
        blocked = tuple(GateReason(f"No /{number}.", f"/{number}") for number in range(300))
        backlog = Backlog(1 << 50, 1 << 50, 1 << 62, 0, 0, None, False)
        lanes = [LaneStatus(f"spool:/{number}{'z' * 2_000}", backlog=backlog) for number in range(100)]
        self.snapshot = replace(self.snapshot, lanes=lanes)
        for number in range(300):
            self.counters.sources[many[0].name].heard(f"s{number}", 4.0)
        state = self.of(RouterSettings("fra-1", blocked=blocked), *many).state()
        report = Reports(1, "i").next(AppliedState(), state, 2)
        read = read_body(write_body(report), RouterReport)
        self.assertEqual((state.spools, state.senders), (read.spools, read.senders))
        assert read.connectors is not None and read.gate is not None and read.counts is not None
        self.assertEqual((5_000, 256, 5_000), (len(read.connectors), len(read.gate.paths), len(read.counts.series)))


class RefuseBundleTests(SynchronousTestCase):
    """Tests for L{refuse_bundle}: a start that can't open a port."""

    def setUp(self) -> None:
        self.directory = self.mktemp()
        wanted = new_key()
        identity = RouterIdentity(
            console="https://console.example:9443",
            guid=GUID,
            name="fra-1",
            key=wanted.key,
            certificate="C",
            authorities=("A",),
            signing_keys=(SIGNING_TEXT,),
        )
        write_identity(self.directory, identity)
        accept_bundle(self.directory, bundle_of(7))
        mark_applied(self.directory, digest(bundle_of(7)))
        accept_bundle(self.directory, bundle_of(8))

    def fail_with(self, revision: int, text: str) -> list[int]:
        """Fail to open a port with a bundle; return the revisions that the next start tries."""
        settings = ConnectorSettings("a", 8443, {}, Preprocessing())
        source = Source("fra-1-a-a", "connector", listeners=(Listener("8443", "tcp:8443"),), connector=settings)
        router = RouterSettings("fra-1", bundle=BundleInUse(revision, digest(bundle_of(revision))))
        console = AgentSettings("https://console.example:9443", self.directory)
        refuse_bundle(
            Settings((source,), (), router=router, console=console), CannotListen("Address already in use", text)
        )
        return [each.bundle.revision for each in read_console_files(self.directory).bundles]

    def test_next(self) -> None:
        """A bundle that was never applied is refused, with the rule, and the next start takes the one before."""
        self.assertEqual([7], self.fail_with(8, "8443"))
        refused = read_console_files(self.directory).refused
        assert refused is not None
        self.assertIn('the rule "a" wants', refused.error)

    def test_others(self) -> None:
        """A bundle that was applied stays, and so does one that has nothing to do with the port."""
        self.assertEqual([8, 7], self.fail_with(7, "8443"))
        self.assertEqual([8, 7], self.fail_with(8, "tcp:9181"))

    def test_not_noted(self) -> None:
        """What can't be noted is logged, and the start fails for its own reason."""
        os.remove(os.path.join(self.directory, IDENTITY))
        self.assertEqual([], self.fail_with(8, "8443"))
        write_state(self.directory, IDENTITY, b"{")
        self.assertRaises(ConfigError, self.fail_with, 8, "8443")


class FactsOfHostTests(SynchronousTestCase):
    """Tests for L{FactsOfHost}."""

    def test_bound(self) -> None:
        """The machine is looked at once a minute, however often it is asked for."""
        clock, looks = Clock(), [0]

        def look() -> HostFacts:
            looks[0] += 1
            return this_host()._replace(hostname=f"h{looks[0]}")

        facts = FactsOfHost(clock.seconds, look)
        names = []
        for _ in range(5):
            names += [facts().hostname, facts().hostname]
            clock.advance(HOST_EVERY / 2)
        self.assertEqual(["h1", "h1", "h1", "h1", "h2", "h2", "h2", "h2", "h3", "h3"], names)
