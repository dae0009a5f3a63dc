"""
Tests for L{webhookrx.service.workers.supervisor}.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.snapshots import EMPTY, make_snapshot
from webhookrx.errors import ConfigError
from webhookrx.interfaces import LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import WorkerState
from webhookrx.operations.snapshot import Level, ReceiverSnapshot, merge
from webhookrx.service.workers.log_lines import MOST_LINES
from webhookrx.service.workers.messages import (
    Began,
    Begin,
    CannotBegin,
    ChangeSettings,
    Finish,
    LogLine,
    PortsClosed,
    Readiness,
    Reopen,
    Report,
    SettingsChanged,
    StartTap,
    StopNow,
    StopTap,
    Tapped,
    ToWorker,
)
from webhookrx.service.workers.process import WorkerOwner
from webhookrx.service.workers.supervisor import KILL_AFTER, KILL_AFTER_STOP_NOW, Sockets, WorkerSupervisor
from webhookrx.settings import Limits, Settings
from webhookrx.speedups import in_use

SETTINGS = Settings((), (), limits=Limits(answer_time=30.0), drain_timeout=20.0, workers=2)
OTHER = replace(SETTINGS, ack="written")


class _Worker:
    """A worker that says what the test has it say."""

    def __init__(self, owner: WorkerOwner) -> None:
        self.owner = owner
        self.told: list[tuple[ToWorker, list[int]]] = []
        self.killed = False

    def send(self, message: ToWorker, descriptors: Sequence[int] = ()) -> None:
        self.told.append((message, list(descriptors)))

    def kill(self) -> None:
        self.killed = True

    @property
    def last(self) -> ToWorker:
        """The last message to it."""
        return self.told[-1][0]

    def answer(self, ok: bool = True, text: str = "well") -> None:
        """Answer the last change of settings."""
        assert isinstance(self.last, ChangeSettings)
        self.owner.received(SettingsChanged(self.last.order, ok, text))

    def count(self, messages: int, *, stuck: bool = False) -> None:
        """Say how it does."""
        counters = Counters()
        counters.sources["github"].messages = messages
        self.owner.received(Report(counters, make_snapshot(), stuck))

    def state(self, snapshot: ReceiverSnapshot) -> None:
        """Say what it is like."""
        self.owner.received(Report(Counters(), snapshot, False))

    def end(self, how: str = "was killed by SIGKILL", status: int = -9) -> None:
        """End."""
        self.owner.ended(how, status)


class WorkersCase(SynchronousTestCase):
    """
    Two workers that are no processes.
    """

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1000.0)
        self.launched: list[_Worker] = []
        self.refusal: OSError | None = None
        self.jitter = 1.0
        self.ups = 0
        self.gone: list[int] = []
        self.tapped: list[tuple[int, Tapped]] = []
        self.failures: list[str] = []
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)
        self.workers = WorkerSupervisor(
            self._launch,
            lambda: Sockets({"tcp:80": 5, "tcp:81": 6}, 9, 10, (11, 12)),
            SETTINGS,
            self.clock.seconds,
            lambda: self.jitter,
            self.gone.append,
            lambda number, seen: self.tapped.append((number, seen)),
        )

    def _launch(self, owner: WorkerOwner) -> _Worker:
        if self.refusal is not None:
            raise self.refusal
        self.launched.append(_Worker(owner))
        return self.launched[-1]

    def _up(self) -> None:
        self.ups += 1

    def begin(self) -> tuple[_Worker, _Worker]:
        """Have both begin."""
        self.workers.start(self._up, self.failures.append)
        for worker in self.launched:
            worker.owner.received(Began())
        one, other = self.launched
        return one, other

    def pass_time(self, seconds: float) -> None:
        """Let time pass and be looked at."""
        self.clock.advance(seconds)
        self.workers.tick()

    def told_of_fitness(self) -> list[list[bool]]:
        """Return the readiness that each worker was sent."""
        return [[each.ready for each, _ in one.told if isinstance(each, Readiness)] for one in self.launched]

    def change(self, settings: Settings = OTHER) -> Deferred[str]:
        """Begin to change, with one more socket."""
        return Deferred.fromCoroutine(self.workers.change(settings, {"tcp:80": 5, "tcp:81": 6, "tcp:82": 7}))

    def log(self) -> str:
        """Return what was logged."""
        return "\n".join(formatEvent(event) for event in self.events)


class LifeTests(WorkersCase):
    """
    Starts and ends.
    """

    def test_fitness(self) -> None:
        """A worker that receives gets once whether the service is ready; a later one, as soon as it is up."""
        self.workers.start(self._up, self.failures.append)
        self.workers.set_ready(True)
        self.assertEqual([[], []], self.told_of_fitness())
        for worker in self.launched:
            worker.owner.received(Began())
        for ready in (True, False, False, True):
            self.workers.set_ready(ready)
        self.assertEqual([[True, False, True], [True, False, True]], self.told_of_fitness())
        self.launched[0].end()
        self.pass_time(60)
        self.launched[2].owner.received(Began())
        self.assertEqual([True], self.told_of_fitness()[2])

    def test_begin(self) -> None:
        """Each gets its number and the shared files; the supervisor reports once that all are up."""
        self.workers.start(self._up, self.failures.append)
        for number, worker in enumerate(self.launched):
            self.assertEqual(0, self.ups)
            self.assertEqual(
                [(Begin(SETTINGS, number, 2, {"tcp:80": 5, "tcp:81": 6}), [5, 6, 9, 10, 11, 12])], worker.told
            )
            self.assertEqual(WorkerState(number, False), self.workers.workers[number])
            worker.owner.received(Began())
        self.launched[0].owner.received(Began())
        self.assertEqual((1, []), (self.ups, self.failures))
        self.assertEqual([WorkerState(0, True), WorkerState(1, True)], self.workers.workers)
        self.launched[1].state(make_snapshot(connections=Level(5, 1000)))
        self.assertEqual([WorkerState(0, True), WorkerState(1, True, connections=5)], self.workers.workers)

    def test_other_path(self) -> None:
        """One that takes another path than the parent, since the installation has changed, is said."""
        self.workers.start(self._up, self.failures.append)
        self.launched[0].owner.received(Began())
        self.assertNotIn("the others are", self.log())
        self.launched[1].owner.received(Began("pure Python: it rains"))
        self.assertIn(f"Worker 1 is pure Python: it rains; the others are {in_use}", self.log())

    def test_cannot_begin(self) -> None:
        """As long as not all have begun, one that says why it can't is the end of it, and no other follows it."""
        self.workers.start(self._up, self.failures.append)
        self.launched[0].owner.received(Began())
        self.launched[1].owner.received(CannotBegin("No such directory: /x"))
        self.launched[1].end("ended with status 1", 1)
        self.assertEqual(["No such directory: /x"], self.failures)
        self.pass_time(100.0)
        self.assertEqual(2, len(self.launched))

    def test_dies_at_start(self) -> None:
        """One that ends without a word at the start is followed by another, after pauses that double."""
        self.workers.start(self._up, self.failures.append)
        for pause in (0.1, 0.2, 0.4):
            self.launched[-1].end()
            self.assertIn(f"Worker 1 was killed by SIGKILL; another one follows in {pause} s", self.log())
            launched = len(self.launched)
            self.pass_time(pause / 2)
            self.assertEqual(launched, len(self.launched))
            self.pass_time(pause / 2 + 0.01)
            self.assertEqual(launched + 1, len(self.launched))
        self.launched[0].owner.received(Began())
        self.launched[0].end()
        self.pass_time(0.1)
        self.launched[-2].owner.received(Began())
        self.assertEqual(0, self.ups)
        self.launched[-1].owner.received(Began())
        self.assertEqual((1, [], 4), (self.ups, self.failures, self.workers.restarts))

    def test_no_pause(self) -> None:
        """After a pause of less than 0.05 s, another one follows at once, in the words of the log."""
        one, other = self.begin()
        self.jitter = 0.49
        one.end()
        self.assertIn("Worker 0 was killed by SIGKILL; another one follows at once", self.log())
        self.jitter = 0.51
        other.end()
        self.assertIn("Worker 1 was killed by SIGKILL; another one follows in 0.1 s", self.log())

    def test_says_why_later(self) -> None:
        """One that follows another at the start, and says why it can't begin, is the end of it, too."""
        self.workers.start(self._up, self.failures.append)
        self.launched[0].end()
        self.pass_time(0.1)
        self.launched[-1].owner.received(CannotBegin("No such directory: /x"))
        self.launched[-1].end("ended with status 1", 1)
        self.assertEqual(["No such directory: /x"], self.failures)

    def test_no_process(self) -> None:
        """Where there can be no process for the moment, it is tried again, at the start too."""
        self.refusal = OSError(errno.EAGAIN, "Resource temporarily unavailable")
        self.workers.start(self._up, self.failures.append)
        self.assertIn(
            "Worker 0 could not be started: Resource temporarily unavailable; another one follows", self.log()
        )
        self.assertEqual([], self.failures)
        self.refusal = None
        self.pass_time(0.1)
        self.assertEqual(2, len(self.launched))

    def test_restarted(self) -> None:
        """One that ends is followed by another after a pause, which is logged; others never notice."""
        one, other = self.begin()
        one.end()
        self.assertIn("Worker 0 was killed by SIGKILL; another one follows in 0.1 s", self.log())
        self.assertEqual([WorkerState(0, False), WorkerState(1, True)], self.workers.workers)
        self.pass_time(0.05)
        self.assertEqual(2, len(self.launched))
        self.pass_time(0.1)
        self.assertEqual(3, len(self.launched))
        self.assertEqual(one.told, self.launched[2].told)
        self.assertEqual(1, len(other.told))
        self.launched[2].owner.received(CannotBegin("full"))
        self.launched[2].end("ended with status 1", 1)
        self.assertIn("Worker 0 could not begin: full; another one follows in 0.2 s", self.log())
        self.assertEqual((2, 1, []), (self.workers.restarts, self.ups, self.failures))

    def test_counts_stay(self) -> None:
        """What one had counted stays when it ends; what it was like does not."""
        one, other = self.begin()
        one.count(5)
        one.count(7)
        other.count(1)
        self.assertEqual((8, 2), (self.workers.counters.sources["github"].messages, len(self.workers.snapshots)))
        one.end()
        self.assertEqual((8, 1), (self.workers.counters.sources["github"].messages, len(self.workers.snapshots)))
        self.pass_time(1.0)
        self.launched[2].count(2)
        self.assertEqual(10, self.workers.counters.sources["github"].messages)

    def test_stuck(self) -> None:
        """One that says nothing for longer than an answer may take hangs; so does one whose observer does."""
        one, other = self.begin()
        self.pass_time(30.0)
        other.count(1)
        self.assertFalse(self.workers.stuck)
        self.pass_time(0.1)
        self.assertTrue(self.workers.stuck)
        self.assertEqual([WorkerState(0, True, True), WorkerState(1, True, False)], self.workers.workers)
        one.count(1)
        self.assertFalse(self.workers.stuck)
        one.count(1, stuck=True)
        self.assertTrue(self.workers.stuck)

    def test_lines(self) -> None:
        """What one has to say is in the log, but for what is too much."""
        one, _ = self.begin()
        for _ in range(MOST_LINES + 1):
            one.owner.received(LogLine("warn", "webhookrx.traffic", "Refused"))
        self.assertIn("Worker 0: Refused", self.log())
        self.workers.report_held_back()
        self.assertIn("Worker 0: 1 more lines", self.log())

    def test_channel_lost(self) -> None:
        """A worker without a channel counts as down, and is killed if it does not end in time."""
        one, _ = self.begin()
        one.owner.channel_lost()
        self.assertEqual([WorkerState(0, False), WorkerState(1, True)], self.workers.workers)
        self.pass_time(SETTINGS.drain_timeout + KILL_AFTER - 0.1)
        self.assertFalse(one.killed)
        self.pass_time(0.2)
        self.assertTrue(one.killed)
        one.end()
        self.pass_time(1.0)
        self.assertEqual(3, len(self.launched))

    def test_gone(self) -> None:
        """It says which worker has ended before the next one begins."""
        self.begin()
        self.launched[1].end()
        self.assertEqual(([1], 2), (self.gone, len(self.launched)))
        self.pass_time(1.0)
        self.assertEqual(([1], 3), (self.gone, len(self.launched)))

    def test_never_started(self) -> None:
        """Where no process can be started after a long life, pauses grow, and so the log stays short."""
        one, _ = self.begin()
        self.pass_time(1000.0)
        self.refusal = OSError(errno.EAGAIN, "Resource temporarily unavailable")
        one.end()
        for _ in range(120):
            self.pass_time(0.5)
        self.assertIn("Worker 0 could not be started: Resource temporarily unavailable; another one", self.log())
        self.assertLess(len(self.events), 12)

    def test_spool_counts_stay(self) -> None:
        """What a spool has dropped, or put aside, is counted for ever; what waits in it is for its next worker."""
        one, other = self.begin()
        for worker, dropped in ((one, 5), (other, 1)):
            lost = EMPTY._replace(messages=7, bytes=70, dropped=dropped, damaged=1, full=True)
            worker.state(make_snapshot(lanes=(LaneStatus("spool:/y", backlog=lost), LaneStatus("file:/x"))))
        one.end()
        self.pass_time(1.0)
        self.launched[2].state(make_snapshot(lanes=(LaneStatus("spool:/y", backlog=EMPTY._replace(dropped=2)),)))
        self.launched[2].end()
        (_, backlog), (_, nothing) = [(lane.spec, lane.backlog) for lane in merge(self.workers.snapshots).lanes]
        self.assertEqual(
            (EMPTY._replace(messages=7, bytes=70, dropped=8, damaged=2, full=True), None), (backlog, nothing)
        )
        other.state(make_snapshot(lanes=(LaneStatus("file:/x"),)))
        self.assertEqual(["file:/x"], [lane.spec for lane in merge(self.workers.snapshots).lanes])


