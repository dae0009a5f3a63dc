"""
Tests for L{webhookrx.guard.quota}.
"""

from __future__ import annotations

import os
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.guard import quota as quota_module
from webhookrx.guard.quota import BUCKETS_SIZE, SECRET_SIZE, SHARED, Buckets, SourceQuota, retry_after, take_question

NOW = 1000.0


class PlayedLock:
    """
    A lock of buckets.

    @ivar is_free: whether it can be had.
    """

    def __init__(self) -> None:
        self.is_free = True
        self.had: list[str] = []

    def acquire(self) -> bool:
        """See L{BucketLock.acquire}."""
        self.had.append("acquire")
        return self.is_free

    def release(self) -> None:
        """See L{BucketLock.release}."""
        self.had.append("release")


def buckets(lock: PlayedLock | None = None) -> Buckets:
    """Return buckets that are all full."""
    return Buckets(memory(), lock)


def memory() -> bytearray:
    """Return memory for buckets."""
    return bytearray(os.urandom(SECRET_SIZE) + bytes(BUCKETS_SIZE - SECRET_SIZE))


class QuestionTests(SynchronousTestCase):
    """Questions of senders."""

    def test_rate(self) -> None:
        """Ten are taken at once, however long nobody asked; a tenth of a second later there is one again."""
        taken = buckets()
        for now in (NOW, NOW + 1_000_000):
            self.assertEqual([0] * 10 + [1], [take_question(taken, "s", now) for _ in range(11)])
            self.assertEqual([1, 0, 1], [take_question(taken, "s", now + more) for more in (0.05, 0.11, 0.11)])
            self.assertGreater(take_question(taken, "s", now - 5), 0, "a clock that goes back gives nothing")

    def test_apart(self) -> None:
        """Neither other sources nor the quota of this one take from its questions."""
        taken, quota = buckets(), SourceQuota(messages=1, burst=1)
        for _ in range(11):
            take_question(taken, "s", NOW)
        self.assertEqual((1, 0), (take_question(taken, "s", NOW), take_question(taken, "t", NOW)))
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertEqual([1, 0], [take_question(taken, each, NOW) for each in ("s", "u")])

    def test_shared(self) -> None:
        """Processes that share the memory, and a receiver before and after a reload, share one bucket."""
        shared = memory()
        one, other = Buckets(shared), Buckets(shared)
        self.assertEqual([0] * 10, [take_question(each, "s", NOW) for each in (one, other) * 5])
        self.assertEqual([1, 1, 1], [take_question(each, "s", NOW) for each in (one, other, Buckets(shared))])


