"""Tests for L{webhookrx.transport.overload}: connections, processor time and the clock are as a test says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from random import Random
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.transport import overload
from webhookrx.transport.overload import (
    DROPPED,
    GROUP,
    NEW,
    OLD,
    REFUSING,
    SERVED,
    SERVED_PER_NEW,
    TURN,
    Overload,
    UnreadQueue,
)
from webhookrx.wire_interfaces import IOverload


class Rule:
    """
    Does as it is told.

    @ivar ages: what it was told.
    """

    def __init__(self) -> None:
        self.stands = True
        self.ages: list[float] = []

    def observe(self, now: float, age: float, length: float) -> bool:
        self.ages.append(age)
        return self.stands


class Connections:
    """
    Connections that are read, dropped and watched.

    @ivar cost: seconds of processor time for each that is read or dropped.
    @ivar time_passes: seconds while one is dropped.
    @ivar ages: seconds for which each has something unread; those without are UNIX sockets.
    @ivar ended: whose senders have left.
    @ivar read_at: called for each that is read.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.processor_time = 5.0
        self.cost = 0.00001
        self.time_passes = 0.0
        self.ages: dict[int, float] = {}
        self.ended: set[int] = set()
        self.was_read: list[int] = []
        self.refused: list[int] = []
        self.dropped: list[int] = []
        self.resting: set[int] = set()
        self.counted = 0
        self.rule = Rule()
        self.on_read: Callable[[int], object] = lambda fd: None
        self.overload = Overload(self.rule, self.count, lambda: self.now, lambda: self.processor_time)

    def count(self) -> None:
        self.counted += 1

    def read(self, fds: Sequence[int]) -> None:
        for fd in fds:
            assert fd not in self.resting
            self.processor_time += self.cost
            (self.refused if self.overload.refusing else self.was_read).append(fd)
            self.on_read(fd)

    def unread_for(self, fd: int) -> float | None:
        return self.ages.get(fd)

    def has_ended(self, fd: int) -> bool:
        return fd in self.ended

    def drop(self, fd: int) -> None:
        self.processor_time += self.cost
        self.now += self.time_passes
        self.dropped.append(fd)

    def rest(self, fd: int) -> None:
        assert fd in self.overload.queue
        self.resting.add(fd)

    def wake(self, fd: int) -> None:
        assert fd not in self.overload.queue
        self.resting.remove(fd)

    def queue(self, count: int, age: float, first: int = 1) -> list[int]:
        """Have so many wait, the last of them for C{age}, and each before it for a thousandth of a second longer."""
        fds = list(range(first, first + count))
        for fd in fds:
            self.overload.queue.put(fd, self.now - age - (first + count - 1 - fd) / 1000)
            self.resting.add(fd)
        return fds

    def turn(self, *ready: int) -> None:
        """Let it have its turn."""
        self.was_read.clear()
        self.overload.turn(self, list(ready))


