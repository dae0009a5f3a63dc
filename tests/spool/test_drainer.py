"""From the queue to the observer."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import Clocks, FaultySpool, make_queue, stored
from webhookrx.errors import NotStored, Rejected, Unavailable
from webhookrx.interfaces import Prepared, Wants
from webhookrx.message.message import Message
from webhookrx.settings import MiB
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.drainer import DISK_PAUSE, POLL, Drainer, DrainThread
from webhookrx.spool.quota import Quota
from webhookrx.spool.rows import ROW_OVERHEAD, DeadLetter
from webhookrx.testing import MemoryObserver


class ReluctantObserver(MemoryObserver):
    """Does not prepare every message."""

    def prepare(self, message: Message) -> Message:
        """Prepare a message that is not odd."""
        if message.values["MESSAGE"] == "odd":
            raise UnicodeError("too odd")
        return super().prepare(message)


class BrokenError(Exception):
    """Can't be told."""

    def __str__(self) -> str:
        """Fail."""
        raise ZeroDivisionError


class BrokenRefusal(Rejected):
    """Can't be told either."""

    __str__ = BrokenError.__str__


class ExitingError(Exception):
    """An error whose text ends the process that asks for it."""

    def __str__(self) -> str:
        """Exit."""
        raise SystemExit(1)


def raiser(error: BaseException) -> Callable[..., Any]:
    """Return what raises."""

    def fail(*_: object) -> None:
        raise error

    return fail


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
        self.drainer = self.make_drainer()
        self.lines: list[str] = []
        globalLogPublisher.addObserver(self.note)
        self.addCleanup(globalLogPublisher.removeObserver, self.note)

    def make_drainer(self) -> Drainer:
        """Make a drainer of the queue and the observer."""
        return Drainer(self.queue, self.inner, self.path, lambda: 1.0, self.clocks.monotonic, self.clocks.time_ns)

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
        """Return the texts that the observer has stored."""
        return [message.values["MESSAGE"] for message in self.inner.messages]

    def dead(self) -> list[tuple[str, str]]:
        """Return text and reason of each dead letter."""
        file = SpoolFile(SpoolDirectory(self.path), 1, writable=False)
        try:
            return [(letter.data[-8:].decode(errors="replace"), letter.reason) for letter in file.read_dead(0, 100)]
        finally:
            file.close()


