"""
The keys of deliveries that were stored of late: the newest million, in memory that workers may share.

They stand in a ring, the newest in the place of the oldest, each with its time. Keys of one hash are chained from the
newest to the oldest, each with the distance to the one before it in the ring. So nothing is ever removed: a chain ends
where it reaches back further than the ring. It takes 28 bytes a key.

One process at a time appends, under a lock. Readers take none: a place that is just being overwritten belongs to a key
that is no longer remembered, and all that its chain still leads to are older. A process that is killed while it appends
leaves a place without a time, which is that of no key.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from webhookrx.guard.delivery_key import KEY_SIZE

if TYPE_CHECKING:
    from mmap import mmap

CAPACITY: Final = 1_000_000
"""Keys at most."""

MOST_STEPS: Final = 1_000
"""
Keys of a chain that are looked at, half a microsecond each. By chance there are ten at most; who makes ids for one
chain has older ones of it forgotten, and holds nobody up.
"""

_WORD: Final = 4
ENTRY: Final = KEY_SIZE + 2 * _WORD
"""Bytes of a key in the ring: the key, the distance to the one before it in its chain, and its time in seconds."""
_WORDS: Final = ENTRY // _WORD
_BACK: Final = KEY_SIZE // _WORD
_TIME: Final = _BACK + 1

_HEADER: Final = 64
_MASK: Final = 0xFFFFFFFF


def hashes_for(capacity: int) -> int:
    """Return how many chains there are: a power of two, about one for each key."""
    return 1 << max(0, capacity - 1).bit_length()


def ring_size(capacity: int = CAPACITY) -> int:
    """Return the bytes of memory that a ring needs."""
    return _HEADER + hashes_for(capacity) * _WORD + capacity * ENTRY


class KeyRing:
    """
    @param memory: L{ring_size} bytes, zeros at first.
    @ivar capacity: how many keys it remembers.
    @ivar epoch: what is to be added to the monotonic clock for its times: so they are those of the wall clock when the
        memory was made, and no later change of that clock makes keys older or younger.
    """

    def __init__(self, memory: mmap, capacity: int = CAPACITY) -> None:
        chains = hashes_for(capacity)
        self.capacity = capacity
        self._memory = memory
        self._chain_mask = chains - 1
        self._begin = _HEADER + chains * _WORD
        view = memoryview(memory)
        self._count = view[:8].cast("Q")  # keys that were ever appended: also the number of the newest
        self._epoch = view[8:16].cast("d")
        self._newest = view[_HEADER : self._begin].cast("I")  # of each chain, the number of its newest key
        self._words = view[self._begin : self._begin + capacity * ENTRY].cast("I")

    @property
    def count(self) -> int:
        """How many keys were ever appended: the number of the newest."""
        return self._count[0]

    @property
    def epoch(self) -> float:
        return self._epoch[0]

    @epoch.setter
    def epoch(self, seconds: float) -> None:
        self._epoch[0] = seconds

    def stored_at(self, key: bytes) -> int:
        """Return when a key was stored, in seconds; 0 when that is not remembered."""
        count, capacity, memory, words = self._count[0], self.capacity, self._memory, self._words
        held = min(count, capacity)
        age = (count - self._newest[int.from_bytes(key[:4], sys.byteorder) & self._chain_mask]) & _MASK
        for _ in range(MOST_STEPS):
            if age >= held:
                break
            place = (count - age) % capacity
            at = self._begin + place * ENTRY
            if memory[at : at + KEY_SIZE] == key:
                return words[place * _WORDS + _TIME]
            back = words[place * _WORDS + _BACK]
            if not back:
                break
            age += back
        return 0

    def append(self, keys: Iterable[bytes], time: int) -> None:
        """
        Remember keys; only one process at a time may do this.

        @param time: when they were stored, in seconds, from 1.
        """
        memory, words, newest, capacity = self._memory, self._words, self._newest, self.capacity
        for key in keys:
            number = self._count[0] + 1
            place = number % capacity
            chain = int.from_bytes(key[:4], sys.byteorder) & self._chain_mask
            back = (number - newest[chain]) & _MASK
            # In this order, for readers, and for a process that ends in the middle.
            words[place * _WORDS + _TIME] = 0
            self._count[0] = number
            at = self._begin + place * ENTRY
            memory[at : at + KEY_SIZE] = key
            words[place * _WORDS + _BACK] = back if back < capacity else 0
            newest[chain] = number & _MASK
            words[place * _WORDS + _TIME] = time

    def held(self, oldest: int) -> int:
        """Return how many keys are remembered that were stored at a time or later, or nearly so."""
        count = self._count[0]
        low, high = max(0, count - self.capacity), count
        # The times of the ring ascend.
        while low < high:
            middle = (low + high) // 2
            if self._words[(middle + 1) % self.capacity * _WORDS + _TIME] < oldest:
                low = middle + 1
            else:
                high = middle
        return count - low

    # -- to a file and back ---------------------------------------------------------------------------------------

    def entries(self, after: int, most: int) -> tuple[bytes, int]:
        """
        Return entries as they stand in the ring, each of L{ENTRY} bytes, and the number of the last one.

        @param after: the number of the key before the first of them.
        @param most: how many at most.
        """
        count = self._count[0]
        after = max(after, count - self.capacity)
        last = min(count, after + most)
        first_place, end_place = (after + 1) % self.capacity, last % self.capacity + 1
        if after >= last:
            return b"", last
        if first_place < end_place:
            return self._slice(first_place, end_place), last
        return self._slice(first_place, self.capacity) + self._slice(0, end_place), last

    def _slice(self, first: int, end: int) -> bytes:
        return self._memory[self._begin + first * ENTRY : self._begin + end * ENTRY]

    def fill(self, parts: Sequence[bytes], now: int) -> None:
        """
        Remember entries that were kept in a file; only while nobody else uses the ring, and it is empty.

        @param parts: entries in the order of L{entries}.
        @param now: a later time than this becomes this one.
        """
        entries = b"".join(parts)[-self.capacity * ENTRY :]
        words = array("I", entries)
        newest = [0] * (self._chain_mask + 1)
        mask, latest = self._chain_mask, 1
        for number, (first, time) in enumerate(zip(words[::_WORDS], words[_TIME::_WORDS], strict=True), 1):
            at = (number - 1) * _WORDS
            chain = first & mask
            words[at + _BACK] = number - newest[chain] if newest[chain] else 0
            newest[chain] = number
            if time:
                # Ascending, whatever clock they were stored by.
                latest = words[at + _TIME] = max(latest, min(time, now))
        count = len(words) // _WORDS
        # The first key has number 1, whose place is 1; a full ring goes on at its beginning.
        whole = words.tobytes()
        room = (self.capacity - 1) * ENTRY
        begin = self._begin + ENTRY
        self._memory[begin : begin + min(room, len(whole))] = whole[:room]
        if len(whole) > room:
            self._memory[self._begin : self._begin + ENTRY] = whole[room:]
        self._newest[:] = array("I", newest)
        self._count[0] = count
