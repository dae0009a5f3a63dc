"""From the queue to the observer."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Sequence
from typing import Any

from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import Clocks, FaultySpool, make_queue, stored
from webhookrx.errors import NotStored, Rejected, Unavailable
from webhookrx.interfaces import Prepared
from webhookrx.message.message import Message
from webhookrx.spool.drainer import DISK_PAUSE, POLL, Drainer, DrainThread
from webhookrx.spool.spool_directory import SpoolDirectory
from webhookrx.spool.spool_file import SpoolFile
from webhookrx.testing import MemoryObserver


class ReluctantObserver(MemoryObserver):
    """Does not prepare every message."""

    def prepare(self, message: Message) -> Message:
        """Prepare a message that is not odd."""
        if message.values["MESSAGE"] == "odd":
            raise UnicodeError("too odd")
        return super().prepare(message)


class DrainerCase(SynchronousTestCase):
    """A queue on disk, and an observer in memory."""

    def setUp(self) -> None:
        """Open a queue."""
        self.path = os.path.abspath(self.mktemp())
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.faults = FaultySpool()
        self.clocks = Clocks()
        self.queue = make_queue(self.path, self.faults)
        self.queue.open()
        self.addCleanup(self.queue.close)
        self.inner = ReluctantObserver()
        self.drainer = Drainer(self.queue, self.inner, lambda: 1.0, self.clocks.monotonic, self.clocks.time_ns)
        self.lines: list[str] = []
        globalLogPublisher.addObserver(self.note)
        self.addCleanup(globalLogPublisher.removeObserver, self.note)

    def note(self, event: Any) -> None:
        """Keep a log line."""
        self.lines.append(formatEvent(event))

    def append(self, *texts: str) -> None:
        """Let messages wait."""
        self.queue.append(stored(*texts))

    def step(self) -> float:
        """Do one batch, whatever the pause before it."""
        self.clocks.now += 1000.0
        return self.drainer.step()

    def delivered(self) -> list[object]:
        """Return the texts of what the observer has."""
        return [message.values["MESSAGE"] for message in self.inner.messages]

    def dead(self) -> list[tuple[str, str]]:
        """Return text and reason of each dead letter."""
        file = SpoolFile(SpoolDirectory(self.path), 1, writable=False)
        try:
            return [(letter.data[-8:].decode(errors="replace"), letter.reason) for letter in file.read_dead(0, 100)]
        finally:
            file.close()


class DrainTests(DrainerCase):
    """What becomes of a batch."""

    def test_delivers(self) -> None:
        """What waits is delivered in order and removed; with nothing left it looks again after a second."""
        self.append("one", "two")
        self.append("three")

        self.assertEqual(0.0, self.step())
        self.assertFalse(self.drainer.is_idle)
        self.assertEqual(POLL, self.step())
        self.assertTrue(self.drainer.is_idle)
        self.assertEqual(["one", "two", "three"], self.delivered())
        self.assertEqual(0, self.queue.standing().messages)

    def test_away(self) -> None:
        """While the observer is away the same batch is offered after longer and longer pauses."""
        self.append("one", "two")
        self.inner.store_error = Unavailable("no answer")
        pauses = [self.step()]
        self.append("three")
        pauses += [self.step() for _ in range(9)]
        self.assertEqual([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0], pauses)
        self.assertEqual([2] * 10, self.inner.batch_sizes)
        self.assertEqual("no answer", self.drainer.away)
        self.inner.store_error = None
        self.step()
        self.assertEqual(["one", "two"], self.delivered())
        self.assertIsNone(self.drainer.away)
        self.step()
        self.assertEqual(["one", "two", "three"], self.delivered())

    def test_pause_is_kept(self) -> None:
        """Nothing is offered before a pause is over, however often it is woken."""
        self.append("one")
        self.inner.store_error = Unavailable("no answer", retry_after=10.0)
        self.assertEqual(10.0, self.step())
        self.clocks.now += 4.0
        self.assertEqual(6.0, self.drainer.step())
        self.assertEqual([1], self.inner.batch_sizes)
        self.clocks.now += 6.0
        self.drainer.step()
        self.assertEqual([1, 1], self.inner.batch_sizes)

    def test_any_exception(self) -> None:
        """Whatever the observer raises, the batch waits."""
        self.append("one")
        for error in (ValueError("broken"), OSError(28, "No space left on device"), SystemExit(1), NotStored("no")):
            self.inner.store_error = error
            self.assertGreater(self.step(), 0.0)
        self.assertEqual(1, self.queue.standing().messages)

    def test_some_fail(self) -> None:
        """Those that are stored are removed; the others stay at the head, and the pauses begin anew."""
        self.append("one", "two", "three")
        self.inner.store_error = Unavailable("away")
        for _ in range(5):
            self.step()
        self.inner.store_error = None
        self.inner.judge = lambda message: NotStored("later") if message.values["MESSAGE"] == "two" else None
        self.assertEqual(0.1, self.step())
        self.assertEqual(0.2, self.step())
        self.assertEqual(["one", "three"], self.delivered())
        self.append("four")
        self.inner.judge = lambda message: None
        self.step()
        self.step()

        self.assertEqual(["one", "three", "two", "four"], self.delivered())

    def test_rejected(self) -> None:
        """What the observer refuses for good is a dead letter with its reason; the others are not held up."""
        self.append("one", "two", "three")
        self.inner.judge = lambda message: Rejected("HTTP 422") if message.values["MESSAGE"] == "two" else None
        self.assertEqual(0.0, self.step())

        self.assertEqual(["one", "three"], self.delivered())
        ((_, reason),) = self.dead()
        self.assertEqual("HTTP 422", reason)
        self.assertEqual((0, 1), (self.queue.standing().messages, self.queue.standing().dead))

    def test_all_rejected(self) -> None:
        """The same holds for a whole batch; a refusal without words gets the name of its kind."""
        self.append("one", "two")
        self.inner.store_error = Rejected()
        self.assertEqual(0.0, self.step())

        self.assertEqual(["Rejected", "Rejected"], [reason for _, reason in self.dead()])

    def test_cannot_be_prepared(self) -> None:
        """A message that the observer can't encode is a dead letter."""
        self.append("odd", "one")
        self.step()

        self.assertEqual(["one"], self.delivered())
        self.assertEqual(["it can't be encoded: too odd"], [reason for _, reason in self.dead()])

    def test_damaged(self) -> None:
        """A message whose bytes are not those that were written, or no message, is a dead letter."""
        self.queue.append([b"\x01\x00\x00\x00\x00\x00\x00\x00\x01no", *stored("one", "two")])
        other = sqlite3.connect(os.path.join(self.path, "00000001.sqlite"))
        other.execute("UPDATE waiting SET crc = crc + 1 WHERE id = 2")
        other.commit()
        other.close()
        self.step()

        self.assertEqual(["two"], self.delivered())
        first, second = (reason for _, reason in self.dead())
        self.assertIn("not a stored message", first)
        self.assertIn("checksum", second)

    def test_only_dead(self) -> None:
        """A batch of dead letters alone never reaches the observer."""
        self.append("odd")
        self.assertEqual(0.0, self.step())

        self.assertEqual([], self.inner.batch_sizes)

    def test_wrong_count(self) -> None:
        """An observer that returns too few outcomes has said nothing about any."""
        self.append("one", "two")
        store = self.inner.store

        def too_few(batch: Sequence[Prepared]) -> list[Exception | None]:
            store(batch)
            return [None]

        self.inner.store = too_few  # type: ignore[method-assign, assignment]
        self.assertGreater(self.step(), 0.0)

        self.assertEqual(2, self.queue.standing().messages)
        self.assertIn("1 entries for 2", str(self.drainer.away))

    def test_put_back(self) -> None:
        """A message that somebody else puts into the queue is found without being woken."""
        self.assertEqual(POLL, self.step())
        other = SpoolFile(SpoolDirectory(self.path), 1, writable=True)
        with other.transaction(durable=True) as transaction:
            transaction.append(stored("again"))
        other.close()
        self.step()

        self.assertEqual(["again"], self.delivered())

    def test_reopen(self) -> None:
        """The observer is opened anew between two batches; one that can't be goes on as it is."""
        self.drainer.reopen()
        self.step()
        self.step()
        self.assertEqual(1, self.inner.reopened)
        self.inner.reopen_error = OSError(2, "No such file or directory")
        self.drainer.reopen()
        self.append("one")
        self.step()

        self.assertEqual(["one"], self.delivered())
        self.assertTrue(any("could not reopen" in line for line in self.lines))

    def test_queue_fails(self) -> None:
        """A queue that can't be read is tried again soon, and told of now and then."""
        self.append("one")
        self.faults.fail("SELECT id, crc", "SQLITE_BUSY", times=3, read_only=True)
        pauses = []
        for _ in range(3):
            self.clocks.now += 1.0
            pauses.append(self.drainer.step())
        self.assertEqual([DISK_PAUSE] * 3, pauses)
        self.assertEqual(1, sum("SQLITE_BUSY" in line for line in self.lines))
        self.step()

        self.assertEqual(["one"], self.delivered())

    def test_settling_fails(self) -> None:
        """What could not be noted is noted before anything else is offered, and is not delivered twice."""
        self.append("one")
        self.step()
        self.append("two")
        self.faults.fail("DELETE", "SQLITE_FULL", times=2)
        self.assertEqual(DISK_PAUSE, self.step())
        self.append("three")
        self.assertEqual(DISK_PAUSE, self.step())
        self.step()

        self.assertEqual(["one", "two", "three"], self.delivered())

    def test_log(self) -> None:
        """One line says that it is away, one that it is back; who goes and comes all the time gets few."""
        self.append("one")
        for _ in range(20):
            self.inner.store_error = Unavailable("no answer")
            for _ in range(3):
                self.clocks.now += 1.0
                self.drainer._not_before = 0.0
                self.drainer.step()
            self.inner.store_error = None
            self.drainer._not_before = 0.0
            self.drainer.step()
            self.append("more")
        away = [line for line in self.lines if "does not take messages: no answer; 1 wait" in line]
        back = [line for line in self.lines if "takes messages again" in line]

        self.assertEqual(len(away), len(back))
        self.assertLess(len(away), 7)
        self.assertGreater(len(away), 2)