class TakeTests(SynchronousTestCase):
    """
    Tests for L{Buckets.take}.
    """

    def test_burst(self) -> None:
        """A full bucket has room for its burst; then one message has room each time the rate allows it."""
        taken, quota = buckets(), SourceQuota(messages=10, burst=2)
        self.assertEqual([0.0] * 20, [taken.take(quota, "s", "", 1, 0, NOW) for _ in range(20)])
        self.assertAlmostEqual(0.1, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertAlmostEqual(0.05, taken.take(quota, "s", "", 1, 0, NOW + 0.05))
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 0, NOW + 0.1))
        self.assertAlmostEqual(0.1, taken.take(quota, "s", "", 1, 0, NOW + 0.1))

    def test_short_burst(self) -> None:
        """A burst that is shorter than the time of one message has room for one each time."""
        taken, quota = buckets(), SourceQuota(messages=1 / 60, burst=10)
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertAlmostEqual(60.0, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 0, NOW + 60))

    def test_larger_than_bucket(self) -> None:
        """A body that is larger than the bucket has room when it is full, and the next waits for as long as it cost."""
        taken, quota = buckets(), SourceQuota(bytes=100, burst=2)
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 1000, NOW))
        self.assertAlmostEqual(8.01, taken.take(quota, "s", "", 1, 1, NOW))
        self.assertAlmostEqual(10.0, taken.take(quota, "s", "", 1, 1000, NOW))

    def test_both(self) -> None:
        """Of messages and bytes, the one with less room decides, and a refusal takes of neither."""
        taken, quota = buckets(), SourceQuota(messages=1, bytes=100, burst=2)
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 200, NOW))
        self.assertAlmostEqual(1.0, taken.take(quota, "s", "", 1, 100, NOW))
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertAlmostEqual(1.0, taken.take(quota, "s", "", 1, 0, NOW))

    def test_in_pieces(self) -> None:
        """A body that comes in pieces has as much room as one whose size is known; what others take is not its own."""
        taken, quota = buckets(), SourceQuota(bytes=100, burst=2)
        waits = [taken.take(quota, "s", "", 0, 100, NOW, begun) for begun in range(0, 1000, 100)]
        self.assertEqual([0.0] * 10, waits)
        self.assertAlmostEqual(9.0, taken.take(quota, "s", "", 0, 100, NOW))
        taken.take(quota, "t", "", 0, 100, NOW)
        taken.take(quota, "t", "", 0, 200, NOW)
        self.assertAlmostEqual(1.0, taken.take(quota, "t", "", 0, 200, NOW, 0))
        self.assertEqual(0.0, taken.take(quota, "t", "", 0, 100, NOW + 1, 0))
        self.assertEqual(0.0, taken.take(quota, "t", "", 0, 100, NOW + 1, 100))

    def test_charge(self) -> None:
        """What is charged is taken without room, and what comes next waits for longer."""
        taken, quota = buckets(), SourceQuota(messages=10, burst=2)
        taken.charge(quota, "s", "", 100, 0, NOW)
        self.assertAlmostEqual(8.1, taken.take(quota, "s", "", 1, 0, NOW))

    def test_whose(self) -> None:
        """A source has a bucket of its own, or each of its tokens, or addresses; those of an IPv6 network share one."""
        taken = buckets()
        for per, same, other in (
            ("source", ("one", "192.0.2.1"), None),
            ("token", ("one", "192.0.2.1"), ("two", "192.0.2.1")),
            ("address", ("two", "2001:db8::1:2:3:4"), ("one", "2001:db8:0:1::4")),
            ("address", ("two", "192.0.2.1"), ("one", "192.0.2.2")),
        ):
            quota = SourceQuota(messages=1, burst=1, per=per)
            address = "2001:db8::9:9:9:9" if ":" in same[1] else "192.0.2.1"
            whose = quota.whose("one", address)
            self.assertEqual(0.0, taken.take(quota, "s", whose, 1, 0, NOW))
            self.assertEqual(1.0, taken.take(quota, "s", quota.whose(*same), 1, 0, NOW))
            if other is not None:
                self.assertEqual(0.0, taken.take(quota, "s", quota.whose(*other), 1, 0, NOW))
            self.assertEqual(0.0, taken.take(quota, "other", whose, 1, 0, NOW))
            self.assertEqual(0.0, taken.take(quota, "s", whose, 1, 0, NOW + 1))
            taken = buckets()

    def test_changed(self) -> None:
        """A quota that a reload has changed goes on with the bucket as it is."""
        taken = buckets()
        taken.take(SourceQuota(messages=1, burst=10), "s", "", 10, 0, NOW)
        self.assertAlmostEqual(9.0, taken.take(SourceQuota(messages=1, burst=2), "s", "", 1, 0, NOW))
        self.assertEqual(0.0, taken.take(SourceQuota(messages=10, burst=20), "s", "", 1, 0, NOW))