class GatherTests(DrainerCase):
    """An observer that wants large batches."""

    def setUp(self) -> None:
        """Want as many as one can't deliver at once."""
        super().setUp()
        self.reopen_queue()

    def reopen_queue(self) -> None:
        """Close the queue, if it is open, and go on as a new process does."""
        self.queue.close()
        self.queue = make_queue(self.path, self.faults, clocks=self.clocks, wants=Wants(5000, 64 * MiB, 300.0))
        self.queue.open()
        self.addCleanup(self.queue.close)
        self.drainer = self.make_drainer()

    def append_now(self, *texts: str) -> None:
        """Let messages wait that came just now."""
        self.queue.append(stored(*texts, received=self.clocks.time_ns()))

    def test_gathers(self) -> None:
        """Messages wait until enough have come; those beyond wait for the next batch."""
        self.append_now(*map(str, range(4999)))
        self.assertEqual(POLL, self.drainer.step())
        self.assertEqual([], self.inner.batch_sizes)
        self.append_now("4999", "5000")
        self.assertEqual(0.0, self.drainer.step())
        self.assertEqual(POLL, self.drainer.step())

        self.assertEqual([5000], self.inner.batch_sizes)
        self.assertEqual([str(number) for number in range(5000)], self.delivered())
        self.assertEqual(1, self.queue.status().messages)

    def test_time(self) -> None:
        """They wait no longer than their time; the last pause ends with it."""
        self.append_now("one")
        self.drainer.step()
        self.clocks.now += 200.0
        self.append_now("two")
        self.assertEqual(POLL, self.drainer.step())
        self.clocks.now += 99.75
        self.assertAlmostEqual(0.25, self.drainer.step())
        self.clocks.now += 0.25
        self.assertEqual(0.0, self.drainer.step())

        self.assertEqual(["one", "two"], self.delivered())

    def test_same_batch(self) -> None:
        """A large batch that is not taken is offered again as it was, after a restart too, and without gathering."""
        self.append_now(*map(str, range(5000)))
        self.inner.store_error = Unavailable("away")
        self.drainer.step()
        self.append_now("later")
        self.reopen_queue()
        self.drainer.step()
        self.inner.store_error = None
        self.step()

        self.assertEqual([5000] * 3, self.inner.batch_sizes)
        self.assertEqual(1, self.queue.status().messages)

    def test_half_stored(self) -> None:
        """What is left of a batch is offered again, without gathering."""
        self.append_now(*map(str, range(5000)))
        self.inner.judge = lambda message: Unavailable("later") if int(str(message.values["MESSAGE"])) % 2 else None
        self.drainer.step()
        self.inner.judge = lambda message: None
        self.clocks.now += 1.0
        self.drainer.step()

        self.assertEqual([5000, 2500], self.inner.batch_sizes)
        self.assertEqual(0, self.queue.status().messages)

    def test_removed_in_pieces(self) -> None:
        """It is removed a piece at a time, and what can't be removed is not delivered again."""
        self.append_now(*map(str, range(5000)))
        ack, acked = self.queue.ack, list[int]()

        def failing(done: Sequence[int], dead: Sequence[DeadLetter] = ()) -> None:
            acked.append(len(done) + len(dead))
            if len(acked) == 3:
                raise sqlite3.OperationalError("disk I/O error")
            ack(done, dead)

        self.patch(self.queue, "ack", failing)
        self.inner.judge = lambda message: Rejected("bad") if message.values["MESSAGE"] == "3500" else None
        self.assertEqual(DISK_PAUSE, self.drainer.step())
        self.assertEqual(3000, self.queue.status().messages)
        self.step()

        self.assertEqual([1000] * 6, acked)
        self.assertEqual(([5000], 0), (self.inner.batch_sizes, self.queue.status().messages))
        self.assertEqual(1, self.queue.status().dead)

    def test_failed_file(self) -> None:
        """A batch of a file that has failed meanwhile is removed as it was offered."""
        self.append_now(*map(str, range(5000)))
        self.inner.store_error = Unavailable("away")
        self.drainer.step()
        with self.queue._files.lock:
            newest = self.queue._files.newest
            assert newest is not None
            self.queue._files.retire(newest, "it failed")
        self.append_now("later")
        self.inner.store_error = None
        self.step()

        self.assertEqual([5000, 5000], self.inner.batch_sizes)
        self.assertEqual(1, self.queue.status().messages)
        self.step()
        self.step()
        self.assertEqual(5001, len(self.delivered()))


