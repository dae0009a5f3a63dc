"""
Quotas: how much a source, token or address may send, as token buckets.

A bucket is two moments: until when what was taken of messages, and of bytes, has used up the rate (the "virtual
scheduling" form of the generic cell rate algorithm, ITU-T I.371 annex A). It is as full as these moments are past.
"""

from __future__ import annotations

from hashlib import blake2b
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgspec import Struct

from webhookrx.intake.client_address import sender_of

if TYPE_CHECKING:
    from mmap import mmap

PER: Final = ("source", "token", "address")
"""What has a bucket of its own."""

LONGEST_WAIT: Final = 86400
"""The most seconds of a Retry-After."""

NAMED: Final = 4096
"""Buckets of sources and tokens."""
ADDRESSES: Final = 65_536
"""Buckets of addresses."""

SHARED: Final = 16
"""Buckets of one source that addresses share while there are too many."""

_WAYS: Final = 8
"""Places in which one bucket may be."""
_PLACES: Final = NAMED + ADDRESSES
SECRET_SIZE: Final = 16
BUCKETS_SIZE: Final = SECRET_SIZE + 3 * 8 * _PLACES
"""Bytes of memory for all of them, and for the secret in front of them."""

# Sums of times are rounded.
_ROUNDING: Final = 1e-6


class SourceQuota(Struct, frozen=True):
    """
    How much may come.

    @ivar messages: a second; None for any number.
    @ivar bytes: a second, of bodies as they come; None for any number.
    @ivar burst: seconds of both that may come at once, after as long without anything.
    @ivar per: one of L{PER}.
    """

    messages: float | None = None
    bytes: float | None = None
    burst: float = 10.0
    per: str = "source"

    def whose(self, token: str, ip: str) -> str:
        """
        Return whose bucket a request takes from, among those of its source.

        @param token: the name of its token; empty without one.
        @param ip: its address in normal form.
        """
        if self.per == "source":
            return ""
        return token if self.per == "token" else sender_of(ip)


class BucketLock(Protocol):
    """A lock that one process has at a time."""

    def acquire(self) -> bool:
        """Take the lock, and return whether that was possible soon. Only then must L{release} follow."""

    def release(self) -> None:
        """Give it back."""


class _Bucket(NamedTuple):
    """
    A bucket as it was found.

    @ivar place: where it is, or may be.
    @ivar tag: what is to stand there, so that it is found again.
    @ivar messages: until when the rate of messages is used up.
    @ivar bytes: the same for bytes.
    """

    place: int
    tag: int
    messages: float
    bytes: float

    def wait(self, quota: SourceQuota, messages: int, size: int, now: float, begun: int) -> float:
        """Return the seconds until there is room; see L{Buckets.take}."""
        wait = 0.0
        for rate, amount, until, own in (
            (quota.messages, messages, self.messages, 0),
            (quota.bytes, size, self.bytes, begun),
        ):
            if rate is not None and amount:
                used = max(0.0, until - now) - own / rate
                wait = max(wait, used + min((own + amount) / rate, quota.burst) - quota.burst)
        return wait if wait > _ROUNDING else 0.0


