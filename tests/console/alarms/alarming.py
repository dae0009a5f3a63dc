"""A console whose alarms are looked at as time passes, and routers that are played."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionRefusedError
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher
from zope.interface import implementer

from tests.console.routers.test_port import PortCase
from tests.service.test_pinned_client import _Reactor, _Transport
from webhookrx.console.alarms.alarm_routes import AlarmsPage, AlarmsQuery, show_alarms
from webhookrx.console.alarms.console_alarms import LOOK_EVERY, ConsoleAlarms
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.route import ApiCall
from webhookrx.console.counts.console_counts import ConsoleCounts
from webhookrx.console.routers.counted import RouterCounting
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.port import RoutersResource
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.management.agent_protocol import REPORT_INTERVAL

EDITOR = Principal("mara", "editor", token_id="1")
ADMIN = Principal("root", "admin", token_id="2")


@implementer(IStreamClientEndpoint)
class _PlayedTarget:
    """Where POSTs go."""

    def __init__(self, case: AlarmCase) -> None:
        self.case = case

    def connect(self, factory: Any) -> Deferred[Any]:
        if self.case.is_down:
            return fail(ConnectionRefusedError())
        protocol, transport = factory.buildProtocol(None), _Transport()
        protocol.makeConnection(transport)
        self.case.clock.callLater(0, self._reply, protocol, transport)
        return succeed(protocol)

    def _reply(self, protocol: Any, transport: Any) -> None:
        head, _, body = transport.value().partition(b"\r\n\r\n")
        if head:
            self.case.posted.append((head, json.loads(body)))
            status = self.case.replies.pop(0) if self.case.replies else "204 No Content"
            if status:
                protocol.dataReceived(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())


class AlarmCase(PortCase):
    """
    A console with alarms.

    @ivar talking: the routers that report every L{REPORT_INTERVAL}.
    @ivar connected: host, port and TLS of each connection to a target.
    @ivar posted: head and values of each POST.
    @ivar replies: what the next of them get: a status, or nothing at all for an empty one; else 204.
    @ivar is_down: connections are refused.
    """

    def setUp(self) -> None:
        super().setUp()
        self.talking: list[Any] = []
        self._logged: list[tuple[str, str, str]] = []
        self.connected: list[tuple[str, int, bool]] = []
        self.posted: list[tuple[bytes, Any]] = []
        self.replies: list[str] = []
        self.is_down = False
        globalLogPublisher.addObserver(self._hear)
        self.addCleanup(globalLogPublisher.removeObserver, self._hear)
        self.begin()

    def make_clock(self) -> Clock:
        """Return a reactor that finds the hosts of targets, and connects to them."""
        self.reactor = _Reactor(("192.0.2.7",))
        return self.reactor

    def begin(self) -> None:
        """Start what a console has in memory, from its store."""
        if hasattr(self, "console"):
            self.fleet = FleetOfRouters(
                self.clock,
                self.store,
                self.authority,
                lambda: self.wall,
                lambda: self.rules,
                in_thread=lambda work: succeed(work()),
            )
            self.done(self.fleet.load())
        counts = ConsoleCounts(self.store, lambda: self.wall, self.clock.seconds)
        rulebook = Rulebook(self.store)
        self.console: Any = SimpleNamespace(
            fleet=self.fleet,
            counts=counts,
            rulebook=rulebook,
            reactor=self.clock,
            store=self.store,
            clock=lambda: self.wall,
            problems={},
            settings=SimpleNamespace(url="https://console.example.com"),
        )
        self.alarms = self.console.alarms = ConsoleAlarms(self.console, self._endpoint)
        self.resource = RoutersResource(
            self.fleet,
            self.clock.seconds,
            RouterCounting(counts, rulebook, self.clock),
            decode_apart=lambda decode, *arguments: succeed(decode(*arguments)),
        )
        for part in (counts, rulebook, self.alarms):
            self.done(part.start())

    def restart(self, away: float = 0.0) -> None:
        """Kill the console, and start it again after some time."""
        self.done(self.fleet.keep())
        self.alarms.telling._posts.stop()
        self.clock.advance(away)
        self.wall += away
        self.begin()

    def _endpoint(self, host: str, address: str, port: int, is_tls: bool) -> Any:
        self.connected.append((host, port, is_tls))
        return _PlayedTarget(self)

    def talk(self, name: str, **facts: Any) -> Any:
        """Return a router that reports from now on."""
        router = self.router(name, **facts)
        router.told = {}
        router.instance = "one"
        router.report()
        self.talking.append(router)
        return router

    def pass_time(self, seconds: float) -> None:
        """Let time pass, by the interval of reports."""
        for _ in range(round(seconds / REPORT_INTERVAL)):
            self.clock.advance(REPORT_INTERVAL)
            self.wall += REPORT_INTERVAL
            for each in self.talking:
                each.report(each.instance, **(each.told() if callable(each.told) else each.told))
            self.alarms.tick()
            self.clock.advance(0)

    def look(self) -> None:
        """Let the next look come."""
        self.pass_time(LOOK_EVERY)

    def call(self, body: Any = None, query: Any = None, caller: Principal = EDITOR, **parts: Any) -> ApiCall:
        return ApiCall(self.console, caller, parts.pop("path", {}), query=query, body=body, **parts)

    def shown(self, **query: Any) -> AlarmsPage:
        """What is shown of all alarms."""
        page: AlarmsPage = self.done(show_alarms(self.call(query=AlarmsQuery(**query))))
        return page

    @property
    def states(self) -> list[tuple[str, str, str]]:
        """Alarm, subject and state of all that is not ok."""
        return [(each.alarm, each.subject, each.state) for each in self.shown().states]

    def told(self) -> list[tuple[str, str, str]]:
        """Alarm, subject and state of each change that was logged since the last call."""
        logged, self._logged = self._logged, []
        return logged

    def _hear(self, event: Any) -> None:
        if event.get("log_format", "").startswith("Alarm {alarm}"):
            self._logged.append((event["alarm"], event["subject"], event["state"]))