class DrainTests(DrainerCase):
    """The fate of a batch."""

    def test_delivers(self) -> None:
        """Messages are delivered in order and removed; an empty queue is read again after a second."""
        self.append("one", "two")
        self.append("three")

        self.assertEqual(0.0, self.step())
        self.assertFalse(self.drainer.is_idle)
        self.assertEqual(POLL, self.step())
        self.assertTrue(self.drainer.is_idle)
        self.assertEqual(["one", "two", "three"], self.delivered())
        self.assertEqual(0, self.queue.status().messages)

    def test_away(self) -> None:
        """While the observer is away the same batch is offered with backoff."""
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
        self.assertEqual(POLL, self.drainer.step())
        self.clocks.now += 5.5
        self.assertEqual(0.5, self.drainer.step())
        self.assertEqual([1], self.inner.batch_sizes)
        self.clocks.now += 0.5
        self.drainer.step()
        self.assertEqual([1, 1], self.inner.batch_sizes)

    def test_pause_and_failure(self) -> None:
        """A spool that fails meanwhile does not shorten a pause that the observer asked for."""
        self.append("one")
        self.inner.store_error = Unavailable("no answer", retry_after=10.0)
        self.step()
        self.clocks.now += 1.0
        failing = self.patch(self.queue, "refresh", raiser(OSError("broken")))
        self.assertEqual(DISK_PAUSE, self.drainer.step())
        failing.restore()
        self.clocks.now += 8.5
        self.assertEqual(0.5, self.drainer.step())
        self.assertEqual([1], self.inner.batch_sizes)

    def test_any_exception(self) -> None:
        """Whatever the observer raises, the batch waits."""
        self.append("one")
        for error in (ValueError("broken"), OSError(28, "No space left on device"), SystemExit(1), NotStored("no")):
            self.inner.store_error = error
            self.assertGreater(self.step(), 0.0)
        self.assertEqual(1, self.queue.status().messages)

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
        """
        A message that the observer refuses for good leaves the queue as a dead letter with its reason, and is not gone
        (U{https://github.com/vectordotdev/vector/issues/12145}); the others go on.
        """
        self.append("one", "two", "three")
        self.inner.judge = lambda message: Rejected("HTTP 422") if message.values["MESSAGE"] == "two" else None
        self.assertEqual(0.0, self.step())

        self.assertEqual(["one", "three"], self.delivered())
        ((_, reason),) = self.dead()
        self.assertEqual("HTTP 422", reason)
        self.assertEqual((0, 1), (self.queue.status().messages, self.queue.status().dead))

    def test_all_rejected(self) -> None:
        """The same holds for a whole batch; a refusal without text gets the name of its class."""
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
        """Damaged data, or data that is no message, becomes a dead letter."""
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
        """Too few outcomes mean that no message is stored."""
        self.append("one", "two")
        store = self.inner.store

        def too_few(batch: Sequence[Prepared]) -> list[Exception | None]:
            store(batch)
            return [None]

        self.inner.store = too_few  # type: ignore[method-assign, assignment]
        self.assertGreater(self.step(), 0.0)

        self.assertEqual(2, self.queue.status().messages)
        self.assertIn("1 entries for 2", str(self.drainer.away))

    def test_broken_word(self) -> None:
        """Malformed outcomes mean that no message is stored; they are not logged as a bug of ours."""
        self.append("one", "two")
        for returned, text in (
            (True, "store() returned bool, not None or a list"),
            (7, "store() returned int"),
            (iter([None]), "1 entries for 2 messages"),
            (count(), "more entries than messages, for 2"),
            (["no", "later"], "no"),
            ([BrokenError(), BrokenError()], "BrokenError"),
        ):
            self.inner.store = lambda batch, returned=returned: returned  # type: ignore[assignment, method-assign, misc]
            self.assertGreater(self.step(), 0.0)
            self.assertIn(text, str(self.drainer.away))
        self.assertEqual(2, self.queue.status().messages)
        self.inner.store = lambda batch: iter([None, None])  # type: ignore[assignment, method-assign]
        self.assertEqual(0.0, self.step())

        self.assertIsNone(self.drainer.away)
        self.assertEqual(0, self.queue.status().messages)
        self.assertEqual([], [line for line in self.lines if "failed" in line])

    def test_odd_errors(self) -> None:
        """Odd errors of the observer are handled as any other."""
        self.append("one", "two")
        odd = OSError("away")
        odd.retry_after = "soon"  # type: ignore[attr-defined]
        self.inner.judge = lambda message: odd if message.values["MESSAGE"] == "one" else BrokenRefusal()
        self.assertEqual(0.1, self.step())

        self.assertEqual("away", self.drainer.away)
        self.assertEqual(["BrokenRefusal"], [reason for _, reason in self.dead()])

    def test_bug(self) -> None:
        """An unexpected exception becomes the reason, is logged now and then, and does not end the drainer."""
        self.append("one")
        for error in (ZeroDivisionError(), SystemExit(1)):
            self.patch(self.queue, "next_batch", raiser(error))
            for _ in range(5):
                self.clocks.now += 1.0
                self.assertEqual(DISK_PAUSE, self.drainer.step())
            self.assertIn(type(error).__name__ if not str(error) else str(error), str(self.drainer.away))
            self.assertEqual(1, len(self.flushLoggedErrors(type(error))))
            self.clocks.now += 10
        del self.queue.next_batch  # type: ignore[method-assign]
        self.step()

        self.assertIsNone(self.drainer.away)
        self.assertEqual(["one"], self.delivered())

    def test_close(self) -> None:
        """It closes the observer and the queue, even if the observer raises."""
        self.inner.close = raiser(ValueError("stuck"))  # type: ignore[method-assign]
        self.drainer.close()

        self.assertTrue(any("could not close: stuck" in line for line in self.lines))
        other = make_queue(self.path)
        other.open()
        other.close()

    def test_room_while_away(self) -> None:
        """While the observer is away, the end of the state C{full} is still noticed."""
        self.fill()
        self.inner.store_error = Unavailable("no answer", retry_after=100.0)
        self.drainer.step()
        self.assertRaises(NotStored, self.queue.append, stored("two"))
        self.drainer.step()
        self.assertTrue(self.queue.status().full)
        other = SpoolFile(SpoolDirectory(self.path), 1, writable=True)
        with other.transaction(durable=True) as transaction:
            transaction.remove([1])
        other.close()
        self.drainer.step()

        self.assertFalse(self.queue.status().full)
        self.assertEqual([1], self.inner.batch_sizes)

    def fill(self) -> None:
        """Let a message wait in a queue that has room for no other."""
        self.queue.close()
        (one,) = stored("one")
        self.queue = make_queue(self.path, self.faults, Quota(len(one) + ROW_OVERHEAD))
        self.queue.open()
        self.addCleanup(self.queue.close)
        self.queue.append([one])
        self.drainer = self.make_drainer()

    def test_put_back(self) -> None:
        """A message that a command puts into the queue is found without a wake-up."""
        self.assertEqual(POLL, self.step())
        other = SpoolFile(SpoolDirectory(self.path), 1, writable=True)
        with other.transaction(durable=True) as transaction:
            transaction.append(stored("again"))
        other.close()
        self.step()

        self.assertEqual(["again"], self.delivered())

    def test_vacuums_by_turns(self) -> None:
        """
        The pause between two turns of the vacuum is as long as the first one took, whatever wakes the drainer; messages
        that arrive meanwhile do not wait for it.
        """
        turns: list[float] = []

        def vacuum() -> bool:
            turns.append(self.clocks.now)
            self.clocks.now += 0.25
            return len(turns) < 3

        self.patch(self.queue, "vacuum", vacuum)
        self.assertEqual(0.25, self.drainer.step())
        self.clocks.now += 0.125
        self.append("one")
        self.assertEqual(0.0, self.drainer.step())
        self.assertEqual(["one"], self.delivered())
        self.assertEqual((0.125, 1), (self.drainer.step(), len(turns)))
        self.clocks.now += 0.125
        self.assertEqual((0.25, 2), (self.drainer.step(), len(turns)))
        self.clocks.now += 0.25
        self.assertEqual((POLL, 3), (self.drainer.step(), len(turns)))

    def test_reopen(self) -> None:
        """The observer is reopened between two batches; a failure of that is logged."""
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
        """A queue that can't be read is retried soon, and logged now and then."""
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

    def test_ack_fails(self) -> None:
        """A removal that failed is retried before the next batch, so nothing is delivered twice."""
        self.append("one")
        self.step()
        self.append("two")
        self.faults.fail("DELETE", "SQLITE_BUSY", times=2)
        self.assertEqual(DISK_PAUSE, self.step())
        self.append("three")
        self.assertEqual(DISK_PAUSE, self.step())
        self.step()

        self.assertEqual(["one", "two", "three"], self.delivered())

    def test_log(self) -> None:
        """The log lines for away, back and dead letters, each with the backlog at that moment."""
        self.append("one")
        self.inner.store_error = Unavailable("no answer")
        self.step()
        self.inner.store_error = None
        self.inner.judge = lambda message: Rejected("HTTP 422")
        self.clocks.now += 1.0
        self.drainer.step()

        away, dead, back = self.lines
        self.assertIn("does not take messages: no answer; 1 wait in the spool", away)
        self.assertIn("1 message was rejected permanently by memory: HTTP 422", dead)
        self.assertIn("takes messages again; 0 wait in the spool", back)

    def test_log_of_dead_letters(self) -> None:
        """A dead letter is logged once it is saved, and only once."""
        self.append("odd")
        self.faults.fail("INSERT OR IGNORE INTO dead", "SQLITE_BUSY", times=2)
        self.step()
        self.step()
        self.assertEqual([], [line for line in self.lines if "rejected" in line])
        self.step()
        self.step()

        (line,) = (line for line in self.lines if "rejected" in line)
        self.assertIn("1 message was rejected permanently by memory: it can't be encoded; see", line)

    def test_base_exceptions(self) -> None:
        """Whatever an observer raises, in any method and with any text, the next step goes on."""

        def outcomes(error: BaseException) -> Iterator[None]:
            raise error
            yield None

        for kind in (SystemExit, GeneratorExit, KeyboardInterrupt, ExitingError):
            error = kind()
            self.inner.store = lambda batch, error=error: outcomes(error)  # type: ignore[assignment, method-assign, misc]
            self.append("one")
            self.assertGreater(self.step(), 0.0)
            self.assertIn("store() returned generator", str(self.drainer.away))
            self.inner.store = raiser(error)  # type: ignore[method-assign]
            self.assertGreater(self.step(), 0.0)
            self.assertEqual(kind.__name__, self.drainer.away)
            del self.inner.store  # type: ignore[method-assign]
            self.inner.reopen = raiser(error)  # type: ignore[method-assign]
            self.drainer.reopen()
            self.assertEqual(0.0, self.step())
            self.inner.prepare = raiser(error)  # type: ignore[method-assign]
            self.append("two")
            self.assertEqual(0.0, self.step())
            self.assertEqual(f"it can't be encoded: {kind.__name__}", self.dead()[-1][1])
            del self.inner.prepare  # type: ignore[method-assign]
        self.inner.close = raiser(ExitingError())  # type: ignore[method-assign]
        self.drainer.close()

        self.assertEqual(["one"] * 4, self.delivered())
        self.assertEqual([], self.flushLoggedErrors())

    def test_short_of_memory(self) -> None:
        """A MemoryError during encoding says nothing about the message: it waits."""
        self.append("one")
        self.inner.prepare = raiser(MemoryError())  # type: ignore[method-assign]
        self.assertEqual(DISK_PAUSE, self.step())
        self.assertEqual(1, len(self.flushLoggedErrors(MemoryError)))
        del self.inner.prepare  # type: ignore[method-assign]
        self.step()

        self.assertEqual(["one"], self.delivered())


