"""
Quotas: how much a source, token or address may send, as token buckets.

A bucket is two moments: until when what was taken of messages, and of bytes, has used up the rate (the "virtual
scheduling" form of the generic cell rate algorithm, ITU-T I.371 annex A). It is as full as these moments are past.
"""

from __future__ import annotations

from hashlib import blake2b
from math import ceil
from typing import TYPE_CHECKING, Final, Protocol

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


class Buckets:
    """
    The buckets of all quotas, in memory that several processes may share.

    There are only so many places. A bucket that is full again says nothing, so its place is free. When none of its
    places is free, a newcomer takes the place of the bucket that is nearest to full, and begins as empty as that one
    is: so nobody gains by many addresses that wash others out, and whoever comes then has a share, not nothing.

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
        @param begun: bytes that were taken before for the same body: they don't count against the rest of it.
        @return: 0.0 when it was taken; else nothing was, and this is in how many seconds there may be room.
        """
        tag, first = self._places(quota, source, whose)
        place, wait = self._look(quota, tag, first, messages, size, now, begun)
        if wait:
            return wait
        locked = self._lock is not None and self._lock.acquire()
        try:
            if locked:
                place, wait = self._look(quota, tag, first, messages, size, now, begun)
                if wait:
                    return wait
            self._add(quota, tag, place, messages, size, now)
        finally:
            if locked:
                assert self._lock is not None
                self._lock.release()
        return 0.0

    def charge(self, quota: SourceQuota, source: str, whose: str, messages: int, size: int, now: float) -> None:
        """Take from a bucket whether there is room or not: what comes next waits for longer. See L{take}."""
        tag, first = self._places(quota, source, whose)
        locked = self._lock is not None and self._lock.acquire()
        try:
            self._add(quota, tag, self._place(tag, first), messages, size, now)
        finally:
            if locked:
                assert self._lock is not None
                self._lock.release()

    def _places(self, quota: SourceQuota, source: str, whose: str) -> tuple[int, int]:
        """Return the tag of a bucket, and the first of the places in which it may be."""
        digest = blake2b(f"{source}\0{whose}".encode("utf-8", "surrogatepass"), key=self._secret, digest_size=16)
        both = digest.digest()
        tag = int.from_bytes(both[:8], "little") or 1  # 0 is that of no bucket
        number = int.from_bytes(both[8:], "little")
        if quota.per == "address":
            return tag, NAMED + number % (ADDRESSES // _WAYS) * _WAYS
        return tag, number % (NAMED // _WAYS) * _WAYS

    def _place(self, tag: int, first: int) -> int:
        """Return where a bucket is; where it is to be, if it is nowhere."""
        end = first + _WAYS
        tags = self._tags[first:end].tolist()
        if tag in tags:
            return first + tags.index(tag)
        until = list(map(max, self._messages[first:end], self._bytes[first:end]))
        return first + until.index(min(until))

    def _look(
        self, quota: SourceQuota, tag: int, first: int, messages: int, size: int, now: float, begun: int
    ) -> tuple[int, float]:
        place = self._place(tag, first)
        is_new = self._tags[place] != tag
        wait = 0.0
        for rate, amount, column, known in (
            (quota.messages, messages, self._messages, 0),
            (quota.bytes, size, self._bytes, begun),
        ):
            if rate is not None and amount:
                ahead = max(0.0, column[place] - now)
                if is_new:
                    ahead = min(ahead, quota.burst)
                needed = min(amount / rate, quota.burst)
                wait = max(wait, ahead - known / rate + needed - quota.burst)
        return place, wait if wait > _ROUNDING else 0.0

    def _add(self, quota: SourceQuota, tag: int, place: int, messages: int, size: int, now: float) -> None:
        is_new = self._tags[place] != tag
        for rate, amount, column in ((quota.messages, messages, self._messages), (quota.bytes, size, self._bytes)):
            until = max(now, column[place])
            if is_new:
                until = min(until, now + quota.burst)
            column[place] = until + (amount / rate if rate is not None else 0.0)
        if is_new:
            self._tags[place] = tag


def retry_after(wait: float) -> int:
    """Return the whole seconds of a Retry-After: at least 1, and no earlier than after C{wait} seconds."""
    return max(1, min(ceil(wait), LONGEST_WAIT))
