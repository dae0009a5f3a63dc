"""The spools of workers, and of their predecessors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from unittest import mock

from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.contracts.observer_contract import ObserverContract
from tests.memory_store import MemoryStore
from tests.spool.faulty_spool import Clocks, Disk, FaultySpool, make_queue, stored
from tests.spool.test_observer import HandThread, WaitingObserver
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.filesystem import DiskSpace
from webhookrx.interfaces import IBufferingObserver
from webhookrx.settings import ALONE, Group, Observer
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.drainer import Drainer
from webhookrx.spool.observer import LAST_BATCH, SpoolObserver
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.rows import DeadLetter
from webhookrx.spool.workers import WorkerSpool, build_spool, directory_of, left_to, remove_if_empty
from webhookrx.testing import RECEIVED, MemoryObserver, make_message


class WorkerCase(SynchronousTestCase):
    """Makes the spools of workers, in front of observers in memory."""

    def setUp(self) -> None:
        """Name a directory."""
        self.path = os.path.abspath(self.mktemp())
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.faults = FaultySpool()
        self.disk = Disk()
        self.clocks = Clocks()
        self.inners: list[WaitingObserver] = []
        self.threads: list[HandThread] = []
        self.make_inner: Callable[[], WaitingObserver] = WaitingObserver
        self.logged: list[str] = []
        globalLogPublisher.addObserver(self.note)
        self.addCleanup(globalLogPublisher.removeObserver, self.note)

    def note(self, event: LogEvent) -> None:
        """Keep what is logged."""
        self.logged.append(formatEvent(event))

    def make_thread(self, drainer: Drainer) -> HandThread:
        """Make a thread that stands still."""
        self.threads.append(HandThread(drainer))
        return self.threads[-1]

    def make_spool(self, directory: str, within: str | None = None) -> SpoolObserver:
        """Make the spool of one directory."""
        self.inners.append(self.make_inner())
        return SpoolObserver(
            "spool:x:observer=memory",
            directory,
            self.inners[-1],
            within=within,
            space=DiskSpace(self.path, 1000, self.disk.statvfs),
            file_system=self.faults,
            make_thread=self.make_thread,
            clock=self.clocks.monotonic,
            wall_clock=self.clocks.time_ns,
            jitter=lambda: 1.0,
        )

    def make_group_spool(self, group: Group = ALONE) -> WorkerSpool:
        """Make the spool of a worker."""
        own = self.make_spool(directory_of(self.path, group.number), self.path if group.number else None)
        left = partial(left_to, self.path, group)
        return WorkerSpool(own, left, partial(self.make_spool, within=self.path), self.clocks.monotonic)

    def opened(self, number: int = 0, size: int = 1) -> WorkerSpool:
        """Open the spool of a worker."""
        self.inners.clear()
        self.threads.clear()
        spool = self.make_group_spool(Group(number, size))
        spool.open()
        self.addCleanup(spool.close)
        return spool

    def store(self, spool: WorkerSpool, *texts: str) -> None:
        """Store a batch."""
        spool.store([spool.prepare(make_message(text)) for text in texts])

    def drained(self) -> list[str]:
        """Drain all spools of the last opened worker, and return what their observers stored."""
        for thread in self.threads:
            thread.drain()
        return [str(message.values["MESSAGE"]) for inner in self.inners for message in inner.messages]

    def worker_directories(self) -> list[str]:
        """Return the names besides those of the first worker's files."""
        return sorted(name for name in os.listdir(self.path) if name.startswith("worker"))


class WorkerSpoolContractTests(WorkerCase, ObserverContract):
    """It is an observer."""

    def make_observer(self) -> WorkerSpool:
        """Make the spool of the second of two workers."""
        return self.make_group_spool(Group(1, 2))

    def break_observer(self) -> None:
        """Let the disk be full."""
        self.disk.free = 0

    def stored_texts(self) -> list[str]:
        """Return what went through."""
        if self.threads[-1].running:
            self.threads[-1].drain()
        return [str(message.values["MESSAGE"]) for inner in self.inners for message in inner.messages]