class SharedTests(SynchronousTestCase):
    """
    Tests for L{Buckets} that several processes share.
    """

    def test_one_bucket(self) -> None:
        """What one process takes, the others have no room for."""
        shared, quota = memory(), SourceQuota(messages=10, burst=2)
        processes = [Buckets(shared, PlayedLock()) for _ in range(4)]
        taken = [process.take(quota, "s", "", 1, 0, NOW) == 0.0 for _ in range(10) for process in processes]
        self.assertEqual([True] * 20 + [False] * 20, taken)

    def test_refused_without_lock(self) -> None:
        """A refusal takes no lock and writes nothing."""
        lock, quota = PlayedLock(), SourceQuota(messages=1, burst=1)
        shared = memory()
        taken = Buckets(shared, lock)
        taken.take(quota, "s", "", 1, 0, NOW)
        self.assertEqual(["acquire", "release"], lock.had)
        before = bytes(shared)
        for _ in range(3):
            self.assertEqual(1.0, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertEqual((2, before), (len(lock.had), bytes(shared)))

    def test_charge(self) -> None:
        """A charge takes the lock and gives it back."""
        lock, quota = PlayedLock(), SourceQuota(messages=1, burst=1)
        taken = buckets(lock)
        taken.charge(quota, "s", "", 3, 0, NOW)
        self.assertEqual((["acquire", "release"], 3.0), (lock.had, taken.take(quota, "s", "", 1, 0, NOW)))

    def test_taken_meanwhile(self) -> None:
        """What another process has taken just before the lock was free counts."""
        shared, quota = memory(), SourceQuota(messages=1, burst=1)
        lock, other = PlayedLock(), Buckets(shared)
        taken = Buckets(shared, lock)

        def acquire() -> bool:
            other.take(quota, "s", "", 1, 0, NOW)
            return True

        lock.acquire = acquire  # type: ignore[method-assign]
        self.assertEqual(1.0, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertEqual(["release"], lock.had)

    def test_taken_meanwhile_without_lock(self) -> None:
        """What another process takes meanwhile counts also where the lock can't be had."""
        shared, quota = memory(), SourceQuota(messages=1, bytes=1, burst=2)
        lock, other = PlayedLock(), Buckets(shared)
        taken = Buckets(shared, lock)
        other.take(quota, "s", "", 0, 1, NOW - 0.5)

        def acquire() -> bool:
            other.take(quota, "s", "", 1, 1, NOW)
            return False

        lock.acquire = acquire  # type: ignore[method-assign]
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertEqual((1.0, 0.5), (other.take(quota, "s", "", 1, 0, NOW), other.take(quota, "s", "", 0, 1, NOW)))

    def test_stopped(self) -> None:
        """When another process was stopped while it had the lock, the others still decide, and count."""
        lock, quota = PlayedLock(), SourceQuota(messages=1, burst=2)
        lock.is_free = False
        taken = buckets(lock)
        self.assertEqual([0.0, 0.0, 1.0], [taken.take(quota, "s", "", 1, 0, NOW) for _ in range(3)])
        taken.charge(quota, "s", "", 1, 0, NOW)
        self.assertEqual(2.0, taken.take(quota, "s", "", 1, 0, NOW))
        self.assertNotIn("release", lock.had)


class PlaceTests(SynchronousTestCase):
    """
    Tests for the places of L{Buckets}.
    """

    def test_all(self) -> None:
        """Each place, up to the last one, has a bucket of its own, for messages and for bytes."""
        for per, sets in (("source", quota_module.NAMED // 8), ("address", quota_module.ADDRESSES // 8)):
            for messages, size in ((1, 0), (0, 1)):
                taken, quota = buckets(), SourceQuota(messages=1, bytes=1, burst=1, per=per)
                # The tag and the number of the places of a bucket; those that addresses would share are elsewhere.
                self.patch(
                    taken,
                    "_hash",
                    lambda source, whose: (99, 300) if whose.startswith("\0") else (int(whose), int(source)),
                )
                rows = [(str(number), str(tag)) for number in (0, 1, sets - 1) for tag in range(1, 9)]
                for wait in (0.0, 1.0):
                    waits = [taken.take(quota, source, tag, messages, size, NOW) for source, tag in rows]
                    self.assertEqual([wait] * 24, waits)


class ManyAddressesTests(SynchronousTestCase):
    """
    Tests for L{Buckets} when there are more addresses than places.
    """

    quota = SourceQuota(messages=1, burst=3, per="address")

    def setUp(self) -> None:
        self.patch(quota_module, "ADDRESSES", 8)
        self.taken = buckets()

    def take(self, address: int, now: float = NOW) -> float:
        """Take one message of an address."""
        return self.taken.take(self.quota, "s", f"192.0.2.{address}", 1, 0, now)

    def test_full_bucket_makes_room(self) -> None:
        """An address that has sent nothing for long loses nothing when another takes its place."""
        for address in range(8):
            self.take(address)
        self.assertEqual([0.0] * 3, [self.take(100, NOW + 3) for _ in range(3)])
        self.assertEqual([0.0] * 3, [self.take(0, NOW + 3) for _ in range(3)])

    def test_flooder_gains_nothing(self) -> None:
        """An address that is over its quota has no room the sooner because many others come."""
        while not self.take(0):
            pass
        for address in range(1, 200):
            self.take(address)
            self.assertLess(0.0, self.take(0), address)

    def test_others_share(self) -> None:
        """While all places belong to others, those that come share some buckets, each as large as that of one."""
        for address in range(8):
            while not self.take(address):
                pass
        room = sum(not self.take(address) for address in range(100, 250) for _ in range(5))
        self.assertEqual(SHARED * 3, room)
        self.assertTrue(all(self.take(address) for address in range(100, 250)))
        room = sum(not self.take(address, NOW + 1) for address in range(100, 250))
        self.assertEqual(SHARED, room)

    def test_place_after_sharing(self) -> None:
        """An address that has shared a bucket begins no fuller in one of its own."""
        for address in range(8):
            while not self.take(address):
                pass
        while not self.take(100, NOW + 2.5):
            pass
        self.assertEqual([True, False], [bool(self.take(100, NOW + 3.2)), bool(self.take(100, NOW + 5.6))])

    def test_quotas_of_others(self) -> None:
        """Buckets of another source, which fill slowly, keep nobody out for as long as they take."""
        slow = SourceQuota(messages=1 / 60, burst=600, per="address")
        for address in range(8):
            while not self.taken.take(slow, "slow", f"192.0.2.{address}", 1, 0, NOW):
                pass
        self.assertEqual([0.0] * 3, [self.take(100) for _ in range(3)])
        self.assertAlmostEqual(1.0, self.take(100))
        self.assertEqual(0.0, self.take(100, NOW + 1))

    def test_too_many_names(self) -> None:
        """When there are more sources and tokens than places, some share a bucket, and none is without one."""
        self.patch(quota_module, "NAMED", 8)
        quota = SourceQuota(messages=1, burst=1)
        room = [self.taken.take(quota, str(number), "", 1, 0, NOW) for number in range(20)]
        self.assertEqual([0.0] * 8 + [1.0] * 12, room)

    def test_sources_keep_theirs(self) -> None:
        """Addresses never take the place of a source or token."""
        quota = SourceQuota(messages=1, burst=1)
        self.taken.take(quota, "t", "", 1, 0, NOW)
        for address in range(250):
            self.take(address)
        self.assertEqual(1.0, self.taken.take(quota, "t", "", 1, 0, NOW))

    @given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0.0, 0.0, 0.0, 0.25, 1.0, 5.0])), max_size=200))
    def test_never_more_than_its_quota(self, requests: list[tuple[int, float]]) -> None:
        """Whatever comes, no address has room that it would not have in a bucket that nobody ever takes away."""
        self.patch(quota_module, "ADDRESSES", 8)
        taken, own = buckets(), defaultdict(buckets)
        now = NOW
        for address, later in requests:
            now += later
            text = f"192.0.2.{address}"
            if not taken.take(self.quota, "s", text, 1, 0, now):
                self.assertEqual(0.0, own[text].take(self.quota, "s", text, 1, 0, now))

    def test_as_announced_whole(self) -> None:
        """A body that comes in pieces has room for as long as it would have had, announced whole."""
        taken, quota = buckets(), SourceQuota(bytes=10, burst=10)
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 60, 50.0))
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 40, 50.0))
        self.assertAlmostEqual(4.0, taken.take(quota, "s", "", 0, 40, 50.0, 40))
        self.assertEqual(0.0, taken.take(quota, "s", "", 0, 40, 54.0, 40))
        self.assertEqual(0.0, taken.take(quota, "other", "", 1, 60, 50.0))
        self.assertEqual(0.0, taken.take(quota, "other", "", 0, 90, 50.0, 60))


class RetryAfterTests(SynchronousTestCase):
    """
    Tests for L{retry_after}.
    """

    def test_whole_seconds(self) -> None:
        """It is a whole number of seconds, never too early, and a day at most."""
        self.assertEqual([1, 1, 1, 2, 86400], [retry_after(wait) for wait in (0.0, 0.001, 1.0, 1.001, 1e9)])