class ChangeTests(WorkersCase):
    """
    Reloads.
    """

    def test_in_turn(self) -> None:
        """The workers get the settings one after another, with all sockets."""
        one, other = self.begin()
        changed = self.change()
        self.assertEqual((ChangeSettings(1, OTHER, {"tcp:80": 5, "tcp:81": 6, "tcp:82": 7}), [5, 6, 7]), one.told[-1])
        self.assertIsInstance(other.last, Begin)
        one.answer()
        self.assertIsInstance(other.last, ChangeSettings)
        self.assertNoResult(changed)
        other.answer(text="2 sources")
        self.assertEqual("2 sources", self.successResultOf(changed))
        self.assertEqual(OTHER, self.workers.settings)

    def test_refused(self) -> None:
        """Where one can't, those before it go back, and nothing has changed."""
        one, other = self.begin()
        changed = self.change()
        one.answer()
        other.answer(False, "no such directory")
        self.assertEqual(ChangeSettings(3, SETTINGS, {"tcp:80": 5, "tcp:81": 6}), one.last)
        one.answer()
        self.assertEqual("no such directory", str(self.failureResultOf(changed, ConfigError).value))
        self.assertEqual(SETTINGS, self.workers.settings)

    def test_no_way_back(self) -> None:
        """One that can't go back is replaced, without a pause."""
        one, other = self.begin()
        changed = self.change()
        one.answer()
        other.answer(False, "no")
        one.answer(False, "not any more")
        self.failureResultOf(changed, ConfigError)
        self.assertIsInstance(one.last, Finish)
        one.end("ended with status 0", 0)
        self.pass_time(0.0)
        self.assertEqual(Begin(SETTINGS, 0, 2, {"tcp:80": 5, "tcp:81": 6}), self.launched[2].last)
        self.assertEqual(0, self.workers.restarts)

    def test_ended_meanwhile(self) -> None:
        """A worker that ends during its change has failed to change; none is started before the change is over."""
        one, other = self.begin()
        changed = self.change()
        one.answer()
        other.end()
        self.pass_time(10.0)
        self.assertEqual(2, len(self.launched))
        self.assertNoResult(changed)
        one.answer()
        self.failureResultOf(changed, ConfigError)
        self.pass_time(0.0)
        self.assertEqual(SETTINGS, getattr(self.launched[2].last, "settings", None))

    def test_hangs(self) -> None:
        """One that does not answer in time fails the change, and is replaced; what it says later is of no use."""
        one, other = self.begin()
        changed = self.change()
        self.pass_time(49.9)
        self.assertNoResult(changed)
        self.pass_time(0.1)
        self.assertEqual("Worker 0 hangs.", str(self.failureResultOf(changed, ConfigError).value))
        self.assertIsInstance(one.last, Finish)
        one.owner.received(SettingsChanged(1, True, "late"))
        self.assertEqual(SETTINGS, self.workers.settings)
        self.pass_time(20.0 + KILL_AFTER)
        self.assertTrue(one.killed)
        self.assertIsInstance(other.last, Begin)

    def test_who_leaves(self) -> None:
        """A worker that accepts no more, and an empty slot, are passed over."""
        one, other = self.begin()
        one.owner.received(PortsClosed())
        changed = self.change()
        self.assertIsInstance(one.last, Begin)
        other.end()
        self.failureResultOf(changed, ConfigError)
        changed = self.change()
        self.assertIn("no worker lives", self.successResultOf(changed))
        self.pass_time(1.0)
        self.assertEqual(OTHER, getattr(self.launched[2].last, "settings", None))

    def test_more(self) -> None:
        """Scaling up replaces the workers one by one, since each must know the count, then starts the new ones."""
        one, other = self.begin()
        three = replace(SETTINGS, workers=3)
        changed = self.change(three)
        one.answer()
        other.answer()
        self.successResultOf(changed)
        for number, worker in enumerate((one, other)):
            self.pass_time(0.5)
            self.assertIsInstance(worker.last, Finish)
            self.pass_time(0.5)
            worker.end("ended with status 0", 0)
            self.assertIsInstance(self.launched[-1].last, (Begin, ChangeSettings))
            self.pass_time(0.5)
            self.assertEqual(Begin(three, number, 3, {"tcp:80": 5, "tcp:81": 6}), self.launched[-1].last)
            self.pass_time(0.5)
            self.launched[-1].owner.received(Began())
        self.assertEqual(4, len(self.launched))
        self.pass_time(0.5)
        self.assertEqual(Begin(three, 2, 3, {"tcp:80": 5, "tcp:81": 6}), self.launched[-1].last)
        self.launched[-1].owner.received(Began())
        self.pass_time(0.5)
        self.assertEqual((5, 1, 0), (len(self.launched), self.ups, self.workers.restarts))
        self.assertEqual([WorkerState(number, True) for number in range(3)], self.workers.workers)

    def test_fewer(self) -> None:
        """Scaling down ends surplus workers first, then replaces the others."""
        one, other = self.begin()
        changed = self.change(replace(SETTINGS, workers=1))
        one.answer()
        other.answer()
        self.successResultOf(changed)
        self.pass_time(0.5)
        self.assertEqual([ChangeSettings, Finish], [type(one.last), type(other.last)])
        self.assertEqual([WorkerState(0, True)], self.workers.workers)
        other.end("ended with status 0", 0)
        self.pass_time(0.5)
        self.assertIsInstance(one.last, Finish)
        one.end("ended with status 0", 0)
        self.pass_time(0.5)
        self.assertEqual(1, getattr(self.launched[2].last, "size", None))
        self.assertEqual((3, 0), (len(self.launched), self.workers.restarts))

    def test_fewer_and_more(self) -> None:
        """One that is wanted again while it ends is followed by another, at once."""
        one, other = self.begin()
        changed = self.change(replace(SETTINGS, workers=1))
        one.answer()
        other.answer()
        self.successResultOf(changed)
        changed = self.change(SETTINGS)
        one.answer()
        self.successResultOf(changed)
        self.assertIsInstance(other.last, Finish)
        other.end("ended with status 0", 0)
        self.pass_time(0.0)
        self.assertEqual(Begin(SETTINGS, 1, 2, {"tcp:80": 5, "tcp:81": 6}), self.launched[2].last)
        self.assertEqual(0, self.workers.restarts)

    def test_fewer_of_none(self) -> None:
        """One that is not there, and not wanted any more, is not started again."""
        one, other = self.begin()
        other.end()
        changed = self.change(replace(SETTINGS, workers=1))
        one.answer()
        self.successResultOf(changed)
        self.pass_time(10.0)
        self.assertEqual(2, len(self.launched))

    def test_reopen(self) -> None:
        """All living workers reopen their files."""
        one, other = self.begin()
        one.end()
        self.workers.reopen()
        self.assertEqual([Begin, Reopen], [type(one.last), type(other.last)])


