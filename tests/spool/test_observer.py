"""The spool as an observer."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from tests.contracts.observer_contract import ObserverContract
from tests.memory_store import MemoryStore
from tests.spool.faulty_spool import Clocks, Disk, FaultySpool
from tests.spool.test_drainer import raiser
from webhookrx.errors import ConfigError, NotStored, Rejected, Unavailable
from webhookrx.filesystem import DiskSpace
from webhookrx.interfaces import IBufferingObserver, IWaitingObserver, Prepared, Wants
from webhookrx.settings import MiB
from webhookrx.spool import observer as spool_observer
from webhookrx.spool.directory import STILL_OURS
from webhookrx.spool.drainer import Drainer, DrainThread
from webhookrx.spool.observer import SpoolObserver
from webhookrx.testing import MemoryObserver, make_message


class HandThread(DrainThread):
    """A thread that a test steps by hand."""

    def __init__(self, drainer: Drainer) -> None:
        super().__init__(drainer)
        self.drainer = drainer
        self.woken = 0
        self.running = False
        self.returns = True
        self.released = False
        self.awaited: list[float] = []

    def start(self) -> None:
        """Note it."""
        self.running = True

    def wake(self) -> None:
        """Count it."""
        self.woken += 1

    def stop(self) -> None:
        """Note it."""
        self.running = False

    def wait(self, seconds: float) -> bool:
        """Tell whether it has stopped."""
        self.awaited.append(seconds)
        return self.returns

    def release(self) -> None:
        """End, if the observer lets it."""
        self.stop()
        self.released = True
        if self.returns:
            self.drainer.close()

    def come_back(self) -> None:
        """Let the observer return from its last batch."""
        self.returns = True
        if self.released:
            self.drainer.close()

    def join(self, seconds: float) -> bool:
        """Tell whether it has ended."""
        self.awaited.append(seconds)
        return self.returns

    def drain(self) -> None:
        """Step until nothing is left to do."""
        while self.drainer.step() == 0.0:
            pass


@implementer(IWaitingObserver)
class WaitingObserver(MemoryObserver):
    """Notes that it should hurry."""

    hurried = False

    def hurry(self) -> None:
        """Note it."""
        self.hurried = True


class CallObserver(MemoryObserver):
    """Notes that it has been called."""

    def __init__(self) -> None:
        super().__init__()
        self.called = threading.Semaphore(0)

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """Tell it."""
        self.called.release()
        return super().store(batch)


class SpoolCase(SynchronousTestCase):
    """A spool before an observer in memory."""

    def setUp(self) -> None:
        """Name a directory."""
        self.path = os.path.abspath(self.mktemp())
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.inner: MemoryObserver = WaitingObserver()
        self.faults = FaultySpool()
        self.disk = Disk()
        self.clocks = Clocks()
        self.threads: list[HandThread] = []
        self.real_threads: list[DrainThread] = []

    def make_thread(self, drainer: Drainer) -> HandThread:
        """Make a thread that stands still."""
        self.threads.append(HandThread(drainer))
        return self.threads[-1]

    def make_observer(self, **options: Any) -> SpoolObserver:
        """Make a spool that is not open."""
        clocks = self.clocks
        return SpoolObserver(
            "spool:x:observer=memory",
            self.path,
            self.inner,
            space=DiskSpace(self.path, 1000, self.disk.statvfs),
            file_system=self.faults,
            make_thread=self.make_thread,
            clock=clocks.monotonic,
            wall_clock=clocks.time_ns,
            jitter=lambda: 1.0,
            **options,
        )


class SpoolContractTests(SpoolCase, ObserverContract):
    """A spool is an observer."""

    def break_observer(self) -> None:
        """Let the disk be full."""
        self.disk.free = 0

    def stored_texts(self) -> list[str]:
        """Return what went through."""
        if self.threads[-1].running:
            self.threads[-1].drain()
        return [str(message.values["MESSAGE"]) for message in self.inner.messages]


class RequireTests(SpoolCase):
    """A spool that wants its messages to be durable elsewhere."""

    def test_weaker_once_open(self) -> None:
        """An observer whose promise turns out to be weaker when it is open is closed again, and so is the queue."""
        inner = self.inner = MemoryStore(promise="durable")
        spool = self.make_observer(require="durable")
        self.patch(inner, "open", lambda: setattr(inner, "promise", "written"))
        inner.is_open = True

        self.assertIn("require=durable", str(self.assertRaises(ConfigError, spool.open)))

        self.assertEqual((False, []), (inner.is_open, self.threads))
        inner.promise = "durable"
        again = self.make_observer()
        again.open()
        again.close()

    def test_durable(self) -> None:
        """One that is durable is opened."""
        self.inner = MemoryStore(promise="durable")
        spool = self.make_observer(require="durable")
        spool.open()
        self.addCleanup(spool.close)

        self.assertTrue(self.inner.is_open)


class WantsTests(SpoolCase):
    """A spool in front of an observer that wants large batches."""

    def test_wakes(self) -> None:
        """Its thread is woken once enough waits, not before; what waits at a stop stays on disk."""
        self.inner = MemoryStore(wants=Wants(3, MiB, 60.0))
        spool = self.make_observer()
        spool.open()
        (thread,) = self.threads
        thread.drain()
        for text in ("one", "two"):
            spool.store([spool.prepare(make_message(text, received=self.clocks.time_ns()))])
        self.assertEqual((0, []), (thread.woken, self.inner.messages))
        spool.store([spool.prepare(make_message("three", received=self.clocks.time_ns()))])
        self.assertEqual(1, thread.woken)
        thread.drain()
        self.assertEqual([3], self.inner.batch_sizes)
        spool.store([spool.prepare(make_message("four", received=self.clocks.time_ns()))])
        spool.hurry()
        spool.finish()
        spool.close()

        self.assertEqual([3], self.inner.batch_sizes)
        again = self.make_observer()
        again.open()
        self.addCleanup(again.close)
        self.assertEqual(1, again.backlog().messages)

    def test_counts(self) -> None:
        """What the observer counts, and what it has refused for good, is taken once."""
        inner = self.inner = MemoryStore()
        spool = self.make_observer()
        spool.open()
        self.addCleanup(spool.close)
        inner.judge = lambda message: Rejected("bad") if message.values["MESSAGE"] == "bad" else None
        spool.store([spool.prepare(make_message(text)) for text in ("good", "bad")])
        inner.counts.known(1)
        self.threads[0].drain()
        taken = spool.take_counts(), spool.take_counts()

        self.assertEqual([(1, 1), (0, 0)], [(each.refused, each.known) for each in taken])

    def test_too_large(self) -> None:
        """A wish for more than there is memory for is refused."""
        self.inner = MemoryStore(wants=Wants(None, 65 * MiB, 60.0))
        error = self.assertRaises(ConfigError, self.make_observer().check)

        self.assertIn("store:there wants batches of 65MiB", str(error))
        self.assertIn("64MiB is the most", str(error))


class SpoolTests(SpoolCase):
    """What the observer adds to its queue."""

    def store(self, spool: SpoolObserver, *texts: str) -> None:
        """Store a batch."""
        spool.store([spool.prepare(make_message(text)) for text in texts])

    def opened(self) -> SpoolObserver:
        """Open a spool that is closed after the test."""
        spool = self.make_observer()
        spool.open()
        self.addCleanup(spool.close)
        return spool

    def test_interface(self) -> None:
        """It buffers for another observer, promises durability, and encodes as all spools do."""
        spool = self.make_observer()

        self.assertTrue(verifyObject(IBufferingObserver, spool))
        self.assertEqual("durable", spool.promise)
        self.assertEqual(spool.prepare, self.make_observer().prepare)

    def test_backlog(self) -> None:
        """The backlog says what waits, and why."""
        spool = self.opened()
        self.inner.store_error = Unavailable("no answer")
        self.store(spool, "one", "two")
        self.threads[0].drain()
        backlog = spool.backlog()
        self.assertEqual((2, 0, 0, "no answer", False, 0), (backlog.messages, *backlog[3:]))
        self.assertEqual(make_message().received, backlog.oldest)
        self.disk.free = 0
        self.assertRaises(NotStored, self.store, spool, "three")

        self.assertTrue(spool.backlog().full)
        self.assertEqual(0, spool.backlog().damaged)

    def test_wakes(self) -> None:
        """The thread is woken for a message when it has nothing to do, and only then."""
        spool = self.opened()
        self.threads[0].drain()
        self.store(spool, "one")
        self.assertEqual(1, self.threads[0].woken)
        self.inner.store_error = Unavailable("no answer")
        self.threads[0].drain()
        self.store(spool, "two")
        self.assertEqual(1, self.threads[0].woken)

    def test_reopen(self) -> None:
        """The observer behind is reopened."""
        spool = self.opened()
        spool.reopen()
        self.assertEqual((0, 1), (self.inner.reopened, self.threads[0].woken))
        self.threads[0].drain()
        self.assertEqual(1, self.inner.reopened)

    def test_hurry(self) -> None:
        """After hurry it stops draining, hurries the observer behind, and still stores; messages stay for later."""
        spool = self.opened()
        spool.hurry()
        self.store(spool, "one")
        self.assertFalse(self.threads[0].running)
        self.assertTrue(getattr(self.inner, "hurried", False))
        spool.close()
        self.assertFalse(self.inner.is_open)
        self.opened()
        self.threads[1].drain()

        self.assertEqual(1, len(self.inner.messages))

    def test_hurry_fails(self) -> None:
        """An observer behind whose hurry fails is closed all the same."""
        for error in (ZeroDivisionError(), SystemExit(1)):
            spool = self.opened()
            self.patch(self.inner, "hurry", raiser(error))
            spool.hurry()
            spool.close()
            self.assertFalse(self.inner.is_open)

        self.make_observer().open()
        self.threads[-1].release()

    def test_hurry_plain(self) -> None:
        """An observer behind without hurry is not called; a closed spool ignores all calls."""
        self.inner = MemoryObserver()
        spool = self.make_observer()
        spool.hurry()
        spool.close()
        spool.open()
        spool.hurry()
        spool.close()
        spool.reopen()

    def test_does_not_come_back(self) -> None:
        """While an observer still has its batch, it and the queue stay open."""
        spool = self.opened()
        self.store(spool, "one")
        self.threads[0].returns = False
        spool.close()
        self.assertTrue(self.inner.is_open)
        for other in (spool, self.make_observer()):
            self.assertIn(STILL_OURS, str(self.assertRaises(ConfigError, other.open)))
        self.threads[0].drain()
        self.threads[0].come_back()
        self.assertFalse(self.inner.is_open)
        spool.open()

        self.assertEqual((1, 0), (len(self.inner.messages), spool.backlog().messages))

    def test_no_thread(self) -> None:
        """Without a thread left in the system opening fails, and works later."""
        spool = self.make_observer()
        self.patch(HandThread, "start", lambda thread: 1 // 0)
        self.assertRaises(ZeroDivisionError, spool.open)
        self.assertFalse(self.inner.is_open)
        self.patch(HandThread, "start", lambda thread: None)
        spool.open()
        spool.close()

    def test_full_lapses(self) -> None:
        """It is full as long as there is no room, with or without requests."""
        spool = self.opened()
        self.disk.free = 0
        self.assertRaises(NotStored, self.store, spool, "one")
        self.threads[0].drain()
        self.assertTrue(spool.backlog().full)
        self.disk.free = 1 << 40
        self.threads[0].drain()

        self.assertFalse(spool.backlog().full)

    def test_real_thread(self) -> None:
        """With a thread of its own it delivers, too."""
        spool = self.with_real_thread()
        self.inner.block()
        self.store(spool, "one")
        self.inner.release()
        spool.close()
        self.assertEqual(1, len(self.inner.messages) + spool.backlog().messages)

    def with_real_thread(self) -> SpoolObserver:
        """Open a spool with a thread of its own."""
        spool = SpoolObserver(
            "spool:x",
            self.path,
            self.inner,
            space=DiskSpace(self.path, 1000, self.disk.statvfs),
            make_thread=self.make_real_thread,
        )
        spool.open()
        self.addCleanup(spool.close)
        return spool

    def make_real_thread(self, drainer: Drainer) -> DrainThread:
        """Make a thread, and keep it."""
        self.real_threads.append(DrainThread(drainer))
        return self.real_threads[-1]

    def test_how_long(self) -> None:
        """The last batch is awaited for 5 s at the end, and for 0.2 s more when the spool closes."""
        spool = self.opened()
        spool.finish()
        spool.close()
        self.assertEqual([5.0, 0.2], self.threads[-1].awaited)

    def test_blocked(self) -> None:
        """
        An observer that blocks keeps the directory, beyond the close of the spool, until it comes back; then the spool
        can be opened again, by the same observer or another one, and nothing is lost.
        """
        self.patch(spool_observer, "LAST_STEP", 0.01)
        self.patch(spool_observer, "LAST_BATCH", 0.01)
        for finish in (True, False):
            self.inner = inner = CallObserver()
            spool = self.with_real_thread()
            inner.block()
            self.store(spool, "one")
            self.assertTrue(inner.called.acquire(timeout=10))
            self.store(spool, "two")
            if finish:
                spool.hurry()
                spool.finish()
            spool.close()
            spool.close()
            self.assertRaises(ConfigError, spool.open)
            self.inner = MemoryObserver()
            self.assertIn(STILL_OURS, str(self.assertRaises(ConfigError, self.with_real_thread)))
            inner.release()
            self.assertTrue(self.real_threads[-1].join(10))
            self.assertFalse(inner.is_open)
            spool.open()
            spool.close()
            self.assertTrue(self.real_threads[-1].join(10))
            other = self.opened()
            self.threads[-1].drain()
            other.close()
            got = [message.values["MESSAGE"] for message in (*inner.messages, *self.inner.messages)]
            self.assertEqual(["one", "two"], got)

    def test_open_to_others(self) -> None:
        """A directory that others may write to gives a warning at the start; one that the spool makes does not."""
        lines: list[str] = []

        def note(event: LogEvent) -> None:
            lines.append(formatEvent(event))

        globalLogPublisher.addObserver(note)
        self.addCleanup(globalLogPublisher.removeObserver, note)
        self.opened().close()
        self.assertEqual([], lines)
        os.chmod(self.path, 0o777)
        self.opened()

        (line,) = lines
        self.assertIn("can be written to by others than its owner (mode 0777)", line)

    def test_cannot_open(self) -> None:
        """A failed start reports its reason, and unlocks the directory."""
        first = self.opened()
        error = self.assertRaises(ConfigError, self.make_observer().open)
        self.assertIn(STILL_OURS, str(error))
        self.assertIn(repr(self.path), str(error))
        first.close()
        self.faults.fail("flock", BlockingIOError(11, "Resource temporarily unavailable"))
        error = self.assertRaises(ConfigError, self.make_observer().open)
        self.assertIn("another receiver uses it", str(error))
        self.inner.open_error = ConfigError("no such host")
        self.assertIn("no such host", str(self.assertRaises(ConfigError, self.make_observer().open)))
        self.inner.open_error = None
        self.faults.fail("connect", "SQLITE_CANTOPEN", read_only=True)
        self.assertIn("SQLITE_CANTOPEN", str(self.assertRaises(ConfigError, self.make_observer().open)))

        self.opened()
