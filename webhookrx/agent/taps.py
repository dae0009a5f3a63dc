"""
The taps of the console at this receiver: started by a command, if the host allows that, and ended by one, by their
time, or with the agent. Nothing of what they show is on any disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger

from webhookrx.agent.access import ConsoleAccess
from webhookrx.agent.chores import in_background
from webhookrx.agent.host import AgentHost
from webhookrx.agent.link import ConsoleAnswer
from webhookrx.agent.sent_tap import SentTap
from webhookrx.diagnostics import quoted
from webhookrx.errors import CantTap, GateIsClosed
from webhookrx.management.agent_protocol import MOST_FILES, CommandAnswer
from webhookrx.management.tap_protocol import MOST_ROUTER_TAPS, TAPS, TapCommand, UntapCommand

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap

POST_TIME: Final = 5.0
"""Seconds that the console has to take a body."""

TIME_TO_LEAVE: Final = 1.0
"""Seconds to tell the console that the receiver stops."""

_LONGEST_PROBLEM: Final = 2_000
_LONGEST_PATH: Final = 4_096

_log = Logger()


class AgentTaps:
    """
    Starts and ends taps as the console says.

    @param monotonic: the clock of the host's taps.
    @param allowed: whether the host allows that at all.
    """

    def __init__(
        self, reactor: Any, access: ConsoleAccess, host: AgentHost, monotonic: Callable[[], float], *, allowed: bool
    ) -> None:
        self._reactor = reactor
        self._monotonic = monotonic
        self._access = access
        self._host = host
        self._allowed = allowed
        self._stopped = False
        self._running: dict[str, tuple[SentTap, Deferred[object]]] = {}

    async def start(self, command: TapCommand) -> CommandAnswer:
        """Start a tap, or answer why not."""
        try:
            self._start(command)
        except CantTap as error:
            missing = error.paths if isinstance(error, GateIsClosed) else ()
            paths = tuple(each for each in missing if len(each) <= _LONGEST_PATH)[:MOST_FILES]
            return CommandAnswer(id=command.id, problem=str(error)[:_LONGEST_PROBLEM], code=error.code, paths=paths)
        return CommandAnswer(id=command.id)

    async def end(self, command: UntapCommand) -> CommandAnswer:
        """End a tap, of which the console wants to hear nothing more; one that is not there has ended before."""
        found = self._running.get(command.tap)
        if found is not None:
            sent, ended = found
            sent.end("The console has ended it.")
            ended.cancel()
        return CommandAnswer(id=command.id)

    async def stop(self) -> None:
        """End all taps, and tell the console; not for long, if it does not listen."""
        self._stopped = True
        running = list(self._running.values())
        if not running:
            return
        for sent, _ in running:
            sent.end("The receiver stops.")
            sent.hurry()
        late = self._reactor.callLater(TIME_TO_LEAVE, _cancel, [ended for _, ended in running])
        await DeferredList([ended for _, ended in running])
        if late.active():
            late.cancel()

    def _start(self, command: TapCommand) -> None:
        """
        @raise CantTap: it can't be started.
        """
        if not self._allowed:
            raise CantTap("This host allows no taps of its console (--no-console-tap).", "tap_not_allowed")
        if self._stopped:
            raise CantTap("The receiver stops.", "stopping")
        if command.id in self._running:
            raise CantTap("A tap of this id runs already.", "same_tap")
        if len(self._running) >= MOST_ROUTER_TAPS:
            raise CantTap(f"{MOST_ROUTER_TAPS} taps of the console run already.", "too_many_taps")
        # It takes memory that a receiver without taps does not need.
        from webhookrx.tapping.tap_request import TapRequest

        request = TapRequest(
            source=command.source,
            connectors=command.connectors,
            point=command.point,
            filter=command.filter,
            rate=command.rate,
            seconds=command.seconds,
        )
        names = self._host.tapped_sources(request)
        tap = self._host.start_tap(request, _wait)
        _log.info(
            "A tap of the console starts: point {point}, {count} sources, filter {filter}, for {seconds} s",
            point=request.point or "input and output",
            count=len(names),
            filter=quoted(request.filter),
            seconds=round(request.seconds),
        )
        path = TAPS + command.id.encode("ascii")
        sent = SentTap(
            self._reactor,
            tap,
            lambda body: self._post(path, body),
            self._problem,
            self._host.stop_tap,
            self._monotonic,
        )
        ended = in_background(sent.run())
        self._running[command.id] = sent, ended
        ended.addCallback(lambda _: self._ended(command.id, tap, sent))

    async def _post(self, path: bytes, body: bytes) -> ConsoleAnswer:
        return await self._access.link.ask(b"POST", path, body, time=POST_TIME)

    def _problem(self) -> str:
        blocked = self._host.settings.blocked
        return f"The reload gate has closed. {blocked[0].text}" if blocked else ""

    def _ended(self, id: str, tap: Tap, sent: SentTap) -> None:
        del self._running[id]
        counts = tap.total
        _log.info(
            "A tap of the console ends: {seen} seen, {shown} shown. {why}",
            seen=counts.seen,
            shown=counts.shown,
            why=sent.why,
        )


def _cancel(work: list[Deferred[object]]) -> None:
    for each in work:
        each.cancel()


def _wait(tap: Tap) -> None:
    """What a tap shows waits for its next body."""
