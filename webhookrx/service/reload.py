"""
Reloads: one at a time, when a signal or a changed file asks for one.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.config.files import signature_of
from webhookrx.config.option_reader import ConfigProblems
from webhookrx.errors import WebhookrxError
from webhookrx.operations.counters import Counters
from webhookrx.operations.systemd import Notifier
from webhookrx.settings import Signature

_log = Logger()

#: Seconds between two reloads, in which senders are served.
DISTANCE = 0.5

UNFORESEEN = "an unforeseen failure, which the log has in full"


class ReloadResult(NamedTuple):
    """
    The result of a reload.

    @ivar ok: whether the new settings are in use.
    @ivar text: what has changed, or the first problem.
    """

    ok: bool
    text: str


class Reloads:
    """
    Runs reloads. Requests that come during a reload, or within L{DISTANCE} after it, become one more reload.

    @param reload: changes everything and says in a few words what; or raises, and has changed nothing.
    @param counted: returns everything counted so far, for the log.
    @param counters: where reloads are counted.
    @param status: returns one line on how the service does.
    @param clock: seconds on the monotonic clock.
    @ivar last: the result of the last reload; None before the first.
    """

    def __init__(
        self,
        reload: Callable[[], Awaitable[str]],
        counted: Callable[[], Counters],
        counters: Counters,
        notifier: Notifier,
        status: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.last: ReloadResult | None = None
        self._reload = reload
        self._counters = counters
        self._notifier = notifier
        self._status = status
        self._clock = clock
        self._counted = counted
        self._not_before = -inf
        self._under_way = False
        self._wanted = False
        self._stopped = False

    @property
    def succeeded(self) -> bool:
        """Whether the last reload succeeded; True before the first."""
        return self.last is None or self.last.ok

    @property
    def failure(self) -> str:
        """How the last reload failed; empty when it did not, and before the first."""
        return "" if self.last is None or self.last.ok else self.last.text

    def with_failure(self, status: str) -> str:
        """Return a status line, with the failure of the last reload if it failed."""
        return f"{status}; the last reload failed: {self.failure}" if self.failure else status

    def request(self) -> None:
        """Reload now, or soon after the reload that is under way."""
        self._wanted = True
        self.tick()

    def tick(self) -> None:
        """Start a requested reload when it is due; called now and then."""
        if self._wanted and not self._under_way and not self._stopped and self._clock() >= self._not_before:
            self._wanted = False
            self._under_way = True
            Deferred.fromCoroutine(self._run()).addErrback(_log_failure)

    def stop(self) -> None:
        """Start no more reloads. One that is under way notices by itself that the service stops."""
        self._stopped = True

    async def _run(self) -> None:
        try:
            self._notifier.reloading()
            await self._reload_once()
            if not self._stopped:
                self._notifier.ready(self._status())
        finally:
            # Whatever went wrong, the next request counts.
            self._under_way = False
            self._not_before = self._clock() + DISTANCE

    async def _reload_once(self) -> None:
        _log.info("Reloading. Counts so far: {counts}", counts=self._counted().summary() or "none")
        try:
            text = await self._reload()
        except WebhookrxError as error:
            problems = [each.text for each in error.errors] if isinstance(error, ConfigProblems) else [str(error)]
            for problem in problems:
                _log.error("Reload failed, the old settings stay: {problem}", problem=problem)
            self._end(False, problems[0])
        except Exception:
            _log.failure("Reload failed, the old settings stay")
            self._end(False, UNFORESEEN)
        else:
            _log.info("Reloaded: {text}", text=text)
            self._end(True, text)

    def _end(self, ok: bool, text: str) -> None:
        self._counters.add("reloads", "ok" if ok else "failed")
        self.last = ReloadResult(ok, text)


def _log_failure(failure: Failure) -> None:
    _log.failure("A reload failed outside its change of settings", failure)


class FileWatch:
    """
    Watches files by stat(2): a few calls a second, on any file system. A change counts once two looks in a row have
    seen it, so that a file is not read while it is being written.

    @param look: returns the signature of a path.
    @ivar changed: the paths of the last change that was reported, by name.
    """

    def __init__(self, look: Callable[[str], Signature] = signature_of) -> None:
        self._look = look
        self.changed: list[str] = []
        self._known: dict[str, Signature] = {}
        self._last = self._known

    def use(self, files: Mapping[str, Signature]) -> None:
        """
        Watch these files.

        @param files: the signature of each path from just before it was read: a change since then counts.
        """
        self._known = self._last = dict(files)

    def read(self) -> None:
        """Count only changes from now on: all files are about to be read."""
        self._known = self._last = {path: self._look(path) for path in self._known}

    def tick(self) -> bool:
        """Look, and return whether a change has settled since the last look. Each change is reported once."""
        now = {path: self._look(path) for path in self._known}
        settled = now != self._known and now == self._last
        self._last = now
        if settled:
            self.changed = sorted(path for path, signature in now.items() if signature != self._known[path])
            self._known = now
        return settled
