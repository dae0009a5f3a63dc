"""
C{redis:redis://HOST:PORT/DB/STREAM}: appends messages to a stream of Redis.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, cast

from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.config.specs import SpecOptions
from webhookrx.interfaces import IStoreObserver
from webhookrx.observers.item_outcomes import store_items
from webhookrx.observers.keyed_record import unpack
from webhookrx.observers.link_observer import LinkObserver
from webhookrx.observers.redis.appender import Connect, RedisLink
from webhookrx.observers.redis.client import connect
from webhookrx.observers.redis.options import RedisTarget, read_access, read_redis
from webhookrx.observers.retrying import Retries

if TYPE_CHECKING:
    from webhookrx.backoff import Random
    from webhookrx.interfaces import Prepared
    from webhookrx.observers.addresses import Server

_log = Logger()


@implementer(IStoreObserver)
class RedisObserver(LinkObserver[str | None]):
    """
    Appends each message to a stream, as an entry with the fields C{id} and C{message}.

    The reply of XADD means that Redis has it in memory; WAITAOF, that it is on a disk. For C{dedup_window} Redis knows
    the ids, so that a message that is sent again is stored once.

    @param connect: as for L{RedisLink}.
    @param clock: seconds on the monotonic clock.
    @param stopping: set when the receiver stops.
    """

    _link: RedisLink

    def __init__(
        self,
        spec: str,
        target: RedisTarget,
        connect: Connect = connect,
        clock: Callable[[], float] = time.monotonic,
        random: Random = random.random,
        stopping: Event | None = None,
    ) -> None:
        retries = Retries(target.retry_for, clock, random, stopping)
        super().__init__(spec, retries, partial(read_access, target.servers, SpecOptions("redis", {})))
        self.prepare = target.format.encode
        self.takes_lines = target.format.takes_lines
        confirmation = target.confirmation
        if confirmation is None:
            self.promise = "written"
            self.promise_reason = "Redis acknowledges from memory; waitaof=1,0 waits until it has synced (Redis 7.2)"
        elif confirmation.local is None:
            self.promise = "written"
            self.promise_reason = "replicas confirm from memory; waitaof=1,1 waits until disks have it (Redis 7.2)"
        else:
            self.promise = "durable"
            self.promise_reason = ""
        self._target = target
        self._link = RedisLink(target, self._retries, self._look_at_server, self.counts.confirmed, connect)
        self._warned: set[str] = set()

    def open(self) -> None:
        """
        Read the files. The first batch connects: the server may be away at the start.

        @raise ConfigError: a file is missing or wrong.
        """
        super().open()
        if self._target.maxlen is not None:
            self._warn_once(
                f"maxlen={self._target.maxlen} lets Redis drop the oldest entries, read or not: acknowledged messages"
            )

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Append a batch in order, and again what was not taken.

        @return: None, or for each message None or L{Unavailable}.
        @raise Unavailable: no message was stored.
        """
        records = [unpack(packed) for packed in cast("Sequence[bytes]", batch)]
        return store_items(records, self._link.append, self._retries, self.counts)

    def _look_at_server(self, server: Server, info: Mapping[str, str]) -> None:
        """Warn once of each setting by which a server may lose what it has acknowledged."""
        policy = info.get("maxmemory_policy", "")
        if policy.startswith("allkeys-") and info.get("maxmemory", "0") != "0":
            self._warn_once(
                f"{server} has maxmemory-policy {policy}: when its memory is full it may drop the whole stream; "
                "noeviction keeps it"
            )
        if info.get("aof_enabled") == "0":
            self._warn_once(
                f"{server} has appendonly no: what it has acknowledged since its last snapshot is lost when it ends"
            )

    def _warn_once(self, problem: str) -> None:
        if problem not in self._warned:
            self._warned.add(problem)
            _log.warn("Observer {spec}: {problem}", spec=self.spec, problem=problem)


def build_redis(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> RedisObserver:
    """
    Make the observer of C{redis:redis://HOST:PORT/DB/STREAM[:key=value…]}; see L{webhookrx.observers.redis.options}.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    observer = RedisObserver(spec, read_redis(args, options))
    observer.check()
    return observer
