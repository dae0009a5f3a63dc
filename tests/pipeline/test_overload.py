"""More comes than observers can store: who is served, how long it takes, and what is refused."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.consumer_contract import RecordingProducer
from tests.pipeline.slow_disk import Load, MiB

#: Seconds for a sync, bytes a second, bytes of a message.
DISKS = (
    (0.01, 1e6, 2_000),  # slow in writing
    (0.01, 10e6, 20_000),
    (0.05, 100e6, 200_000),  # slow in syncing
    (0.0, 300_000, 1_000),  # slow for each message, as an observer may be that does them one by one
)


def capacity(fixed: float, bytes_per_second: float) -> float:
    """Return the bytes a second that a disk stores when every store is as large as it may be."""
    return 4 * MiB / (fixed + 4 * MiB / bytes_per_second)


class OverloadTests(SynchronousTestCase):
    """At three times capacity nearly all of the capacity is used, and who is taken is served soon."""

    def test_three_times(self) -> None:
        """That holds for a minute with the beginning, whether the disk is known by then or not."""
        for disk in DISKS:
            for seconds_before in (0.0, 10.0):
                can = capacity(*disk[:2])
                load = Load(*disk)
                load.send(seconds_before, can / 3)
                load.forget()
                load.send(60, 3 * can)

                self.assertGreaterEqual(load.stored_bytes(), 0.9 * can * 60, disk)
                self.assertLessEqual(load.age_of(0.99), 1.0, (disk, seconds_before))
                self.assertLessEqual(load.most_bytes, 64 * MiB, disk)

    def test_three_times_at_long_syncs(self) -> None:
        """
        When each sync takes so long that an overload shows late, the beginning may take a little longer than a second,
        and what comes after may not.
        """
        can = capacity(0.2, 100e6)
        load = Load(0.2, 100e6, 200_000)
        load.send(10, can / 3)
        load.forget()
        load.send(5, 3 * can)
        self.assertLessEqual(max(load.ages), 2.0)
        load.forget()
        load.send(60, 3 * can)

        self.assertGreaterEqual(load.stored_bytes(), 0.9 * can * 60)
        self.assertLessEqual(load.age_of(0.99), 1.0)

    def test_slightly_too_much(self) -> None:
        """A load that is a little more than can be stored does not creep into long waiting either."""
        for disk in DISKS[:2]:
            can = capacity(*disk[:2])
            load = Load(*disk)
            load.send(60, 1.2 * can)
            load.forget()
            load.send(30, 1.2 * can)

            self.assertGreaterEqual(load.stored_bytes(), 0.9 * can * 30, disk)
            self.assertLessEqual(load.age_of(0.99), 1.0, disk)

    def test_afterwards(self) -> None:
        """Two seconds after an overload everybody is served again."""
        for disk in DISKS:
            can = capacity(*disk[:2])
            load = Load(*disk)
            load.send(20, 3 * can)
            load.send(2, can / 2)
            load.forget()
            load.send(10, can / 2)

            self.assertEqual(0, load.refused, disk)

    def test_no_pause(self) -> None:
        """Senders are not paused for long: what they send would wait elsewhere."""
        load = Load(0.01, 10e6, 20_000, max_bytes=16 * MiB)
        producer = RecordingProducer()
        load.chain.registerProducer(producer, True)
        load.send(10, 30e6)
        self.assertGreater(load.refused, 0)
        self.assertEqual("resume", ["resume", *producer.calls][-1])
        calls = len(producer.calls)
        load.send(10, 30e6)

        self.assertEqual(calls, len(producer.calls))

    def test_refused_at_the_head(self) -> None:
        """While more comes than can be stored, a body finds no room before it is read."""
        load = Load(0.01, 1e6, 2_000)
        self.assertTrue(load.chain.has_room(10_000, small=True))
        load.send(10, 3e6)
        refused = load.refused
        while load.refused == refused:
            load.send(0.005, 3e6)
        self.assertFalse(load.chain.has_room(10_000, small=True))
        self.assertFalse(load.chain.reserve(10_000, small=True))
        self.assertEqual(1, load.chain.retry_after())

        load.send(2, 0)
        self.assertTrue(load.chain.has_room(10 * MiB, small=False))


class HiccupTests(SynchronousTestCase):
    """What passes by itself is borne by the whole queue."""

    def test_one_store(self) -> None:
        """A disk that is held up for 1.9 s, at a load that it can bear, costs nobody anything but time."""
        for disk in DISKS:
            for share in (0.2, 0.5, 0.7):
                load = Load(*disk)
                rate = share * capacity(*disk[:2])
                load.send(5, rate)
                load.disk.hiccup = 1.9
                load.send(20, rate)

                self.assertEqual(0, load.refused, (disk, share))
                self.assertGreaterEqual(max(load.ages), 1.9, (disk, share))

    def test_burst(self) -> None:
        """A crowd that comes at once, two seconds of work or half of the queue, is taken whole."""
        for disk in DISKS:
            can = capacity(*disk[:2])
            load = Load(*disk)
            load.send(5, can / 3)
            load.send(0.02, min(2 * can, 32 * MiB) / 0.02)
            load.send(10, can / 3)

            self.assertEqual(0, load.refused, disk)

    def test_slow_sync(self) -> None:
        """A disk that takes two seconds for each sync but any amount at once is waited for, and nobody refused."""
        load = Load(2.0, 500e6, 2_000)
        load.send(60, 1e6)

        self.assertEqual(0, load.refused)

    def test_slower_for_good(self) -> None:
        """When a disk becomes slower for good, what it can't bear is refused, and who is taken is served soon."""
        load = Load(0.01, 10e6, 20_000)
        load.send(10, 3e6)
        load.disk._rate = 1e6
        load.send(30, 3e6)
        load.forget()
        load.send(20, 3e6)

        self.assertGreater(load.refused, 0)
        self.assertGreaterEqual(load.stored_bytes(), 0.85 * 1e6 * 20)
        self.assertLessEqual(load.age_of(0.99), 1.0)