class WorkerSpoolTests(WorkerCase):
    """Messages after a change of the number of workers."""

    def leave(self, size: int, *numbers: int) -> None:
        """Let each of some workers store a message that stays."""
        for number in numbers:
            spool = self.opened(number, size)
            self.store(spool, f"of {number}")
            spool.close()

    def test_interface(self) -> None:
        """It buffers for another observer, promises durability, and encodes as all spools do."""
        first, second = self.make_group_spool(), self.make_group_spool()

        self.assertTrue(verifyObject(IBufferingObserver, first))
        self.assertEqual(("durable", "spool:x:observer=memory"), (first.promise, first.spec))
        self.assertEqual(first.prepare, second.prepare)

    def test_apart(self) -> None:
        """The first worker has the directory itself, each other one has its own inside it, in any order of starts."""
        second = self.opened(1, 2)
        self.opened(0, 2)
        self.store(second, "one")

        self.assertEqual(["worker-1"], self.worker_directories())
        self.assertEqual([], self.drained())
        self.assertEqual(0o700, os.stat(os.path.join(self.path, "worker-1")).st_mode & 0o777)

    def test_to_one(self) -> None:
        """A single process delivers the messages of all workers, and removes their directories when it stops."""
        self.leave(3, 0, 1, 2)
        spool = self.opened()
        self.assertEqual((3, make_message().received), (spool.backlog().messages, spool.backlog().oldest))
        self.store(spool, "new")
        self.assertEqual(["of 0", "new", "of 1", "of 2"], self.drained())
        self.assertEqual(0, spool.backlog().messages)
        spool.close()

        self.assertEqual([], self.worker_directories())
        self.assertIn("is drained: 1 wait in it", "\n".join(self.logged))

    def test_to_fewer(self) -> None:
        """Each worker of a smaller group drains its share of the directories that are left, and no others."""
        self.leave(5, 0, 1, 2, 3, 4)
        self.opened(0, 2)
        self.assertEqual(["of 0", "of 2", "of 4"], self.drained())
        self.opened(1, 2)
        self.assertEqual(["of 1", "of 3"], self.drained())

    def test_to_more(self) -> None:
        """A worker finds the messages of its predecessor, and leaves the directories of others alone."""
        self.leave(2, 0, 1)
        self.opened(0, 3)
        self.assertEqual(["of 0"], self.drained())
        self.opened(2, 3)
        self.assertEqual([], self.drained())
        self.opened(1, 3)
        self.assertEqual(["of 1"], self.drained())

    def test_not_drained(self) -> None:
        """Messages that still wait at the end stay, and go out the next time."""
        self.leave(2, 1)
        spool = self.opened()
        self.inners[1].store_error = Unavailable("no answer")
        self.drained()
        self.assertEqual((1, "no answer"), (spool.backlog().messages, spool.backlog().away))
        spool.close()
        self.assertEqual(["worker-1"], self.worker_directories())
        self.opened()

        self.assertEqual(["of 1"], self.drained())

    def test_dead_letters(self) -> None:
        """Dead letters stay where they are, and are counted."""
        self.leave(2, 1)
        spool = self.opened()
        self.inners[1].store_error = Rejected("never")
        self.drained()
        self.assertEqual((0, 1), (spool.backlog().messages, spool.backlog().dead))
        spool.close()

        self.assertEqual(["worker-1"], self.worker_directories())

    def test_emptied(self) -> None:
        """An empty directory is removed at the start, without an observer for it."""
        self.leave(2, 1)
        self.opened(1, 2)
        self.drained()
        self.threads[0].drainer.close()
        self.opened()

        self.assertEqual(1, len(self.threads))
        self.assertEqual([], self.worker_directories())

    def test_something_else(self) -> None:
        """A foreign file keeps a directory from being removed; other names are not those of workers."""
        self.leave(2, 1)
        names = ("worker-0", "worker-01", "worker-x", "worker-")
        for name in names:
            os.mkdir(os.path.join(self.path, name))
        kept = os.path.join(self.path, "worker-1", "00000001.sqlite.damaged")
        with open(kept, "w"):
            pass
        spool = self.opened()
        self.assertEqual(["of 1"], self.drained())
        spool.close()

        self.assertTrue(os.path.exists(kept))
        self.assertEqual(sorted([*names, "worker-1"]), self.worker_directories())

    def test_in_use(self) -> None:
        """A directory locked by another process is logged, and retried at the next reopen; the worker starts."""
        self.leave(3, 2)
        other = self.opened(2, 3)
        self.inners[0].store_error = Unavailable("no answer")
        spool = self.opened()
        self.store(spool, "one")

        self.assertEqual(["one"], self.drained())
        self.assertIn("worker-2, which a worker has left, is not drained", "\n".join(self.logged))
        self.assertEqual(0, spool.backlog().messages)
        other.close()
        spool.reopen()
        self.assertEqual(["one", "of 2"], self.drained())

    def test_one_of_several_in_use(self) -> None:
        """A directory that can't be drained does not affect the others."""
        self.leave(4, 1, 2, 3)
        self.opened(2, 4)
        spool = self.opened()
        self.assertIn("worker-2, which a worker has left, is not drained", "\n".join(self.logged))
        self.assertEqual(["of 1", "of 3"], self.drained())
        self.assertEqual(0, spool.backlog().messages)

    def test_own_not_opened(self) -> None:
        """Without its own spool a worker does not open."""
        self.opened(0, 2)
        error = self.assertRaises(ConfigError, self.make_group_spool().open)

        self.assertIn("this receiver uses it", str(error))

    def test_not_removed(self) -> None:
        """A directory that can't be removed is logged, and nothing else fails."""
        self.leave(2, 1)
        spool = self.opened()
        self.drained()
        os.rename(os.path.join(self.path, "worker-1"), os.path.join(self.path, "elsewhere"))
        spool.close()

        self.assertIn("worker-1, which a worker has left, is not removed", "\n".join(self.logged))

    def test_reopen_and_hurry(self) -> None:
        """All observers behind are reopened, and hurried."""
        self.leave(2, 1)
        spool = self.opened()
        spool.reopen()
        self.drained()
        spool.hurry()

        self.assertEqual([1, 1], [inner.reopened for inner in self.inners])
        self.assertEqual([True, True], [inner.hurried for inner in self.inners])
        self.assertEqual([False, False], [thread.running for thread in self.threads])

    def test_counts(self) -> None:
        """What is counted of all observers behind is taken, also of those that are closed meanwhile."""
        self.leave(2, 1)
        spool = self.opened()
        for inner in self.inners:
            inner.judge = lambda _: Rejected("bad")
        self.drained()
        refused = spool.take_counts().refused
        spool._others[next(iter(spool._others))]._counts.refused(5)
        spool.close()

        self.assertEqual((1, 5, 0), (refused, spool.take_counts().refused, spool.take_counts().refused))

    def test_finish(self) -> None:
        """All of them share one time limit for their last batches."""
        self.leave(3, 1, 2)
        spool = self.opened()
        waited = []

        def wait(seconds: float) -> bool:
            waited.append(seconds)
            self.clocks.now += 3.0
            return False

        for thread in self.threads:
            self.patch(thread, "wait", wait)
        spool.finish()

        self.assertEqual([LAST_BATCH, LAST_BATCH - 3.0, 0.0], waited)