class OverloadTests(SynchronousTestCase):
    """Which connections are served, refused and dropped while the queue stands."""

    def setUp(self) -> None:
        self.world = Connections()
        self.overload = self.world.overload

    def test_interface(self) -> None:
        """It is what the wire asks."""
        self.assertTrue(verifyObject(IOverload, self.overload))

    def test_youngest_first(self) -> None:
        """Who has just come is served first, the last of them before the others, and then the youngest of the queue."""
        waiting = self.world.queue(4 * SERVED, 0.1)
        self.world.turn(901, 902, 903)
        self.assertEqual([903, 902, 901, *waiting[: -SERVED + 2 : -1]], self.world.was_read)
        self.assertEqual(set(waiting[: -SERVED + 3]), self.world.resting)

    def test_too_many_at_once(self) -> None:
        """Connections for which a turn has no time wait in the queue by age, and are not watched meanwhile."""
        ready = list(range(1, 2 * SERVED + 1))
        self.world.ages = {fd: 0.5 - fd / 1000 for fd in ready}
        self.world.turn(*ready)
        self.assertEqual([*ready[:SERVED:-1], SERVED + 1], self.world.was_read)
        self.assertEqual(set(ready[:SERVED]), self.world.resting)
        self.assertEqual(100.0 - 0.499, self.overload.queue.oldest())
        self.assertTrue(self.overload.has_unread(1))
        self.assertFalse(self.overload.has_unread(SERVED + 1))

    def test_unix_sockets(self) -> None:
        """Connections of unknown age are served at once, however many there are."""
        ready = list(range(1, 2 * SERVED + 1))
        self.world.turn(*ready)
        self.assertEqual(ready, sorted(self.world.was_read))
        self.assertFalse(self.overload.queue)

    def test_time(self) -> None:
        """A turn ends when its time is over, and the other ready connections wait in the queue."""
        self.world.cost = TURN / 19.5
        self.world.ages = dict.fromkeys(range(1, 101), 0.2)
        self.world.turn(*range(1, 101))
        self.assertEqual((32, 68), (len(self.world.was_read), len(self.overload.queue)))
        self.world.turn()
        self.assertEqual(20, len(self.world.was_read))

    def test_left(self) -> None:
        """Who has left, and is old, is dropped unread and counted, no more than a few in a turn."""
        waiting = self.world.queue(20, OLD + 0.01)
        self.world.ended.update(waiting)
        self.world.turn()
        self.assertEqual((waiting[: -DROPPED - 1 : -1], []), (self.world.dropped, self.world.was_read))
        self.assertEqual(DROPPED, self.world.counted)
        self.assertEqual(len(waiting) - DROPPED, len(self.overload.queue))

    def test_left_beside_others(self) -> None:
        """Served connections do not wait until all that have left are dropped."""
        waiting = self.world.queue(20, OLD + 0.01)
        self.world.ended.update(waiting)
        self.world.turn(77)
        self.assertEqual(([], [77]), (self.world.dropped, self.world.was_read))

    def test_just_left(self) -> None:
        """Who has ended but is young is served: it may have closed only its half."""
        waiting = self.world.queue(3, OLD - 0.01)
        self.world.ended.update(waiting)
        self.world.turn()
        self.assertEqual(([], waiting[::-1]), (self.world.dropped, self.world.was_read))

    def test_just_ended(self) -> None:
        """Connections that have just ended come after all others, a few in each turn; one after a served one."""
        ended = list(range(1, 3 * DROPPED + 1))
        self.world.ended.update(ended)
        self.world.ages = dict.fromkeys(ended, 0.1)
        self.overload.turn(self.world, [900], ended)
        self.assertEqual([900], self.world.was_read)
        self.world.turn()
        self.assertEqual((DROPPED, []), (len(self.world.was_read), self.world.dropped))

    def test_old(self) -> None:
        """An old connection that has not left is served when none is younger."""
        waiting = self.world.queue(3, 60.0)
        self.world.turn()
        self.assertEqual(waiting[::-1], self.world.was_read)

    def test_refused(self) -> None:
        """Of the oldest some are refused, or dropped if they have left, in a tenth of the time."""
        self.world.cost = 0.00003
        oldest = self.world.queue(5_000, OLD + 0.1)
        self.world.ended.update(oldest[::2])
        refusing = serving = 0.0
        for number in range(200):
            ready = range(10_000 + number * SERVED, 10_000 + (number + 1) * SERVED)
            before = self.world.processor_time
            self.world.turn(*ready)
            self.assertEqual(sorted(ready), sorted(self.world.was_read))
            serving += SERVED * self.world.cost
            refusing += self.world.processor_time - before - SERVED * self.world.cost
        gone = len(self.world.refused) + len(self.world.dropped)
        self.assertEqual(oldest[:gone:2], self.world.dropped)
        self.assertEqual(oldest[1:gone:2], self.world.refused)
        self.assertApproximates(REFUSING, refusing / (refusing + serving), REFUSING / 25)
        self.assertFalse(self.overload.refusing)

    def test_refused_in_groups(self) -> None:
        """They are refused many at once, not one in each turn."""
        self.world.cost = 0.00001
        self.world.queue(3_000, OLD + 0.1)
        counts = []
        for number in range(20):
            self.world.turn(*range(10_000 + number * SERVED, 10_000 + (number + 1) * SERVED))
            counts.append(len(self.world.refused))
        steps = [after - before for before, after in itertools.pairwise(counts) if after > before]
        self.assertTrue(steps)
        self.assertGreaterEqual(min(steps), GROUP / self.world.cost)

    def test_not_old_enough(self) -> None:
        """Who does not wait for long yet is not refused, and time for that is not saved up."""
        self.world.queue(500, 0.1)
        for number in range(50):
            self.world.turn(*range(10_000 + number * SERVED, 10_000 + (number + 1) * SERVED))
        self.assertEqual([], self.world.refused)
        self.world.now += 10
        self.world.turn(*range(90_000, 90_000 + SERVED))
        self.assertLessEqual(len(self.world.refused), GROUP / self.world.cost + 20)

    def test_not_for_dropping(self) -> None:
        """Time in which there is none to serve does not count."""
        self.world.cost = TURN / 100
        self.world.ended.update(self.world.queue(50 * DROPPED, OLD + 0.1))
        for _ in range(20):
            self.world.turn()
        self.assertEqual(20 * DROPPED, len(self.world.dropped))

    def test_refusing_ends(self) -> None:
        """A failure during a refusal does not refuse others."""
        self.world.queue(1_000, OLD + 0.1)
        self.world.cost = 0.0001

        def fail(fd: int) -> None:
            if self.overload.refusing:
                raise ZeroDivisionError

        self.world.on_read = fail
        with self.assertRaises(ZeroDivisionError):
            for _ in range(20):
                self.world.turn(*range(10_000, 10_000 + SERVED))
        self.assertFalse(self.overload.refusing)

    def test_new(self) -> None:
        """A full turn accepts one new connection for many served ones, at least one; other turns accept a few."""
        self.world.turn(*range(1, SERVED + 1))
        self.assertEqual(SERVED // SERVED_PER_NEW, self.overload.new)
        self.world.cost = 2 * TURN
        self.world.turn(1)
        self.assertEqual(1, self.overload.new)
        self.world.cost = 0.00001
        self.world.turn(1)
        self.assertEqual(NEW, self.overload.new)

    def test_pause(self) -> None:
        """Who has left is dropped in a tenth of the time, and only when there is nothing else to do."""
        self.world.ended.update(self.world.queue(3 * DROPPED, OLD + 0.1))
        self.world.time_passes = 0.5
        self.assertEqual(0.0, self.overload.turn(self.world, [900]))
        pause = DROPPED * 0.5 * (1 - REFUSING) / REFUSING
        for number in (1, 2):
            self.assertApproximates(pause, self.overload.turn(self.world, []), 1e-6)
            self.assertEqual(number * DROPPED, len(self.world.dropped))
            self.world.now += pause / 2
            self.assertApproximates(pause / 2, self.overload.turn(self.world, [900]), 1e-6)
            self.assertEqual(number * DROPPED, len(self.world.dropped))
            self.world.now += pause / 2
        self.assertEqual(0.0, self.overload.turn(self.world, []))
        self.assertEqual(3 * DROPPED, len(self.world.dropped))

    def test_age(self) -> None:
        """The rule gets the age of the oldest in the queue, and 0 when it is empty."""
        self.world.queue(2 * SERVED, 0.2)
        self.world.turn()
        self.assertApproximates(0.2 + (2 * SERVED - 1) / 1000, self.world.rule.ages[-1], 1e-6)
        self.assertEqual(self.world.rule.ages[-1], self.overload.age)
        self.world.turn()
        self.assertEqual((0.0, 0.0), (self.world.rule.ages[-1], self.overload.age))

    def test_release(self) -> None:
        """In the end all are watched again."""
        self.world.queue(5, 0.1)
        self.overload.release(self.world)
        self.assertEqual((set(), 0), (self.world.resting, len(self.overload.queue)))

    def test_sweep(self) -> None:
        """A sweep without a look in between means that none waits, unless the queue has entries."""
        self.overload.saw(3.0)
        self.overload.sweep()
        self.assertEqual(3.0, self.overload.age)
        self.world.queue(1, 3.0)
        self.overload.sweep()
        self.assertEqual(3.0, self.overload.age)
        self.overload.queue.take_all()
        self.overload.sweep()
        self.assertEqual(0.0, self.overload.age)


class UnreadQueueTests(SynchronousTestCase):
    """Connections in the order in which what is unread came."""

    def setUp(self) -> None:
        self.queue = UnreadQueue()

    def put(self, *came: float) -> None:
        """Put in connections 1, 2, 3 and so on."""
        for fd, each in enumerate(came, 1):
            self.queue.put(fd, each)

    def test_empty(self) -> None:
        """There is nothing in it."""
        self.assertEqual((0, None, []), (len(self.queue), self.queue.oldest(), self.queue.take_all()))
        self.assertFalse(self.queue)
        self.assertNotIn(1, self.queue)
        self.assertRaises(IndexError, self.queue.take_oldest)
        self.assertRaises(IndexError, self.queue.take_youngest)

    def test_ends(self) -> None:
        """It is taken from at either end, whatever the order in which it was put in."""
        self.put(5.0, 1.0, 9.0, 3.0)
        self.assertEqual(1.0, self.queue.oldest())
        self.assertEqual((3, 9.0), self.queue.take_youngest())
        self.assertEqual(2, self.queue.take_oldest())
        self.assertEqual((3.0, 2), (self.queue.oldest(), len(self.queue)))
        self.assertEqual((1, 5.0), self.queue.take_youngest())
        self.assertEqual((4, 3.0), self.queue.take_youngest())
        self.assertFalse(self.queue)

    def test_forget(self) -> None:
        """Who is forgotten is not taken, at either end, and may come again."""
        self.put(1.0, 2.0, 3.0, 4.0)
        self.queue.forget(1)
        self.queue.forget(4)
        self.queue.forget(77)
        self.assertEqual((2.0, 2), (self.queue.oldest(), len(self.queue)))
        self.assertNotIn(1, self.queue)
        self.assertIn(2, self.queue)
        self.queue.put(1, 2.5)
        self.assertEqual((3, 3.0), self.queue.take_youngest())
        self.assertEqual((1, 2.5), self.queue.take_youngest())
        self.assertEqual(2, self.queue.take_oldest())
        self.assertIsNone(self.queue.oldest())
        self.assertRaises(IndexError, self.queue.take_oldest)

    def test_again(self) -> None:
        """Who comes again counts by that alone, though it had come later before."""
        self.put(9.0, 7.0)
        self.queue.forget(1)
        self.queue.put(1, 5.0)
        self.assertEqual((2, 7.0), self.queue.take_youngest())
        self.assertEqual((1, 5.0), self.queue.take_youngest())
        self.assertFalse(self.queue)

    def test_many_forgotten(self) -> None:
        """Of those that are forgotten few are kept, also where they are between others."""
        self.put(0.0, 1_000_000.0)
        with mock.patch.object(overload, "_MOST_STALE", 10):
            for step in range(1_000):
                self.queue.put(3, float(step))
                self.queue.forget(3)
                self.assertLessEqual(len(self.queue._entries), 20)
        self.assertEqual((1, 2), (self.queue.take_oldest(), self.queue.take_oldest()))

    def test_all(self) -> None:
        """All can be taken at once."""
        self.put(2.0, 1.0)
        self.assertEqual([1, 2], sorted(self.queue.take_all()))
        self.assertEqual((0, None), (len(self.queue), self.queue.oldest()))

    def test_as_a_list(self) -> None:
        """It does what a sorted list of pairs does, and keeps few of those that are forgotten."""
        chance = Random(11)
        known: dict[int, float] = {}
        with mock.patch.object(overload, "_MOST_STALE", 10):
            for step in range(5_000):
                what = chance.randrange(4)
                fd = chance.randrange(50)
                if what == 0 and known:
                    oldest = self.queue.take_oldest()
                    self.assertEqual(min(known.values()), known.pop(oldest))
                elif what == 1 and known:
                    youngest, came = self.queue.take_youngest()
                    self.assertEqual(max(known.values()), came)
                    self.assertEqual(came, known.pop(youngest))
                elif what == 2:
                    self.queue.forget(fd)
                    known.pop(fd, None)
                elif fd not in known:
                    known[fd] = chance.random() + step / 10
                    self.queue.put(fd, known[fd])
                self.assertEqual(len(known), len(self.queue))
                self.assertEqual(min(known.values(), default=None), self.queue.oldest())
                self.assertLessEqual(len(self.queue._entries), 2 * 50 + 10 + 1)
