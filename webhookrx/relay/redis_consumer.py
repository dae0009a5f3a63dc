"""
Reads a stream of Redis as one of a group of relays, which is a consumer group there.

An entry is acknowledged (XACK) once it is settled. Until then it is claimed again for this consumer every third of
C{claim_after}, which sets its idle time to zero; what a dead consumer holds grows idle, and is claimed by the others
(XAUTOCLAIM, Redis 6.2).
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Final

import redis.exceptions
from twisted.logger import Logger

from webhookrx.errors import Unavailable
from webhookrx.observers.redis.client import RedisConnection, connect, reason_of, steps_of
from webhookrx.observers.redis.options import RedisAccess, read_access
from webhookrx.observers.retrying import STEP
from webhookrx.relay.consumer import BrokerOptions, Record
from webhookrx.relay.redis_source import RedisSource, read_entry
from webhookrx.relay.unsettled import Unsettled, UnsettledRecord
from webhookrx.settings import MiB

_CALL_TIME: Final = 1.5
"""Seconds that a call may take besides its wait for the first record."""
_CONNECT_TIME: Final = 10.0
"""Seconds for connecting, in a thread of its own."""
_ANSWER_TIME: Final = 60.0
"""Seconds for an answer that has begun: the largest entry may come over a slow network."""
_LONGEST_ANSWER: Final = 640 * MiB
"""Bytes of entries that are read at once; a value of Redis has up to 512 MiB (C{proto-max-bulk-len})."""
_LAG_PAUSE: Final = 5.0
"""Seconds between two questions for the lag."""
_MOST: Final = 100
"""Entries that are read at once: Redis has no bound in bytes."""
_FIRST_SIZE: Final = 16384
"""Bytes that an entry is expected to have at most before one was seen."""

_log = Logger()


class RedisConsumer:
    """
    A consumer, see L{webhookrx.relay.consumer.Consumer}. It connects in a thread of its own.

    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, spec: str, source: RedisSource, clock: Callable[[], float] = time.monotonic) -> None:
        self.spec = spec
        self._source = source
        self._clock = clock
        self._options = BrokerOptions("redis", {})
        # Nobody else ever has it, so that nobody else reads or deletes by it.
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._stopping = Event()
        self._access: RedisAccess | None = None
        self._connection: RedisConnection | None = None
        self._connecting: Future[RedisConnection] | None = None
        self._unsettled = Unsettled(source.claim_after, clock)
        self._largest = _FIRST_SIZE
        self._next_claim = clock()
        self._claim_from = "0-0"
        self._next_lag = clock()
        self._lag: int | None = None

    def check(self) -> None:
        """
        Read the files.

        @raise ConfigError: a file is missing or wrong.
        """
        self._read_files()

    def open(self) -> None:
        """Read the files; the first fetch connects."""
        self._access = self._read_files()

    def fetch(self, messages: int, size: int, seconds: float) -> Sequence[Record]:
        """Return what has arrived, else what others have left, else what is new."""
        end = self._clock() + seconds
        while True:
            records = self._unsettled.take(messages, size)
            if records:
                return records
            self._connected(max(seconds, 0.5))
            count = max(1, min(messages, _MOST, size // self._largest))
            if self._clock() >= self._next_claim:
                self._claim(count)
                continue
            left = end - self._clock()
            if self._read(count, 0 if self._stopping.is_set() else max(left, 0.0)):
                continue
            if left <= 0 or self._stopping.is_set():
                return []

    def settle(self, records: Sequence[Record]) -> None:
        """Acknowledge entries."""
        held = self._unsettled.find(records)
        if held:
            self._ask("XACK", self._source.stream, self._source.group, *[each.token for each in held])
            for each in held:
                self._unsettled.forget(each.record.origin)

    def keep_alive(self) -> None:
        """Claim again what is not settled, and forget what others may have claimed."""
        self._unsettled.forget_lost()
        held = self._unsettled.due()
        try:
            for begin in range(0, len(held), _MOST):
                now = self._clock()
                part = held[begin : begin + _MOST]
                self._claim_again(part, 0)
                self._unsettled.keep(part, now)
        except Exception:
            # The next fetch or settle says what is wrong.
            _log.debug("Broker {spec} was not told what is in progress", spec=self.spec)

    def is_ours(self, record: Record) -> bool:
        """Tell whether no other one has claimed it, as far as we can know."""
        return self._unsettled.is_ours(record)

    def lag(self) -> int | None:
        """Return how many entries nobody of the group has read, as last heard."""
        return self._lag

    def reopen(self) -> None:
        """Read the files again; they are used by the next connection, which is made at once."""
        self._access = self._read_files()
        self._disconnect()

    def hurry(self) -> None:
        """End the wait for the next entry."""
        self._stopping.set()

    def close(self) -> None:
        """Let others claim at once what is not settled, leave the group if there is nothing, and disconnect."""
        try:
            if self._connection is not None:
                self._leave()
        except Exception:
            _log.debug("Broker {spec} was not told what is not settled", spec=self.spec)
        self._access = None
        self._disconnect()

    def _deliver(self, entries: Any, asked: float, *, redelivered: bool) -> int:
        """
        Take entries as Redis lists them, and return how many there are.

        @param asked: when it was asked for them.
        @raise Unavailable: that is no list of entries.
        """
        if not isinstance(entries, list):
            raise Unavailable("the answer is no list of entries")
        # What was large becomes less so, in case there was only one.
        self._largest = max(self._largest // 2, 1)
        for listed in entries:
            match listed:
                case [bytes(raw), list(fields)]:
                    entry = raw.decode("ascii", "replace")
                case _:
                    # Deleted from the stream, but not yet from those that are pending.
                    continue
            value, own = read_entry(fields)
            milliseconds = entry.partition("-")[0]
            received = int(milliseconds) * 1_000_000 if milliseconds.isdecimal() else None
            record = Record(value, own, f"{self._source.stream}/{entry}", received, object(), redelivered)
            self._largest = max(self._largest, record.size)
            self._unsettled.deliver(record, entry, asked)
        return len(entries)

    # -- Redis -------------------------------------------------------------------------------------------------------

    def _read(self, count: int, seconds: float) -> int:
        """Read new entries; wait in steps, so that no answer is given up that may have entries in it."""
        source = self._source
        asked = self._clock()
        # BLOCK 0 would mean for ever.
        blocking = ("BLOCK", max(int(min(seconds, STEP) * 1000), 1)) if seconds else ()
        command = (
            "XREADGROUP",
            "GROUP",
            source.group,
            self._name,
            "COUNT",
            count,
            *blocking,
            "STREAMS",
            source.stream,
            ">",
        )
        try:
            answer = self._ask(*command)
        except _NoGroup:
            self._make_group()
            return 0
        match answer:
            case None:
                self._lag = 0
                return 0
            case [[_, entries]]:
                found = self._deliver(entries, asked, redelivered=False)
                self._ask_lag()
                return found
        raise Unavailable("the answer is none to XREADGROUP")

    def _claim(self, count: int) -> None:
        """Claim what has been idle for too long, a part of it at a time."""
        source = self._source
        idle = int(source.claim_after * 1000)
        asked = self._clock()
        try:
            answer = self._ask(
                "XAUTOCLAIM", source.stream, source.group, self._name, idle, self._claim_from, "COUNT", count
            )
        except _NoGroup:
            self._make_group()
            return
        match answer:
            case [bytes(after), entries, *_]:
                self._deliver(entries, asked, redelivered=True)
                self._claim_from = after.decode("ascii", "replace")
            case _:
                raise Unavailable("the answer is none to XAUTOCLAIM")
        if self._claim_from == "0-0":
            self._next_claim = self._clock() + source.claim_after / 3

    def _claim_again(self, held: Sequence[UnsettledRecord], idle: int) -> None:
        """Set how many milliseconds entries have been idle. JUSTID is no delivery."""
        source = self._source
        entries = [each.token for each in held]
        self._ask("XCLAIM", source.stream, source.group, self._name, 0, *entries, "IDLE", idle, "JUSTID")

    def _make_group(self) -> None:
        # Another relay may be faster.
        with suppress(_GroupExists):
            self._ask("XGROUP", "CREATE", self._source.stream, self._source.group, "0", "MKSTREAM")

    def _ask_lag(self) -> None:
        """Ask for the lag now and then. Before Redis 7 there is none, and the user may have no right."""
        if self._clock() < self._next_lag:
            return
        self._next_lag = self._clock() + _LAG_PAUSE
        self._lag = None
        try:
            answer = self._ask("XINFO", "GROUPS", self._source.stream)
        except Unavailable:
            return
        for group in answer if isinstance(answer, list) else []:
            fields = dict(zip(group[::2], group[1::2], strict=False)) if isinstance(group, list) else {}
            lag = fields.get(b"lag")
            if fields.get(b"name") == self._source.group.encode() and isinstance(lag, int):
                self._lag = lag

    def _leave(self) -> None:
        source = self._source
        held = self._unsettled.all()
        for begin in range(0, len(held), _MOST):
            self._claim_again(held[begin : begin + _MOST], int(source.claim_after * 1000))
        # Deleting a consumer deletes what is pending for it, also what it has never heard of.
        if not held and self._ask("XPENDING", source.stream, source.group, "-", "+", 1, self._name) == []:
            self._ask("XGROUP", "DELCONSUMER", source.stream, source.group, self._name)

    def _ask(self, *command: str | int) -> Any:
        """
        Send a command, and return its answer.

        @raise Unavailable: it fails.
        """
        connection = self._connected(_CALL_TIME)
        excerpt = not self._source.servers.sends_secret
        try:
            (answer,) = connection.exchange([command], 1, self._steps(), _LONGEST_ANSWER, _CALL_TIME)
        except (redis.exceptions.RedisError, OSError) as error:
            # It may have been too much at once, and would be so at every try.
            self._largest = min(16 * self._largest, _LONGEST_ANSWER)
            self._disconnect()
            raise Unavailable(reason_of(error, excerpt=excerpt)) from None
        if not isinstance(answer, redis.exceptions.RedisError):
            return answer
        text = str(answer)
        if text.startswith("NOGROUP"):
            raise _NoGroup("there is no such group")
        if text.startswith("BUSYGROUP"):
            raise _GroupExists("there is such a group")
        if not isinstance(answer, redis.exceptions.NoPermissionError):
            # It may be a replica now: the next connection asks for the master.
            self._disconnect()
        raise Unavailable(reason_of(answer, excerpt=excerpt))

    def _steps(self) -> Iterator[float]:
        """Yield how long to wait next for an answer."""
        begun = self._clock()
        for step in steps_of(_ANSWER_TIME, self._clock):
            if self._stopping.is_set() and self._clock() - begun > _CALL_TIME:
                return
            yield step

    def _connected(self, seconds: float) -> RedisConnection:
        """
        Return the connection, which another thread makes.

        @raise Unavailable: there is none, or not within C{seconds}.
        """
        if self._connection is not None:
            return self._connection
        if self._access is None:
            raise Unavailable("it is closed")
        if self._connecting is None:
            future: Future[RedisConnection] = Future()
            Thread(target=self._connect, args=(future, self._access), name="webhookrx-relay-redis", daemon=True).start()
            self._connecting = future
        if not wait([self._connecting], min(seconds, _CALL_TIME)).done:
            raise Unavailable("it has not answered yet")
        made, self._connecting = self._connecting, None
        self._connection = made.result()
        return self._connection

    def _connect(self, future: Future[RedisConnection], access: RedisAccess) -> None:
        try:
            connection, _ = connect(self._source.servers, *access, steps_of(_CONNECT_TIME))
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(connection)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()

    def _read_files(self) -> RedisAccess:
        return read_access(self._source.servers, self._options)


class _NoGroup(Unavailable):
    """There is no such consumer group, or no stream."""


class _GroupExists(Unavailable):
    """There is such a consumer group already."""