class BuildTests(SynchronousTestCase):
    """From a spec string."""

    def build(self, *options: tuple[str, str], args: tuple[str, ...] = ("/nowhere/spool",)) -> WorkerSpool:
        """Build it."""
        return build_spool(Observer("spool:spec", "spool", args, options), MemoryObserver)

    def test_options(self) -> None:
        """It takes its options, opens nothing, and has defaults for all."""
        self.assertEqual("spool:spec", self.build().spec)
        self.build(("size", "10MiB"), ("age", "2h"), ("full", "drop-oldest"), ("min_free", "0"))

        self.assertFalse(os.path.exists("/nowhere"))

    def test_errors(self) -> None:
        """A wrong option is named, with what is right."""
        for options, text in (
            ((("size", "much"),), "observer 'spool': size=\"much\" is not a size"),
            ((("size", "0"),), 'size="0" is not enough; it takes 1B or more'),
            ((("age", "old"),), 'age="old" is not a length of time'),
            ((("age", "0s"),), 'age="0s" is not enough; it takes 1s or more'),
            ((("full", "drop"),), 'full="drop" is not known; it takes refuse or drop-oldest'),
            ((("min_free", "x"),), 'min_free="x" is not a size'),
            ((("require", "written"),), 'require="written": it takes durable'),
            ((("require", ""),), 'require="": it takes durable'),
            ((("batch", "5"),), 'unknown option "batch"; its options are age, full, min_free, observer, require, size'),
        ):
            self.assertIn(text, str(self.assertRaises(ConfigError, self.build, *options)))
        for args in ((), ("",), ("/a", "/b")):
            self.assertIn("one directory", str(self.assertRaises(ConfigError, self.build, args=args)))

    def test_require_durable(self) -> None:
        """With require=durable an observer behind that promises less is a mistake, found before anything is opened."""
        error = self.assertRaises(
            ConfigError,
            build_spool,
            Observer("spool:spec", "spool", ("/nowhere/spool",), (("require", "durable"),)),
            MemoryStore,
        )

        self.assertEqual(
            "observer 'spool': require=durable is more than store:there can promise: its word means "
            "'written' (it syncs later)",
            str(error),
        )
        self.build(("require", "durable"))