class StepDrainer:
    """Steps that a test waits for."""

    def __init__(self, pause: float) -> None:
        self.stepped = threading.Semaphore(0)
        self.pause = pause
        self.closed = threading.Event()

    def step(self) -> float:
        """Note it."""
        self.stepped.release()
        return self.pause

    def close(self) -> None:
        """Note it."""
        self.closed.set()


class DrainThreadTests(SynchronousTestCase):
    """The thread. Nothing here waits for time to pass: pauses are an hour, or nothing."""

    def start(self, drainer: StepDrainer) -> DrainThread:
        """Start a thread that ends with the test."""
        thread = DrainThread(drainer)  # type: ignore[arg-type]
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(thread.release)
        return thread

    def test_wake(self) -> None:
        """It steps at once, then after its pause or when woken; after stop it steps no more."""
        drainer = StepDrainer(3600.0)
        thread = self.start(drainer)
        self.assertTrue(drainer.stepped.acquire(timeout=10))
        thread.wake()
        self.assertTrue(drainer.stepped.acquire(timeout=10))
        self.assertFalse(thread.wait(0))
        thread.stop()
        thread.stop()
        self.assertTrue(thread.wait(10))
        thread.wake()
        self.assertFalse(drainer.stepped.acquire(blocking=False))

    def test_release(self) -> None:
        """After stop it closes nothing, as messages may still be appended; after release it closes all and ends."""
        drainer = StepDrainer(3600.0)
        thread = self.start(drainer)
        thread.stop()
        self.assertTrue(thread.wait(10))
        self.assertFalse(drainer.closed.is_set())
        self.assertFalse(thread.join(0))
        thread.release()
        self.assertTrue(thread.join(10))
        self.assertTrue(drainer.closed.is_set())

    def test_no_pause(self) -> None:
        """Without a pause it steps again at once."""
        drainer = StepDrainer(0.0)
        self.start(drainer)
        for _ in range(10):
            self.assertTrue(drainer.stepped.acquire(timeout=10))

    def test_step_fails(self) -> None:
        """The thread goes on even after a step that raises."""

        class RaisingDrainer(StepDrainer):
            def step(self) -> float:
                super().step()
                raise SystemExit(1)

        drainer = RaisingDrainer(0.0)
        thread = self.start(drainer)
        for _ in range(3):
            self.assertTrue(drainer.stepped.acquire(timeout=10))
            thread.wake()
        thread.release()
        self.assertTrue(thread.join(10))
