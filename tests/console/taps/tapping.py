"""A console with taps, routers that answer it, and a reader."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
from twisted.internet.defer import Deferred, succeed

from tests.console.routers.test_port import MARA, PortCase, body_of
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.api.route import ApiCall
from webhookrx.console.routers.port import RoutersResource
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.console.store.audit import AuditEntry, read_audit
from webhookrx.console.taps.console_taps import ConsoleTaps
from webhookrx.console.taps.tap_order import StartedTap, TapOrder
from webhookrx.console.taps.tap_routes import show_events, start_tap
from webhookrx.management.agent_protocol import AgentCommand, CommandAnswer, SyncAnswer
from webhookrx.management.tap_protocol import TapEvents

MARA_AT_HOME = Principal("mara", "viewer", tap=True, session_id="s1")


class TapReader:
    """
    Who reads a stream.

    @ivar takes: False while nothing is read.
    @ivar events: what was read, as JSON values.
    @ivar end: why the stream has ended.
    """

    def __init__(self, stream: Any) -> None:
        self.takes = True
        self.events: list[tuple[str, Any]] = []
        self.end = ""
        self.stop = stream.start(self._send, self._end)

    def _send(self, event: str, data: object) -> bool:
        if self.takes:
            encoded = msgspec.json.encode(data)
            assert b"\n" not in encoded
            assert b"\r" not in encoded
            self.events.append((event, msgspec.json.decode(encoded)))
        return self.takes

    def _end(self, why: str) -> None:
        self.end = why
        self.stop(why)

    @property
    def rows(self) -> list[Any]:
        return [data for event, data in self.events if event == "row"]

    @property
    def counts(self) -> Any:
        """The last ones."""
        return [data for event, data in self.events if event == "counts"][-1]


def message(id: str = "m1", **values: Any) -> msgspec.Raw:
    """Return a row as a router shows it."""
    return msgspec.Raw(msgspec.json.encode({"row": "message", "id": id, "at": 1, "source": "hooks", **values}))


class TapCase(PortCase):
    """A console whose routers are played, one command and event at a time."""

    def setUp(self) -> None:
        super().setUp()
        self.rulebook = Rulebook(self.store)
        self.done(self.rulebook.start())
        self.console: Any = SimpleNamespace(
            fleet=self.fleet,
            rulebook=self.rulebook,
            counts=None,
            reactor=self.clock,
            store=self.store,
            clock=lambda: self.wall,
        )
        self.taps: ConsoleTaps = ConsoleTaps(self.console, self.clock.seconds)
        self.console.taps = self.taps
        self.resource = RoutersResource(
            self.fleet,
            self.clock.seconds,
            taps=self.taps,
            decode_apart=lambda decode, *arguments: succeed(decode(*arguments)),
        )

    def save_rule(self, text: str) -> None:
        self.done(self.rulebook.save(text, MARA, name=None, generation=None, as_written=True))

    def call(self, body: Any = None, principal: Principal = MARA_AT_HOME, **path: str) -> ApiCall:
        return ApiCall(self.console, principal, path, body=body, address="192.0.2.7")

    # -- people --------------------------------------------------------------------------------------------------

    def asked(self, principal: Principal = MARA_AT_HOME, **order: Any) -> Deferred[StartedTap]:
        """Ask for a tap."""
        return Deferred.fromCoroutine(start_tap(self.call(TapOrder(**order), principal)))

    def refused(self, principal: Principal = MARA_AT_HOME, **order: Any) -> ApiProblem:
        """Ask for a tap that is refused at once."""
        problem: ApiProblem = self.failureResultOf(self.asked(principal, **order), ApiProblem).value  # type: ignore[assignment]
        return problem

    def started(self, *routers: Any, principal: Principal = MARA_AT_HOME, **order: Any) -> StartedTap:
        """Start a tap to which these routers say yes."""
        asked = self.asked(principal, **order)
        for each in routers:
            self.answer(each)
        return self.successResultOf(asked)

    def read(self, started: StartedTap, principal: Principal = MARA_AT_HOME) -> TapReader:
        """Read the events of a tap."""
        return TapReader(self.done(show_events(self.call(None, principal, id=started.id))))

    def audit(self) -> list[AuditEntry]:
        """The entries about taps, the oldest first."""
        entries: list[AuditEntry] = self.done(self.store.read(lambda db: read_audit(db)))
        return [each for each in reversed(entries) if each.event.startswith("tap")]

    # -- routers -------------------------------------------------------------------------------------------------

    def commands(self, router: Any) -> tuple[AgentCommand, ...]:
        """Return what a router is told."""
        body = body_of(router.sync())
        return msgspec.json.decode(body, type=SyncAnswer).commands if body else ()

    def answer(self, router: Any, **answer: Any) -> str:
        """Have a router answer what it is told, and return the id of the last command."""
        *_, last = self.commands(router)
        router.report(base=router.number, answers=(CommandAnswer(id=last.id, **answer),))
        return last.id

    def shows(self, router: Any, tap: str, number: int, *rows: msgspec.Raw, **counts: Any) -> int:
        """Have a router show rows, and return the status of the answer."""
        known = {"seen": number, "matched": number, "shown": number, "not_looked_at": 0} | counts
        events = TapEvents(number=number, events=rows, **known)
        status: int = router.ask(b"POST", f"/agent/v1/taps/{tap}".encode(), events).responseCode
        return status

    def pass_time(self, seconds: float) -> None:
        """Let time pass, half a second at a time."""
        for _ in range(round(seconds * 2)):
            self.clock.advance(0.5)
            self.wall += 0.5
            self.taps.tick()

    def reported(self, name: str, **facts: Any) -> Any:
        """Return a router that has reported."""
        router = self.router(name, **facts)
        router.report()
        return router