class RemovalTests(SynchronousTestCase):
    """Only empty directories are removed."""

    def setUp(self) -> None:
        """Make an empty spool."""
        self.path = os.path.abspath(self.mktemp())
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.queue = self.open()
        self.queue.append(stored("one"))
        self.queue.ack([row.id for row in self.queue.next_batch()])

    def open(self) -> SpoolQueue:
        """Open it."""
        queue = make_queue(self.path, FaultySpool())
        queue.open()
        self.addCleanup(queue.close)
        return queue

    def test_empty(self) -> None:
        """An empty directory is removed, and can be created again."""
        self.queue.close()

        self.assertTrue(remove_if_empty(self.path))
        self.assertFalse(os.path.exists(self.path))
        self.open()

    def test_never_used(self) -> None:
        """So is a directory that never had a file."""
        path = self.path + ".new"
        SpoolDirectory(path).make()

        self.assertTrue(remove_if_empty(path))
        self.assertFalse(os.path.exists(path))

    def test_in_use(self) -> None:
        """A locked directory stays."""
        self.assertFalse(remove_if_empty(self.path))
        self.queue.append(stored("two"))
        self.assertEqual(1, self.queue.status().messages)

    def test_waiting(self) -> None:
        """A directory with messages stays, with its messages."""
        self.queue.append(stored("two"))
        self.queue.close()
        self.assertFalse(remove_if_empty(self.path))

        self.assertEqual(1, self.open().status().messages)

    def test_dead(self) -> None:
        """A directory with dead letters stays."""
        self.queue.append(stored("two"))
        (row,) = self.queue.next_batch()
        self.queue.ack([], [DeadLetter(row.id, RECEIVED, row.crc, row.data, "HTTP 422", "http:x", RECEIVED)])
        self.queue.close()
        self.assertFalse(remove_if_empty(self.path))

        self.assertEqual(1, self.open().status().dead)

    def test_files_are_closed(self) -> None:
        """The files that it looks into are closed again."""
        self.queue.close()
        with mock.patch.object(SpoolFile, "close", autospec=True, side_effect=SpoolFile.close) as close:
            remove_if_empty(self.path)
        self.assertEqual(1, close.call_count)

    def test_something_else(self) -> None:
        """A directory with anything else stays: a failed or damaged file, or a foreign one."""
        self.queue.close()
        for name in ("00000001.failed", "00000001.sqlite.damaged", "00000002.sqlite", "notes.txt"):
            other = os.path.join(self.path, name)
            with open(other, "w"):
                pass
            self.assertFalse(remove_if_empty(self.path), name)
            os.remove(other)

        self.assertTrue(remove_if_empty(self.path))

    def test_damaged(self) -> None:
        """An unreadable directory stays, and is an error; so is a missing one."""
        self.queue.close()
        with open(os.path.join(self.path, "00000001.sqlite"), "r+b") as file:
            file.write(b"nonsense" * 20)
        self.assertRaises(sqlite3.Error, remove_if_empty, self.path)
        self.assertTrue(os.path.exists(self.path))
        self.assertRaises(OSError, remove_if_empty, self.path + ".gone")
