"""
Tells targets of changes of alarms: one POST for each change, in order, again until it is taken or too old.

A target is named by the operator, and what it answers is shown to nobody. No redirect is followed, no proxy of the
environment is used, and an address of the link, where clouds have their metadata services, is never connected to.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, wrapClientTLS
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers

from webhookrx.backoff import Backoff
from webhookrx.client_bodies import WholeBody
from webhookrx.errors import WebhookrxError
from webhookrx.management.alarm_rules import AlarmTarget
from webhookrx.management.alarm_values import AlarmChange
from webhookrx.observers.client_tls import ClientTLS, make_creator
from webhookrx.service.pinned_client import TRANSLATED, OneEndpoint, Resolution
from webhookrx.version import installed_version

TIME: Final = 10.0
"""Seconds for one try."""

MOST_WAITING: Final = 1000
"""Changes that wait for a target; of more, the oldest are given up."""

OLDEST: Final = 86400.0
"""Seconds for which a change is tried."""

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
"""Bounds of the pauses between two tries, in seconds."""

_AGAIN: Final = frozenset({408, 425, 429})
"""Statuses, besides those from 500 on, after which the same is tried again."""

_METADATA: Final = frozenset(map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192")))
"""Where clouds have metadata services at addresses that are none of the link: EC2, Google, Alibaba and Oracle."""

_log = Logger()

#: Returns what connects to an address of a host; the last argument tells whether by TLS.
TargetEndpoint = Callable[[str, str, int, bool], IStreamClientEndpoint]


class NotTold(WebhookrxError):
    """A target could not be told; the text holds nothing that it has answered, nor its URL."""


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
        self._endpoint_for = endpoint_for or self._endpoint
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
        """Return the status of an answer; it fails with L{NotTold}."""
        parts = urlsplit(target.url)
        host, is_tls = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        resolving = Resolution()
        self._reactor.nameResolver.resolveHostName(resolving, host, port)

        def connect(addresses: Sequence[str]) -> Deferred[int]:
            if not addresses:
                raise NotTold("its host has no address")
            if any(map(is_forbidden, addresses)):
                raise NotTold("its host has an address of the link")
            endpoint = OneEndpoint(self._endpoint_for(host, addresses[0], port, is_tls))
            pool = HTTPConnectionPool(self._reactor, persistent=False)
            agent = Agent.usingEndpointFactory(self._reactor, endpoint, pool)
            headers = {
                "User-Agent": f"webhookrx/{installed_version()}",
                "Content-Type": "application/json",
                "Idempotency-Key": f'"{post.key}"',
            }
            asking: Deferred[Any] = agent.request(
                b"POST",
                target.url.encode("ascii"),
                Headers({name: [text] for name, text in headers.items()}),
                WholeBody(post.body),
            )
            return asking.addCallback(lambda answer: int(answer.code)).addBoth(endpoint.close)

        telling = resolving.known.addCallback(connect)
        telling.addTimeout(TIME, self._reactor, _too_late)
        return telling.addErrback(_told)

    def _endpoint(self, host: str, address: str, port: int, is_tls: bool) -> IStreamClientEndpoint:
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        endpoint = kind(self._reactor, address, port, timeout=TIME)
        return wrapClientTLS(make_creator(host, ClientTLS()), endpoint) if is_tls else endpoint


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


def is_forbidden(address: str) -> bool:
    """Tell whether an address is one of the link, however it is written, or the metadata service of a cloud."""
    try:
        parsed: IPv4Address | IPv6Address | None = ip_address(address)
    except ValueError:
        return True  # what it is nobody knows
    if isinstance(parsed, IPv6Address):
        if parsed in TRANSLATED:
            parsed = IPv4Address(int(parsed) & 0xFFFF_FFFF)
        else:
            parsed = parsed.ipv4_mapped or parsed.sixtofour or parsed
    assert parsed is not None, "it was parsed"
    return parsed.is_link_local or parsed in _METADATA


def _too_late(value: Any, seconds: float) -> Any:
    raise NotTold(f"it has not answered within {seconds:g} seconds")


def _told(failure: Failure) -> Failure:
    """Return the failure as a L{NotTold}, whose text holds nothing that another machine has said."""
    if failure.check(NotTold):
        return failure
    reasons: Sequence[Failure] = getattr(failure.value, "reasons", None) or [failure]
    return Failure(NotTold(f"it can't be reached ({getattr(reasons[0].type, '__name__', 'an error')})"))
