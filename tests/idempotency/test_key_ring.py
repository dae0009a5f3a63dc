"""
Tests for L{webhookrx.idempotency.key_ring}.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.idempotency.key_ring import CAPACITY, ENTRY, MOST_STEPS, KeyRing, hashes_for, ring_size
from webhookrx.shared_memory import map_memory

SMALL = 5


def key_ring(capacity: int = SMALL) -> KeyRing:
    """Return an empty ring."""
    return KeyRing(map_memory(None, ring_size(capacity)), capacity)


def key_of(number: int) -> bytes:
    """Return a key; of those with the same remainder by 4, the hash is the same."""
    return (number % 4).to_bytes(4, "little") + number.to_bytes(12, "little")


class KeyRingTests(SynchronousTestCase):
    """
    Tests for L{KeyRing}.
    """

    def test_newest(self) -> None:
        """The oldest key makes room for the newest."""
        ring = key_ring()
        for number in range(2 * SMALL):
            ring.append([key_of(number)], 100 + number)
        self.assertEqual([0] * SMALL, [ring.stored_at(key_of(number)) for number in range(SMALL)])
        expected = [100 + number for number in range(SMALL, 2 * SMALL)]
        self.assertEqual(expected, [ring.stored_at(key_of(number)) for number in range(SMALL, 2 * SMALL)])

    def test_long_chain(self) -> None:
        """Of a chain that somebody has made long, the newest keys are known, and the others forgotten."""
        ring = key_ring(2 * MOST_STEPS)
        keys = [bytes(4) + number.to_bytes(12, "little") for number in range(MOST_STEPS + 1)]
        ring.append(keys, 7)
        self.assertEqual([0, 7, 7], [ring.stored_at(key) for key in (keys[0], keys[1], keys[-1])])

    def test_memory(self) -> None:
        """A million keys take less than 27 MiB, and have about as many chains, so that each is short."""
        self.assertEqual(1_000_000, CAPACITY)
        self.assertLess(ring_size(), 27 * 1024**2)
        self.assertEqual([1, 8, 8, 1 << 20], [hashes_for(capacity) for capacity in (1, 5, 8, CAPACITY)])

    def test_torn(self) -> None:
        """A process that ends while it appends leaves no key, and the next one goes on."""
        for writes in range(1, 7):
            ring = key_ring()
            for number in range(SMALL):
                ring.append([key_of(number)], 7)
            self.assertRaises(MemoryError, _dying(ring, writes).append, [key_of(8)], 9)
            ring.append([key_of(9)], 9)
            self.assertEqual(9, ring.stored_at(key_of(9)), writes)
            self.assertEqual(7, ring.stored_at(key_of(SMALL - 1)), writes)
            self.assertEqual(0, ring.stored_at(key_of(8)), writes)


class _Count:
    """Counts writes of all memory, and fails at one of them."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> None:
        self.left -= 1
        if not self.left:
            raise MemoryError


class _Memory:
    """Memory whose writes are counted."""

    def __init__(self, memory: Any, count: _Count) -> None:
        self._memory = memory
        self._count = count

    def __getitem__(self, place: Any) -> Any:
        return self._memory[place]

    def __setitem__(self, place: Any, value: Any) -> None:
        self._count()
        self._memory[place] = value


def _dying(ring: KeyRing, writes: int) -> KeyRing:
    """Return the same ring for a process that ends before a certain write."""
    count = _Count(writes)
    dying = KeyRing(ring._memory, ring.capacity)
    for name in ("_memory", "_count", "_newest", "_words"):
        setattr(dying, name, _Memory(getattr(dying, name), count))
    return dying


class KeyRingMachine(RuleBasedStateMachine):
    """A ring beside a list of all keys."""

    def __init__(self) -> None:
        super().__init__()
        self.ring = key_ring()
        self.all: list[tuple[int, int]] = []
        self.now = 1

    @rule(numbers=st.lists(st.integers(0, 11), max_size=7), later=st.integers(0, 3))
    def append(self, numbers: list[int], later: int) -> None:
        self.now += later
        self.ring.append(map(key_of, numbers), self.now)
        self.all.extend((number, self.now) for number in numbers)

    @rule()
    def restart(self) -> None:
        """The entries go to a file and into another ring."""
        after, parts = 0, []
        while True:
            part, after = self.ring.entries(after, 2)
            if not part:
                break
            parts.append(part)
        self.all = self.all[-SMALL:]
        self.ring = key_ring()
        self.ring.fill(parts, self.now)

    @rule(after=st.integers(0, 12), most=st.integers(1, 9))
    def entries(self, after: int, most: int) -> None:
        """What is still there after a number is returned, in its order."""
        part, last = self.ring.entries(min(after, len(self.all)), most)
        first = max(min(after, len(self.all)), len(self.all) - SMALL)
        expected = self.all[first : first + most]
        keys = [part[at : at + 16] for at in range(0, len(part), ENTRY)]
        assert keys == [key_of(number) for number, _ in expected]
        assert last == first + len(expected)

    @invariant()
    def same(self) -> None:
        """The newest keys are known, with the time of their last appearance, and no others."""
        newest = dict(self.all[-SMALL:])
        assert {number: self.ring.stored_at(key_of(number)) for number in range(12)} == {
            number: newest.get(number, 0) for number in range(12)
        }
        for oldest in range(1, self.now + 2):
            assert self.ring.held(oldest) == sum(time >= oldest for _, time in self.all[-SMALL:])


class KeyRingMachineTests(SynchronousTestCase):
    """
    Tests for L{KeyRing} against a model.
    """

    def test_model(self) -> None:
        """A ring knows what a list of all keys would know of the newest."""
        run_state_machine_as_test(KeyRingMachine)

    def test_future(self) -> None:
        """Times of a clock that was ahead become the present, and later ones are no earlier."""
        ring, other = key_ring(), key_ring()
        for number, time in enumerate((50, 900, 60)):
            ring.append([key_of(number)], time)
        other.fill([ring.entries(0, 9)[0]], 100)
        self.assertEqual([50, 100, 100], [other.stored_at(key_of(number)) for number in range(3)])

    def test_full_size(self) -> None:
        """A full ring survives its way through a file."""
        ring, other = key_ring(CAPACITY), key_ring(CAPACITY)
        keys = [os.urandom(16) for _ in range(1000)]
        ring.append((os.urandom(16) for _ in range(4000)), 5)
        ring.append(keys, 6)
        other.fill([ring.entries(0, 10**7)[0]], 100)
        self.assertEqual([6] * 1000, [other.stored_at(key) for key in keys])