class StepDrainer:
    """Steps that a test waits for."""

    def __init__(self, pause: float) -> None:
        self.stepped = threading.Semaphore(0)
        self.pause = pause
        self.error: Exception | None = None

    def step(self) -> float:
        """Note it."""
        self.stepped.release()
        if self.error is not None:
            raise self.error
        return self.pause


class DrainThreadTests(SynchronousTestCase):
    """The thread. Nothing here waits for time to pass: pauses are an hour, or nothing."""

    def start(self, drainer: StepDrainer) -> DrainThread:
        """Start a thread that ends with the test."""
        thread = DrainThread(drainer)  # type: ignore[arg-type]
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(thread.stop)
        return thread

    def test_wake(self) -> None:
        """It steps at once, then after its pause, or when it is woken; stopped, it ends."""
        drainer = StepDrainer(3600.0)
        thread = self.start(drainer)
        self.assertTrue(drainer.stepped.acquire(timeout=10))
        thread.wake()
        self.assertTrue(drainer.stepped.acquire(timeout=10))
        thread.stop()
        self.assertTrue(thread.join(10))

    def test_no_pause(self) -> None:
        """Without a pause it steps again at once."""
        drainer = StepDrainer(0.0)
        self.start(drainer)
        for _ in range(10):
            self.assertTrue(drainer.stepped.acquire(timeout=10))

    def test_bug(self) -> None:
        """What should never be raised is logged, and does not end it."""
        drainer = StepDrainer(3600.0)
        drainer.error = ZeroDivisionError()
        thread = self.start(drainer)
        self.assertTrue(drainer.stepped.acquire(timeout=10))
        thread.wake()
        self.assertTrue(drainer.stepped.acquire(timeout=10))
        thread.stop()
        self.assertTrue(thread.join(10))

        self.assertGreaterEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
