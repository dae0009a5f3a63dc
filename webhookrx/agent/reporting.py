"""
Reporting: brings reports to the console, one at a time, now and then and as soon as something has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from webhookrx.agent.access import ConsoleAccess
from webhookrx.agent.chores import in_background, timer_of
from webhookrx.agent.link import ConsoleAnswer, LinkFailed
from webhookrx.agent.reports import Reports, ToldState
from webhookrx.diagnostics import quoted
from webhookrx.management.agent_body import write_body
from webhookrx.management.agent_protocol import (
    REPORT,
    REPORT_INTERVAL,
    SEND_ALL,
    AppliedState,
    CommandAnswer,
)

_LATER: Final = (403, 429)
"""Statuses of refusals that say nothing of the report itself."""

_MOST_IN_TURN: Final = 8
"""Reports one after the other; more wait for the next interval."""

_log = Logger()


class Reporting:
    """
    Reports.

    @param applied: returns what became of the newest bundle.
    @param state: returns what is told of the receiver.
    @param now: returns the time, nanoseconds since the epoch.
    """

    def __init__(
        self,
        reactor: Any,
        access: ConsoleAccess,
        applied: Callable[[], AppliedState],
        state: Callable[[], ToldState],
        now: Callable[[], int],
    ) -> None:
        self._access = access
        self._applied = applied
        self._state = state
        self._now = now
        self._reports = Reports(now(), token_hex(16))
        self._sending: Deferred[None] | None = None
        self._again = False
        self._problem = ""
        self._timer = timer_of(reactor, self._report)

    def start(self) -> None:
        """Report every L{REPORT_INTERVAL}."""
        self._timer.start(REPORT_INTERVAL, now=False)

    def stop(self) -> None:
        """End a report that is under way, and report no more on time."""
        if self._timer.running:
            self._timer.stop()
        if self._sending is not None:
            self._sending.cancel()

    def soon(self) -> None:
        """Report now, or when the report under way has ended."""
        if self._sending is not None:
            self._again = True
            return
        in_background(self._report())

    def answer(self, answer: CommandAnswer) -> None:
        """Answer a command now, or with a report soon."""
        self._reports.answer(answer)
        self.soon()

    async def _report(self) -> None:
        if self._sending is not None:
            return
        self._sending = Deferred.fromCoroutine(self._send())
        try:
            await self._sending
        finally:
            self._sending = None

    async def _send(self) -> None:
        for _ in range(_MOST_IN_TURN):
            self._again = False
            is_resent = self._reports.under_way is not None
            report = self._reports.next(self._applied(), self._state(), self._now())
            try:
                answer = await self._access.link.ask(b"POST", REPORT, write_body(report))
            except LinkFailed:
                # The same one is sent again: whether the console has it is not known.
                return
            if answer.status == 204:
                self._reports.confirmed()
                self._problem = ""
            elif answer.status == 409 and answer.problem.code == SEND_ALL:
                self._reports.send_all()
                self._again = True
            elif 400 <= answer.status < 500 and answer.status not in _LATER:
                # The same one would be refused again.
                self._not_taken(answer)
                self._reports.give_up()
                return
            else:
                return
            if not (self._again or is_resent or self._reports.has_answers):
                return

    def _not_taken(self, answer: ConsoleAnswer) -> None:
        problem = answer.problem.detail or f"status {answer.status}"
        if problem != self._problem:
            _log.error("The console does not take a report of this router: {problem}", problem=quoted(problem))
        self._problem = problem
