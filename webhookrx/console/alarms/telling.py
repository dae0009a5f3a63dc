"""
Tells the targets of a console of changes of alarms, out of the outbox: a restart loses nothing of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.console.alarms.outbox import count_posts, drop_posts, read_posts
from webhookrx.console.alarms.targets import ConsoleTarget, delete_target, read_targets, save_target
from webhookrx.console.store.history import Author
from webhookrx.errors import WebhookrxError
from webhookrx.management.alarm_values import AlarmChange
from webhookrx.service.alarm_posts import AlarmPost, AlarmPosts, post_of
from webhookrx.service.named_client import TargetEndpoint

if TYPE_CHECKING:
    from webhookrx.console.console import Console

WINDOW: Final = 50
"""POSTs for one target that are in memory."""

_log = Logger()


class TellingStatus(NamedTuple):
    """
    What targets were told.

    @ivar waiting: what they are to be told yet.
    """

    told: int = 0
    given_up: int = 0
    waiting: int = 0


class AlarmTelling:
    """
    Tells targets, one POST after the other for each.

    @ivar targets: by name.
    """

    def __init__(self, console: Console, endpoint_for: TargetEndpoint | None = None) -> None:
        self._console = console
        self.targets: Mapping[str, ConsoleTarget] = {}
        self._posts = AlarmPosts(
            console.reactor, console.settings.url, lambda outcome: None, endpoint_for, done=self._done
        )
        self._windows: dict[str, _Window] = {}
        self._finished: dict[str, str] = {}
        self._outcomes: Counter[str] = Counter()
        self._waiting = 0
        self._work: Deferred[None] | None = None
        self._is_wanted = self._is_stopped = False

    async def start(self) -> None:
        """Read the targets, and go on with what they were not told."""
        self._waiting = await self._console.store.look(count_posts)
        self.use(await self._console.store.look(read_targets))

    def use(self, targets: Mapping[str, ConsoleTarget]) -> None:
        """Tell these targets from now on."""
        for name, known in self.targets.items():
            if targets.get(name, known).target != known.target or name not in targets:
                del self._windows[name]
        self.targets = targets
        for name in targets:
            self._windows.setdefault(name, _Window())
        self._posts.use([each.target for each in targets.values()])
        self.wake()

    @property
    def built_in(self) -> str:
        """The names of the targets of built-in alarms, with commas between."""
        return ",".join(name for name, each in self.targets.items() if each.built_in)

    def posts(self, change: AlarmChange) -> list[tuple[str, AlarmPost]]:
        """Return what a change adds to the outbox, each with the name of its target."""
        names = [name for name in change.notify.split(",") if name in self.targets]
        return [(name, post_of(change, self._console.settings.url)) for name in names]

    def added(self, waiting: int, given_up: int) -> None:
        """Note that more is in the outbox: how many wait now, and how many older ones were given up."""
        self._waiting = waiting
        self._outcomes["given_up"] += given_up
        self.wake()

    async def save(self, author: Author, target: ConsoleTarget) -> None:
        """
        Save a target.

        @raise webhookrx.console.api.problems.ApiProblem: there are too many.
        """
        self.use(await self._console.store.write(lambda t: save_target(t, author, target)))

    async def delete(self, author: Author, name: str) -> bool:
        """
        Delete a target with what it was not told yet; return False if there is none.

        @raise webhookrx.console.api.problems.ApiProblem: an alarm notifies it.
        """
        left = await self._console.store.write(lambda t: delete_target(t, author, name))
        if left is not None:
            self.use(left)
            self._waiting = await self._console.store.look(count_posts)
        return left is not None

    def wake(self) -> None:
        """Look into the outbox."""
        self._is_wanted = True
        if self._work is None and not self._is_stopped:
            self._work = Deferred.fromCoroutine(self._run())
            # What fails is tried again when it is woken next: by a change of an alarm, or by the next look.
            self._work.addErrback(_failed).addBoth(self._ran)

    async def stop(self) -> None:
        """Tell nothing any more, and forget what was told."""
        self._is_stopped = True
        self._posts.stop()
        work = self._work
        if work is not None:
            ended: Deferred[None] = Deferred()
            work.addBoth(lambda result: ended.callback(None))
            await ended
        try:
            await self._forget()
        except WebhookrxError as error:
            _log.warn("Targets of alarms may be told again: {why}", why=error)

    async def _run(self) -> None:
        while self._is_wanted and not self._is_stopped:
            self._is_wanted = False
            await self._forget()
            for name in tuple(self._windows):
                await self._fill(name)

    def _ran(self, result: object) -> None:
        self._work = None

    async def _forget(self) -> None:
        """Take out of the outbox what was told or given up."""
        finished = dict(self._finished)
        if finished:
            self._waiting = await self._console.store.write(lambda t: drop_posts(t, tuple(finished)))
            for key, outcome in finished.items():
                del self._finished[key]
                self._outcomes[outcome] += 1

    async def _fill(self, name: str) -> None:
        window = self._windows.get(name)
        if window is None or len(window.keys) > WINDOW // 2:
            return
        rows = await self._console.store.look(lambda db: read_posts(db, name, window.last, WINDOW))
        if self._windows.get(name) is not window:
            return  # it is another target by now
        for row in rows:
            window.last = row.id
            if row.post.key not in self._finished:
                window.keys.add(row.post.key)
                self._posts.send(name, row.post, max(0.0, self._console.clock() - row.at))

    def _done(self, key: str, outcome: str) -> None:
        self._finished[key] = outcome
        for window in self._windows.values():
            window.keys.discard(key)
        self.wake()

    @property
    def status(self) -> TellingStatus:
        """What was told."""
        return TellingStatus(self._outcomes["told"], self._outcomes["given_up"], self._waiting)


class _Window:
    """
    What of the outbox is in memory for one target.

    @ivar keys: of what is on its way or waits.
    @ivar last: the id of the last one.
    """

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.last = 0


def _failed(failure: Failure) -> None:
    if failure.check(WebhookrxError):
        _log.warn("Targets of alarms can't be told now: {why}", why=failure.value)
    else:
        _log.failure("Targets of alarms could not be told", failure)
