"""
Reloads: one at a time, and what is said of them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from math import inf
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.config.option_reader import ConfigProblems
from webhookrx.errors import WebhookrxError
from webhookrx.operations.counters import Counters
from webhookrx.operations.notify import Notifier

_log = Logger()

#: Seconds from the end of one to the beginning of the next, in which senders have their turn.
DISTANCE = 0.5

_UNFORESEEN = "an unforeseen failure, which the log has in full"


class Outcome(NamedTuple):
    """
    What became of a reload.

    @ivar at: when it ended, seconds since the epoch.
    @ivar ok: whether the new settings are in use.
    @ivar text: what has changed, or the first of what is wrong.
    """

    at: float
    ok: bool
    text: str


class Reloads:
    """
    Reloads when asked to.

    Requests that come while a reload is under way, or within L{DISTANCE} after it, are one more reload.

    @param reload: changes everything, or raises and has changed nothing; says in a few words what it did.
    @param counters: where reloads are counted.
    @param status: one line on how the service does.
    @param clock: seconds on the monotonic clock.
    @param counted: gives all that is counted, for the log; C{counters} when None.
    @ivar last: the outcome of the last one; None before the first.
    """

    def __init__(
        self,
        reload: Callable[[], Awaitable[str]],
        counters: Counters,
        notifier: Notifier,
        status: Callable[[], str],
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        counted: Callable[[], Counters] | None = None,
    ) -> None:
        self.last: Outcome | None = None
        self._reload = reload
        self._counters = counters
        self._notifier = notifier
        self._status = status
        self._wall_clock = wall_clock
        self._clock = clock
        self._counted = counted or (lambda: counters)
        self._not_before = -inf
        self._under_way = False
        self._wanted = False
        self._stopped = False

    @property
    def succeeded(self) -> bool:
        """Whether the last one did; True when there was none."""
        return self.last is None or self.last.ok

    @property
    def failure(self) -> str:
        """How the last one failed; empty when it did not, or there was none."""
        return "" if self.last is None or self.last.ok else self.last.text

    def told_in(self, status: str) -> str:
        """Return a line on how the service does, and how the last reload failed, if it did."""
        return f"{status}; the last reload failed: {self.failure}" if self.failure else status

    def request(self) -> None:
        """Reload now, or once more soon after the one that is under way."""
        self._wanted = True
        self.tick()

    def tick(self) -> None:
        """Begin what was asked for, if it is time; called now and then."""
        if self._wanted and not self._under_way and not self._stopped and self._clock() >= self._not_before:
            self._wanted = False
            self._under_way = True
            Deferred.fromCoroutine(self._run()).addErrback(_log_failure)

    def stop(self) -> None:
        """Begin none any more. One that is under way sees for itself that the service stops."""
        self._stopped = True

    async def _run(self) -> None:
        try:
            self._notifier.reloading()
            await self._reload_once()
            if not self._stopped:
                self._notifier.ready(self._status())
        finally:
            # Whatever went wrong, the next request is heard.
            self._under_way = False
            self._not_before = self._clock() + DISTANCE

    async def _reload_once(self) -> None:
        _log.info("Reloading. Counts so far: {counts}", counts=self._counted().summary() or "none")
        try:
            text = await self._reload()
        except WebhookrxError as error:
            problems = error.errors if isinstance(error, ConfigProblems) else (error,)
            for problem in problems:
                _log.error("Reload failed, the old settings stay: {problem}", problem=str(problem))
            self._end(False, str(problems[0]))
        except Exception:
            _log.failure("Reload failed, the old settings stay")
            self._end(False, _UNFORESEEN)
        else:
            _log.info("Reloaded: {text}", text=text)
            self._end(True, text)

    def _end(self, ok: bool, text: str) -> None:
        self._counters.add("reloads", "ok" if ok else "failed")
        self.last = Outcome(self._wall_clock(), ok, text)


def _log_failure(failure: Failure) -> None:
    _log.failure("What goes with a reload failed", failure)
