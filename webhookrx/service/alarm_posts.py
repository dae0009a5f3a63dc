"""
Tells targets of changes of alarms: one POST for each change, in order, again until it is taken or too old.

A target is named by the operator, and what it answers is shown to nobody; see L{webhookrx.service.named_client}.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.backoff import Backoff
from webhookrx.management.alarm_rules import AlarmTarget
from webhookrx.management.alarm_values import AlarmChange
from webhookrx.service.named_client import NamedClient, TargetEndpoint

MOST_WAITING: Final = 1000
"""Changes that wait for a target; of more, the oldest are given up."""

OLDEST: Final = 86400.0
"""Seconds for which a change is tried."""

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
"""Bounds of the pauses between two tries, in seconds."""

_AGAIN: Final = frozenset({408, 425, 429})
"""Statuses, besides those from 500 on, after which the same is tried again."""

_log = Logger()


class AlarmPost(NamedTuple):
    """
    A change of an alarm that a target is to be told of.

    @ivar key: by which the target knows it again.
    @ivar body: of the POST.
    """

    key: str
    body: bytes


class _WaitingPost(NamedTuple):
    post: AlarmPost
    since: float


def post_of(change: AlarmChange, service: str, key: str = "") -> AlarmPost:
    """
    Return what a target is told of a change.

    @param service: what tells it.
    @param key: a new one by default.
    """
    key = key or os.urandom(16).hex()
    body = {
        "version": 1,
        "id": key,
        "service": service,
        "alarm": change.alarm,
        "kind": change.kind,
        "subject": change.subject,
        "state": change.state,
        "since": change.since,
        "text": change.text,
    }
    return AlarmPost(key, msgspec.json.encode(body))


class AlarmPosts:
    """
    Tells all targets of some settings.

    @param reactor: it has times, names and connections.
    @param service: what the receiver calls itself.
    @param count: called with C{told} or C{given_up} for each change.
    @param done: called with the key of each change that was told or given up, and that word; not when its target is
        there no more.
    """

    def __init__(
        self,
        reactor: Any,
        service: str,
        count: Callable[[str], object],
        endpoint_for: TargetEndpoint | None = None,
        new_key: Callable[[], str] = str,
        random: Callable[[], float] = random.random,
        done: Callable[[str, str], object] = lambda key, outcome: None,
    ) -> None:
        self._reactor = reactor
        self._service = service
        self._count = count
        self._client = NamedClient(reactor, endpoint_for)
        self._new_key = new_key
        self._random = random
        self._done = done
        self._queues: dict[str, _TargetQueue] = {}

    def use(self, targets: Sequence[AlarmTarget]) -> None:
        """Tell these targets from now on; what waits for others is given up."""
        wanted = {each.name: each for each in targets}
        for name, queue in list(self._queues.items()):
            if wanted.get(name) != queue.target:
                queue.stop()
                del self._queues[name]
        for name, target in wanted.items():
            if name not in self._queues:
                self._queues[name] = _TargetQueue(
                    self._reactor, target, self._post, self._count, self._random, self._done
                )

    def tell(self, change: AlarmChange) -> None:
        """Tell the target of a change, if it has one."""
        self.send(change.notify, post_of(change, self._service, self._new_key()))

    def send(self, target: str, post: AlarmPost, age: float = 0.0) -> None:
        """
        Send a POST to the target of a name, if there is one.

        @param age: for how many seconds it has waited already.
        """
        queue = self._queues.get(target)
        if queue is not None:
            queue.put(_WaitingPost(post, self._reactor.seconds() - age))

    def stop(self) -> None:
        """Tell nothing any more."""
        self.use(())

    def _post(self, target: AlarmTarget, post: AlarmPost) -> Deferred[int]:
        headers = {"Content-Type": "application/json", "Idempotency-Key": f'"{post.key}"'}
        return self._client.tell("POST", target.url, headers, post.body)


class _TargetQueue:
    """What waits for one target; one change at a time is on its way."""

    def __init__(
        self,
        reactor: Any,
        target: AlarmTarget,
        post: Callable[[AlarmTarget, AlarmPost], Deferred[int]],
        count: Callable[[str], object],
        random: Callable[[], float],
        done: Callable[[str, str], object],
    ) -> None:
        self.target = target
        self._reactor = reactor
        self._post = post
        self._count = count
        self._tell_done = done
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, random)
        self._waiting: deque[_WaitingPost] = deque()
        self._running: Deferred[Any] | None = None
        self._next: Any = None
        self._is_stopped = self._has_failed = False

    def put(self, waiting: _WaitingPost) -> None:
        """Take a change."""
        if len(self._waiting) >= MOST_WAITING:
            # The first may be on its way just now.
            key = self._waiting[1].post.key
            del self._waiting[1]
            self._give_up(key, "too much waits for it")
        self._waiting.append(waiting)
        self._begin()

    def stop(self) -> None:
        """Give up all that waits."""
        self._is_stopped = True
        for _ in self._waiting:
            self._count("given_up")
        self._waiting.clear()
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._running is not None:
            self._running.cancel()

    def _begin(self) -> None:
        if self._running is None and self._next is None and self._waiting:
            posting = self._running = self._post(self.target, self._waiting[0].post)
            posting.addCallbacks(self._answered, self._failed)

    def _answered(self, status: int) -> None:
        if 200 <= status < 300:
            self._has_failed = False
            self._done("told")
        elif status in _AGAIN or status >= 500:
            self._again(f"it answers with status {status}")
        else:
            # A redirect is one of these: where it leads is another host's word.
            self._done("given_up", f"it answers with status {status}")

    def _failed(self, failure: Failure) -> None:
        self._again(failure.getErrorMessage())

    def _again(self, why: str) -> None:
        self._running = None
        if self._is_stopped:
            return
        if self._reactor.seconds() - self._waiting[0].since > OLDEST:
            self._done("given_up", why)
            return
        if not self._has_failed:
            self._has_failed = True
            _log.warn("The target {name} can't be told of alarms now: {why}", name=self.target.name, why=why)
        self._next = self._reactor.callLater(self._backoff.failed(), self._resume)

    def _resume(self) -> None:
        self._next = None
        self._begin()

    def _done(self, outcome: str, why: str = "") -> None:
        self._running = None
        if self._is_stopped:
            return
        self._backoff.succeeded()
        key = self._waiting.popleft().post.key
        if outcome == "told":
            self._count(outcome)
            self._tell_done(key, outcome)
        else:
            self._give_up(key, why)
        # Not at once: an answer may be there at once, and so many may wait.
        self._next = self._reactor.callLater(0, self._resume)

    def _give_up(self, key: str, why: str) -> None:
        self._count("given_up")
        self._tell_done(key, "given_up")
        _log.warn("A change of an alarm is not told to {name}: {why}", name=self.target.name, why=why)
