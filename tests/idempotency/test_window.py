"""
Tests for L{webhookrx.idempotency.window}.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.idempotency.windows import ANSWER_TIME, Worker, Workers
from webhookrx.idempotency import window as window_module
from webhookrx.idempotency.window import LONGEST_LOOK, MOST_UNWRITTEN
from webhookrx.interfaces import Claim, IDeliveryWindow

KEY, OTHER = b"k" * 16, b"o" * 16
WINDOW = 3600.0


class AloneTests(SynchronousTestCase):
    """
    Tests for L{DeliveryWindow} in a process alone; those of L{WorkersTests} as well.
    """

    count = 1

    def setUp(self) -> None:
        self.workers = Workers(self.count)
        self.addCleanup(self.workers.close)
        self.worker = self.workers.all[0]
        self.second = self.workers.all[-1]
        self.window = self.worker.window

    def test_interface(self) -> None:
        """It is an L{IDeliveryWindow}."""
        verifyObject(IDeliveryWindow, self.window)

    def test_stored(self) -> None:
        """What was settled as stored is known within its window, and up to a second longer."""
        self.assertIs(Claim.NEW, self.worker.claim(KEY))
        self.window.settle(KEY, True)
        self.assertEqual((Claim.KNOWN, Claim.NEW), (self.second.claim(KEY), self.second.claim(OTHER)))
        self.workers.pass_time(WINDOW - 1)
        self.assertIs(Claim.KNOWN, self.second.claim(KEY))
        self.workers.pass_time(2)
        self.assertIs(Claim.NEW, self.second.claim(KEY))

    def test_window_of_claim(self) -> None:
        """The window is that of the claim: a source that has it changed needs nothing else."""
        self.worker.claim(KEY)
        self.window.settle(KEY, True)
        self.workers.pass_time(100)
        self.assertIs(Claim.KNOWN, self.second.claim(KEY, 3600))
        self.assertIs(Claim.NEW, self.second.claim(KEY, 60))

    def test_not_stored(self) -> None:
        """What was not stored is not remembered."""
        self.worker.claim(KEY)
        self.window.settle(KEY, False)
        self.assertIs(Claim.NEW, self.second.claim(KEY))

    def test_waits_for_stored(self) -> None:
        """Those that come while a request is under way are told when it is stored, and not before."""
        self.worker.claim(KEY)
        self.assertEqual([Claim.UNDER_WAY] * 2, [self.worker.claim(KEY), self.second.claim(KEY)])
        self.workers.pass_time(1)
        self.assertEqual([], self.worker.told + self.second.told)
        self.window.settle(KEY, True)
        self.assertEqual([], self.worker.told + self.second.told)  # they are told in a turn of their own
        self.workers.pass_time(LONGEST_LOOK)
        self.assertEqual({(KEY, Claim.KNOWN)}, {*self.worker.told, *self.second.told})
        self.assertIs(Claim.KNOWN, self.worker.claim(KEY))

    def test_next_one_tries(self) -> None:
        """When the request under way is not stored, those that wait try in their order, one at a time."""
        told: list[tuple[int, Claim]] = []

        def wait(number: int) -> Claim:
            return self.window.claim(KEY, WINDOW, lambda claim: told.append((number, claim)))

        self.worker.claim(KEY)
        for number in range(4):
            self.assertIs(Claim.UNDER_WAY, wait(number))
        for number in range(2):
            self.window.settle(KEY, False)
            self.workers.pass_time(0.5)
            self.assertEqual((number, Claim.NEW), told.pop())
        self.window.settle(KEY, True)
        self.workers.pass_time(0.5)
        self.assertEqual([(2, Claim.KNOWN), (3, Claim.KNOWN)], told)

    def test_last_one_fails(self) -> None:
        """When the last one that waited is not stored either, the key is free."""
        self.worker.claim(KEY)
        self.worker.claim(KEY)
        self.window.settle(KEY, False)
        self.window.settle(KEY, False)
        self.assertIs(Claim.NEW, self.second.claim(KEY))

    def test_waits_no_longer_than_answer_time(self) -> None:
        """Those that wait as long as an answer may take are told to give up, once; the request goes on."""
        self.worker.claim(KEY)
        self.worker.claim(KEY)
        self.second.claim(KEY)
        self.workers.pass_time(ANSWER_TIME - 1)
        self.assertEqual([], self.worker.told + self.second.told)
        self.workers.pass_time(2)
        self.assertEqual({(KEY, Claim.GIVEN_UP)}, {*self.worker.told, *self.second.told})
        self.window.settle(KEY, True)
        self.workers.pass_time(2 * ANSWER_TIME)
        self.assertEqual(2, len(self.worker.told) if self.count == 1 else len(self.worker.told + self.second.told))

    def test_many_fail(self) -> None:
        """Any number of requests may wait and fail as soon as they are told."""
        failed = []

        def told(claim: Claim) -> None:
            failed.append(claim)
            self.window.settle(KEY, False)

        self.worker.claim(KEY)
        for _ in range(3000):
            self.window.claim(KEY, WINDOW, told)
        self.window.settle(KEY, False)
        for _ in range(3100):
            self.workers.clock.advance(0)
        self.assertEqual([Claim.NEW] * 3000, failed)
        self.assertIs(Claim.NEW, self.second.claim(KEY))


class WorkersTests(AloneTests):
    """
    Tests for L{DeliveryWindow} in workers.
    """

    count = 3

    def test_killed(self) -> None:
        """A worker that is killed leaves its keys free, and one that waits for it tries in its place."""
        self.worker.claim(KEY)
        self.worker.claim(OTHER)
        self.assertEqual([Claim.UNDER_WAY] * 2, [self.second.claim(KEY), self.second.claim(KEY)])
        self.workers.all.remove(self.worker)
        self.worker.die()
        self.assertIs(Claim.NEW, self.second.claim(OTHER))
        self.workers.pass_time(0.5)
        self.assertEqual([(KEY, Claim.NEW)], self.second.told)
        self.second.window.settle(KEY, True)
        self.workers.pass_time(0.5)
        self.assertEqual([(KEY, Claim.NEW), (KEY, Claim.KNOWN)], self.second.told)

    def test_killed_after_stored(self) -> None:
        """What a worker has settled as stored is known also once it is killed."""
        self.worker.claim(KEY)
        self.worker.window.settle(KEY, True)
        self.workers.all.remove(self.worker)
        self.worker.die()
        self.assertIs(Claim.KNOWN, self.second.claim(KEY))

    def test_ring_in_use(self) -> None:
        """While another worker appends to the ring, stored keys wait claimed, and nobody waits in a system call."""
        assert self.second.ring_lock is not None
        self.second.ring_lock.acquire()
        self.worker.claim(KEY)
        self.window.settle(KEY, True)
        self.assertEqual((Claim.KNOWN, Claim.UNDER_WAY), (self.worker.claim(KEY), self.second.claim(KEY)))
        self.second.ring_lock.release()
        self.workers.pass_time(0.5)
        self.assertEqual([(KEY, Claim.KNOWN)], self.second.told)
        self.assertEqual(0, self.window.forgotten)

    def test_ring_stuck(self) -> None:
        """When a worker that was stopped keeps the ring, the others forget keys rather than keep them all claimed."""
        assert self.second.ring_lock is not None
        self.second.ring_lock.acquire()
        for number in range(MOST_UNWRITTEN + 1):
            key = number.to_bytes(16, "little")
            self.worker.claim(key)
            self.window.settle(key, True)
        self.assertEqual(MOST_UNWRITTEN + 1, self.window.forgotten)
        self.assertIs(Claim.NEW, self.second.claim(bytes(16)))

    def test_many_elsewhere(self) -> None:
        """A turn looks at some of the keys that wait for other workers, and soon at all of them."""
        self.patch(window_module, "_LOOKS", 10)
        keys = [os.urandom(16) for _ in range(35)]
        for key in keys:
            self.worker.claim(key)
            self.second.claim(key)
            self.window.settle(key, True)
        self.workers.clock.advance(window_module.FIRST_LOOK)
        self.workers.clock.advance(0)
        self.assertEqual(10, len(self.second.told))
        self.workers.pass_time(1)
        self.assertEqual(sorted(keys), sorted(key for key, _ in self.second.told))


class DeliveryWindowMachine(RuleBasedStateMachine):
    """
    Workers beside a model: which requests have a claim, which wait, and what was stored when.
    """

    count = 3
    keys = st.sampled_from([bytes([number]) * 16 for number in range(3)])
    workers_ = st.integers(0, 2)

    def __init__(self) -> None:
        super().__init__()
        self.workers = Workers(self.count)
        self.owners: dict[bytes, Worker] = {}  # by key, whoever has it new
        self.stored: dict[bytes, float] = {}
        self.waiting: dict[tuple[Worker, bytes], deque[float]] = defaultdict(deque)  # since when

    def teardown(self) -> None:
        self.settle_all()
        self.workers.pass_time(1)
        self.take_told()
        self.workers.close()

    def settle_all(self) -> None:
        while self.owners or any(self.waiting.values()):
            for key, owner in list(self.owners.items()):
                self.settled(owner, key, True)
            self.workers.pass_time(0.5)
            self.take_told()

    @property
    def now(self) -> float:
        return self.workers.clock.seconds()

    def is_known(self, key: bytes, window: float) -> bool | None:
        """Return whether a key must be known; None in the second in which it may be."""
        if key not in self.stored:
            return False
        age = self.now - self.stored[key]
        return None if window <= age <= window + 1 else age < window

    @rule(number=workers_, key=keys, window=st.sampled_from([5.0, 50.0]))
    def claim(self, number: int, key: bytes, window: float) -> None:
        worker = self.workers.all[number % len(self.workers.all)]
        claim = worker.claim(key, window)
        waits = self.waiting[worker, key]
        if claim is Claim.UNDER_WAY:
            assert key in self.owners or waits, "somebody has it, or had it until just now"
            self.waiting[worker, key].append(self.now)
        elif claim is Claim.NEW:
            assert key not in self.owners and not waits
            assert self.is_known(key, window) is not True, "a duplicate"
            self.owners[key] = worker
        else:
            assert claim is Claim.KNOWN
            assert self.is_known(key, window) is not False, "a loss"

    def settled(self, owner: Worker, key: bytes, stored: bool) -> None:
        owner.window.settle(key, stored)
        del self.owners[key]
        if stored:
            self.stored[key] = self.now
        self.workers.clock.advance(0)
        self.take_told()

    @precondition(lambda self: self.owners)
    @rule(number=st.integers(0, 2), stored=st.booleans())
    def settle(self, number: int, stored: bool) -> None:
        key = sorted(self.owners)[number % len(self.owners)]
        self.settled(self.owners[key], key, stored)

    @rule(seconds=st.sampled_from([0.01, 0.5, 4.5, 40.0]))
    def pass_time(self, seconds: float) -> None:
        self.workers.pass_time(seconds)
        self.take_told()

    @precondition(lambda self: self.count > 1)
    @rule(number=workers_)
    def kill(self, number: int) -> None:
        """Another one is started in its place."""
        worker = self.workers.all.pop(number % len(self.workers.all))
        worker.die()
        self.workers.all.append(self.workers.start())
        self.owners = {key: owner for key, owner in self.owners.items() if owner is not worker}
        for waiter, key in list(self.waiting):
            if waiter is worker:
                del self.waiting[waiter, key]

    def take_told(self) -> None:
        for worker in self.workers.all:
            for key, claim in worker.told:
                assert self.waiting[worker, key], "nobody is told twice"
                self.waiting[worker, key].popleft()
                if claim is Claim.NEW:
                    assert key not in self.owners, "one at a time"
                    self.owners[key] = worker
                elif claim is Claim.KNOWN:
                    assert key in self.stored, "a loss"
            worker.told.clear()

    @invariant()
    def waits_no_longer_than_answer_time(self) -> None:
        for since in self.waiting.values():
            assert not since or self.now - since[0] <= ANSWER_TIME + 0.5


class AloneMachine(DeliveryWindowMachine):
    """The same for a process alone."""

    count = 1


class ModelTests(SynchronousTestCase):
    """
    Tests for L{DeliveryWindow} against a model.
    """

    def test_workers(self) -> None:
        """Of one key at most one request is tried at a time; none is known that was not stored; none waits for ever."""
        run_state_machine_as_test(DeliveryWindowMachine)

    def test_alone(self) -> None:
        """The same holds for a process alone."""
        run_state_machine_as_test(AloneMachine)