class Buckets:
    """
    The buckets of all quotas, in memory that several processes may share.

    There are only so many places. A bucket that is full again says nothing, so its place is free. While all places
    where an address could have a bucket belong to others, it shares one of L{SHARED} buckets of its source, and begins
    no fuller than that one is once a place is free: so nobody gains by many addresses that come with him, and whoever
    comes then has a share, not nothing.

    A refusal writes nothing and takes no lock. A process that can't have the lock soon, since another one was stopped
    while it had it, goes on without: then what one of both takes may be left uncounted.

    @param memory: L{BUCKETS_SIZE} bytes: a secret of L{SECRET_SIZE}, and zeros.
    @param lock: for processes that share the memory; None for one alone.
    """

    def __init__(self, memory: bytearray | mmap, lock: BucketLock | None = None) -> None:
        view = memoryview(memory)
        # Whose places these are must not be for senders to choose.
        self._secret = bytes(view[:SECRET_SIZE])
        columns = view[SECRET_SIZE:BUCKETS_SIZE]
        part = 8 * _PLACES
        self._tags = columns[:part].cast("Q")
        self._messages = columns[part : 2 * part].cast("d")
        self._bytes = columns[2 * part :].cast("d")
        self._lock = lock

    def take(
        self, quota: SourceQuota, source: str, whose: str, messages: int, size: int, now: float, begun: int = 0
    ) -> float:
        """
        Take from a bucket if there is room in it.

        What is larger than the whole bucket has room when the bucket is full, and what comes next waits for longer.

        @param source: the name of the source.
        @param whose: see L{SourceQuota.whose}.
        @param messages: how many.
        @param size: bytes.
        @param now: seconds on the monotonic clock, which all processes share.
        @param begun: bytes that were taken before for the same body: with them it has room if it had, announced whole.
        @return: 0.0 when it was taken; else nothing was, and this is in how many seconds there may be room.
        """
        lock = self._lock
        bucket = self._find(quota, source, whose, now)
        wait = bucket.wait(quota, messages, size, now, begun)
        if wait:
            return wait
        if lock is None or not lock.acquire():
            self._add(quota, bucket, messages, size, now)
            return 0.0
        try:
            bucket = self._find(quota, source, whose, now)
            wait = bucket.wait(quota, messages, size, now, begun)
            if not wait:
                self._add(quota, bucket, messages, size, now)
            return wait
        finally:
            lock.release()

    def charge(self, quota: SourceQuota, source: str, whose: str, messages: int, size: int, now: float) -> None:
        """Take from a bucket whether there is room or not: what comes next waits for longer. See L{take}."""
        is_locked = self._lock is not None and self._lock.acquire()
        try:
            self._add(quota, self._find(quota, source, whose, now), messages, size, now)
        finally:
            if self._lock is not None and is_locked:
                self._lock.release()

    def _add(self, quota: SourceQuota, bucket: _Bucket, messages: int, size: int, now: float) -> None:
        place = bucket.place
        for rate, amount, column, found in (
            (quota.messages, messages, self._messages, bucket.messages),
            (quota.bytes, size, self._bytes, bucket.bytes),
        ):
            # As it is now: without the lock, others may have taken much since it was found.
            until = column[place] if self._tags[place] == bucket.tag else found
            column[place] = max(now, until) + (amount / rate if rate else 0.0)
        self._tags[place] = bucket.tag

    # -- places --------------------------------------------------------------------------------------------------

    def _find(self, quota: SourceQuota, source: str, whose: str, now: float) -> _Bucket:
        """Return a bucket, or where it is to be."""
        tag, number = self._hash(source, whose)
        if quota.per != "address":
            return self._named(tag, number, now)
        first = NAMED + number % (ADDRESSES // _WAYS) * _WAYS
        bucket, is_it = self._look(tag, first)
        if is_it:
            return bucket
        shared = self._named(*self._hash(source, f"\0{number % SHARED}"), now)
        if max(bucket.messages, bucket.bytes) > now:
            return shared
        return bucket._replace(tag=tag, messages=shared.messages, bytes=shared.bytes)

    def _named(self, tag: int, number: int, now: float) -> _Bucket:
        """Return a bucket of those whose number the settings bound."""
        bucket, is_it = self._look(tag, number % (NAMED // _WAYS) * _WAYS)
        if is_it or max(bucket.messages, bucket.bytes) > now:
            return bucket  # in the end, two share one
        return bucket._replace(tag=tag)

    def _look(self, tag: int, first: int) -> tuple[_Bucket, bool]:
        """Return the bucket with a tag in some places, or the fullest one there; and whether it is the one."""
        end = first + _WAYS
        tags = self._tags[first:end].tolist()
        if tag in tags:
            place, is_it = first + tags.index(tag), True
        else:
            until = list(map(max, self._messages[first:end], self._bytes[first:end]))
            place, is_it = first + until.index(min(until)), False
        return _Bucket(place, tags[place - first], self._messages[place], self._bytes[place]), is_it

    def _hash(self, source: str, whose: str) -> tuple[int, int]:
        """Return the tag of a bucket, and a number for where it is."""
        text = f"{source}\0{whose}".encode("utf-8", "surrogatepass")
        digest = blake2b(text, key=self._secret, digest_size=16).digest()
        return int.from_bytes(digest[:8], "little") or 1, int.from_bytes(digest[8:], "little")  # 0 is no bucket's


QUESTIONS: Final = SourceQuota(messages=10, burst=1.0)
"""Questions of senders that a source answers, so that nobody has it compute proofs or guess tokens all day."""


def take_question(buckets: Buckets, source: str, now: float) -> int:
    """
    Take one question from the bucket of a source, which is none of its quota.

    @param now: see L{Buckets.take}.
    @return: 0 when it was taken, else the seconds of a Retry-After.
    """
    wait = buckets.take(QUESTIONS, source, "\0questions", 1, 0, now)
    return retry_after(wait) if wait else 0


def retry_after(wait: float) -> int:
    """Return the whole seconds of a Retry-After: at least 1, and no earlier than after C{wait} seconds."""
    return max(1, min(ceil(wait), LONGEST_WAIT))
