"""
The long poll: asks the console for bundles and commands, one question at a time, until it is stopped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import deferLater
from twisted.logger import Logger

from webhookrx.agent.link import ConsoleAnswer, ConsoleLink, LinkFailed
from webhookrx.backoff import Backoff, Random
from webhookrx.diagnostics import quoted
from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_body import read_body
from webhookrx.management.agent_protocol import (
    DISABLED,
    ENROL_PENDING,
    LONGEST_WAIT,
    MOST_SYNC_BYTES,
    SYNC,
    AgentProblem,
    SyncAnswer,
)

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""Seconds: the bound of the pause after the first failure, and after many."""

ANSWER_TIME: Final = LONGEST_WAIT + 15.0
"""Seconds for an answer: the console holds it for L{LONGEST_WAIT} at most, and a bundle takes its time."""

LEAST_DISTANCE: Final = 0.5
"""Seconds after each answer, so that a console that answers everything at once is not asked without end."""

LONGEST_CONSENT_PAUSE: Final = 10.0
"""Seconds between two questions whether somebody has approved this router: the one who does so looks at it."""

_REFUSALS: Final = {
    ENROL_PENDING: "This router waits for approval at the console",
    DISABLED: "The console has disabled this router, or does not know it; what runs goes on",
}
"""What a console says of a router as a whole, by the code of its problem."""

_log = Logger()


class TakeLater(WebhookrxError):
    """What the console has answered can't be taken now; it is asked for again after a pause. The text says why."""


Ask = Callable[[bytes], Awaitable[ConsoleAnswer]]
"""Asks for a path with its query; fails with L{LinkFailed}."""


def ask_by(link: ConsoleLink) -> Ask:
    """Return what asks by a link, within the bounds of this question."""
    return lambda path: link.ask(b"GET", path, most=MOST_SYNC_BYTES, time=ANSWER_TIME)


class SyncLoop:
    """
    Asks, and hands each answer over, until it is stopped. Nothing that a console says, or does not say, ends it.

    @param reactor: its clock. Only its monotonic time is used, so that a jump of the wall clock changes nothing.
    @param have: returns the digest of the bundle that was accepted last; empty without one.
    @param take: takes an answer, or raises L{TakeLater}; the next question comes when it is done.
    @ivar away_since: since when the console has not answered, by the clock of the reactor; None while it does.
    @ivar refusal: C{ENROL_PENDING} or C{DISABLED} while the console answers so and nothing else; else empty.
    @ivar problem: why it is away, or refuses this router; empty while it serves it.
    """

    def __init__(
        self,
        reactor: Any,
        ask: Ask,
        have: Callable[[], str],
        take: Callable[[SyncAnswer], Awaitable[None]],
        random: Random,
    ) -> None:
        self._reactor = reactor
        self._ask = ask
        self._have = have
        self._take = take
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, random)
        self._running: Deferred[None] | None = None
        self._not_taken = ""
        self.away_since: float | None = reactor.seconds()
        self.refusal = ""
        self.problem = ""

    def start(self) -> None:
        """Begin to ask."""
        self._running = Deferred.fromCoroutine(self._run())
        self._running.addErrback(lambda failure: failure.trap(CancelledError) and None)

    def stop(self) -> Deferred[None]:
        """End a question or pause that is under way, and ask no more."""
        running, self._running = self._running, None
        if running is None:
            return succeed(None)
        running.cancel()
        return running

    async def _run(self) -> None:
        while True:
            await deferLater(self._reactor, await self._turn())

    async def _turn(self) -> float:
        """Ask once, and return the seconds until the next question."""
        # One that has not answered is to do so at once, so that nobody reads for a minute that it is away.
        wait = LONGEST_WAIT if self.away_since is None else 0
        path = b"%s?have=%s&wait=%d" % (SYNC, self._have().encode("ascii"), wait)
        try:
            answer = await self._ask(path)
            if answer.status == 200:
                read = read_body(answer.body, SyncAnswer)
            elif answer.status == 204:
                read = None
            elif answer.status == 403 and answer.problem.code in _REFUSALS:
                return self._refused(answer.problem)
            else:
                raise LinkFailed(f"The console refuses: {quoted(answer.problem.detail or f'status {answer.status}')}")
        except (LinkFailed, ValueError) as error:
            return self._failed(str(error))
        if self.problem:
            _log.info("The console serves this router again")
        self.away_since, self.refusal, self.problem = None, "", ""
        if read is None:
            self._backoff.succeeded()
            return LEAST_DISTANCE
        return await self._taken(read)

    async def _taken(self, answer: SyncAnswer) -> float:
        """Have an answer taken, and return the seconds until the next question: the same answer may come again."""
        try:
            await self._take(answer)
        except CancelledError:
            raise
        except TakeLater as error:
            if str(error) != self._not_taken:
                _log.error("What the console has answered can't be taken now: {problem}", problem=str(error))
            self._not_taken = str(error)
        except Exception:
            _log.failure("What the console has answered could not be taken")
        else:
            self._not_taken = ""
            self._backoff.succeeded()
            return LEAST_DISTANCE
        return self._backoff.failed(FIRST_PAUSE)

    def _refused(self, problem: AgentProblem) -> float:
        sentence = f"{_REFUSALS[problem.code]}: {quoted(problem.detail)}" if problem.detail else _REFUSALS[problem.code]
        if sentence != self.problem:
            _log.warn("{problem}", problem=sentence)
        self.away_since, self.refusal, self.problem = None, problem.code, sentence
        return min(self._backoff.failed(), LONGEST_CONSENT_PAUSE if problem.code == ENROL_PENDING else LONGEST_PAUSE)

    def _failed(self, problem: str) -> float:
        if problem != self.problem:
            _log.warn("The console is away, what runs goes on: {problem}", problem=problem)
        self.problem, self.refusal = problem, ""
        if self.away_since is None:
            self.away_since = self._reactor.seconds()
        return self._backoff.failed()