class TapTests(WorkersCase):
    """
    Taps.
    """

    def test_told(self) -> None:
        """All living workers look for a tap, and those that begin later, until it ends."""
        one, other = self.begin()
        other.end()
        self.workers.start_tap(7, b"{}")
        self.assertEqual((one.last, type(other.last)), (StartTap(7, b"{}"), Begin))
        self.pass_time(60)
        third = self.launched[-1]
        third.owner.received(Began())
        self.assertEqual(third.last, StartTap(7, b"{}"))
        self.workers.stop_tap(7)
        self.assertEqual((one.last, third.last), (StopTap(7), StopTap(7)))

    def test_seen(self) -> None:
        """What a worker has seen is passed on with its number."""
        _, other = self.begin()
        seen = Tapped(7, (b"{}",), (1, 1, 1, 0, 0))
        other.owner.received(seen)
        self.assertEqual(self.tapped, [(1, seen)])


class StopTests(WorkersCase):
    """
    The end.
    """

    def test_whole(self) -> None:
        """The ports can be closed when no worker accepts; it ends well when all have."""
        one, other = self.begin()
        closed, ended = self.workers.stop(20.0)
        self.assertEqual([Finish(), Finish()], [one.last, other.last])
        one.owner.received(PortsClosed())
        self.assertNoResult(closed)
        other.owner.received(PortsClosed())
        self.successResultOf(closed)
        one.end("ended with status 0", 0)
        self.assertNoResult(ended)
        other.end("ended with status 0", 0)
        self.assertTrue(self.successResultOf(ended))
        self.pass_time(100.0)
        self.assertEqual(2, len(self.launched))

    def test_not_whole(self) -> None:
        """It ends not well when one has not."""
        one, other = self.begin()
        closed, ended = self.workers.stop(20.0)
        one.end("ended with status 1", 1)
        other.end("ended with status 0", 0)
        self.successResultOf(closed)
        self.assertFalse(self.successResultOf(ended))

    def test_nobody(self) -> None:
        """Without living workers there is nothing to wait for."""
        closed, ended = self.workers.stop(20.0)
        self.successResultOf(closed)
        self.assertTrue(self.successResultOf(ended))

    def test_overdue(self) -> None:
        """Who outlives its time is killed."""
        one, other = self.begin()
        self.workers.stop(20.0)
        other.end("ended with status 0", 0)
        self.pass_time(20.0)
        self.assertFalse(one.killed)
        self.pass_time(KILL_AFTER)
        self.assertEqual((True, False), (one.killed, other.killed))
        self.assertIn("Worker 0 does not end, and is killed", self.log())

    def test_stop_now(self) -> None:
        """All are told to stop now, and live a moment longer at most."""
        one, other = self.begin()
        self.workers.stop(20.0)
        other.end("ended with status 0", 0)
        self.workers.stop_now()
        self.assertEqual([StopNow, Finish], [type(one.last), type(other.last)])
        self.pass_time(KILL_AFTER_STOP_NOW)
        self.assertTrue(one.killed)

    def test_while_it_changes(self) -> None:
        """A stop lets a change fail, and no worker has to go back."""
        one, other = self.begin()
        changed = self.change()
        one.answer()
        self.workers.stop(20.0)
        other.owner.received(SettingsChanged(2, True, "well"))
        self.assertEqual("The receiver stops.", str(self.failureResultOf(changed, ConfigError).value))
        self.assertEqual([Finish, Finish], [type(one.last), type(other.last)])
