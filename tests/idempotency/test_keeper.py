"""
Tests for L{webhookrx.idempotency.keeper}.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from tests.idempotency.test_key_ring import key_of, key_ring
from tests.idempotency.windows import CAPACITY, EPOCH
from webhookrx.idempotency.delivery_file import DeliveryFile, connect
from webhookrx.idempotency.keeper import AGAIN, FILE_NAME, DeliveryKeeper
from webhookrx.idempotency.key_ring import KeyRing
from webhookrx.shared_memory import ByteLock, memory_file

NOW = int(EPOCH) + 1000


class Threads:
    """A reactor whose threads do what they are told when they are told."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def callInThread(self, call: Callable[..., None], *args: Any) -> None:
        """See C{IReactorInThreads.callInThread}."""
        self.waiting.append(lambda: call(*args))

    def callFromThread(self, call: Callable[..., None], *args: Any, **named: Any) -> None:
        """See C{IReactorFromThreads.callFromThread}."""
        call(*args, **named)


class KeeperTests(SynchronousTestCase):
    """
    Tests for L{DeliveryKeeper}.
    """

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        self.path = os.path.join(self.directory, FILE_NAME)
        self.threads, self.clock = Threads(), Clock()
        self.clock.advance(1000.0)
        self.errors: list[Exception] = []
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)
        self.start()

    def start(self, lock: ByteLock | None = None) -> None:
        """Start, as after a kill: what the one before had open is open no more."""
        if hasattr(self, "keeper"):
            self.keeper._close()
        self.ring = key_ring(CAPACITY)
        self.ring.epoch = EPOCH
        self.keeper = DeliveryKeeper(self.ring, lock, self.threads, self.clock.seconds, self.open_file)
        self.keeper.window = 3600.0
        self.keeper.use(self.path)
        self.addCleanup(self.keeper.close)

    def open_file(self, path: str) -> DeliveryFile:
        """Open the file, or raise the next planned error."""
        if self.errors:
            raise self.errors.pop(0)
        return DeliveryFile(path, capacity=CAPACITY)

    def remember(self, *numbers: int) -> None:
        """Remember keys."""
        self.ring.append(map(key_of, numbers), NOW)

    def known(self, ring: KeyRing | None = None) -> list[int]:
        """Return the keys that are remembered."""
        return [number for number in range(20) if (ring or self.ring).stored_at(key_of(number))]

    def tick(self) -> None:
        """Let a tick come, and all that it asks of threads."""
        self.keeper.tick()
        while self.threads.waiting:
            self.threads.waiting.pop(0)()

    def said(self) -> list[str]:
        """Return what was logged since the last time."""
        lines = [formatEvent(event) for event in self.events]
        self.events.clear()
        return lines

    def test_restart(self) -> None:
        """What a tick has found is known after a restart, however the process ended."""
        self.remember(1, 2)
        self.tick()
        self.remember(3)
        self.start()
        self.assertEqual([1, 2], self.known())
        self.keeper.tick()
        self.assertEqual([], self.threads.waiting)  # it is there already
        self.remember(4)
        self.tick()
        self.start()
        self.assertEqual([1, 2, 4], self.known())
        self.assertEqual(("", 0, []), (self.keeper.problem, self.keeper.errors, self.said()))

    def test_closed(self) -> None:
        """What was remembered up to the end is known after a restart."""
        self.remember(1, 2)
        self.assertIsNone(self.wait(self.keeper.close_later()))
        self.start()
        self.assertEqual([1, 2], self.known())

    def test_after_its_end(self) -> None:
        """A tick after the end writes nothing."""
        self.keeper.close()
        self.remember(1)
        self.keeper.tick()
        self.assertEqual([], self.threads.waiting)

    def wait(self, done: Deferred[None]) -> None:
        """Return what comes of work in a thread."""
        self.assertNoResult(done)
        while self.threads.waiting:
            self.threads.waiting.pop(0)()
        return self.successResultOf(done)

    def test_in_a_thread(self) -> None:
        """A tick writes nothing itself, and one write is under way at a time."""
        self.remember(1)
        self.keeper.tick()
        self.keeper.tick()
        self.assertEqual(1, len(self.threads.waiting))

    def test_nothing_new(self) -> None:
        """A tick without new keys asks for nothing."""
        self.keeper.tick()
        self.assertEqual([], self.threads.waiting)

    def test_ring_in_use(self) -> None:
        """While another process appends to the ring, nothing is copied; the next tick does."""
        fd = memory_file("test", 1)
        self.addCleanup(os.close, fd)
        other = ByteLock(fd)
        self.start(ByteLock(fd))
        other.acquire()
        self.remember(1)
        self.keeper.tick()
        self.assertEqual([], self.threads.waiting)
        other.release()
        self.tick()
        self.assertTrue(other.acquire())
        other.close()
        self.start()
        self.assertEqual([1], self.known())

    def test_keys(self) -> None:
        """Keys that no source's window reaches are not counted; without a window, none is."""
        self.remember(1, 2)
        self.assertEqual(2, self.keeper.keys)
        self.clock.advance(3602)
        self.assertEqual(0, self.keeper.keys)
        self.remember(3)
        self.keeper.window = 0.0
        self.assertEqual(0, self.keeper.keys)

    def test_cannot_be_used(self) -> None:
        """A file that can't be used is said once and tried now and then; then all that is remembered gets into it."""
        problem = sqlite3.OperationalError("database is locked")
        self.errors = [problem, problem, problem]
        os.unlink(self.path)
        self.start()
        self.assertEqual("database is locked", self.keeper.problem)
        self.remember(1)
        self.tick()
        self.assertEqual([2], [len(self.errors)])
        for _ in range(2):
            self.clock.advance(AGAIN)
            self.tick()
        self.assertEqual(3, self.keeper.errors)
        (line,) = self.said()
        self.assertRegex(line, "can't be kept in .*deliveries.sqlite, so after a restart .* database is locked")
        self.remember(2)
        self.clock.advance(AGAIN)
        self.tick()
        self.assertEqual("", self.keeper.problem)
        self.assertIn("again", self.said()[0])
        self.tick()
        self.start()
        self.assertEqual([1, 2], self.known())

    def test_write_fails(self) -> None:
        """When a write fails, the window goes on in memory, and all of it is written once that is possible."""
        self.remember(1)
        self.tick()
        self.patch(DeliveryFile, "append", lambda *_: self.fail_with(OSError(28, "No space left on device")))
        self.remember(2)
        self.tick()
        self.assertIn("No space left", self.keeper.problem)
        self.assertEqual([1, 2], self.known())
        self.unpatch()
        self.clock.advance(AGAIN)
        self.tick()
        self.tick()
        self.start()
        self.assertEqual([1, 2], self.known())

    def fail_with(self, error: Exception) -> None:
        """Raise an error."""
        raise error

    def unpatch(self) -> None:
        """Let writes succeed again."""
        self.patch(DeliveryFile, "append", APPEND)

    def test_damaged_at_start(self) -> None:
        """A damaged file is put aside, and a new one is begun; requests are not kept from coming."""
        self.keeper.close()
        with open(self.path, "wb") as file:
            file.write(b"damaged " * 1000)
        self.start()
        (line,) = self.said()
        self.assertRegex(line, r"damaged, and was put aside as .*deliveries.sqlite.damaged: file is not a database")
        self.assertEqual(("", 1), (self.keeper.problem, self.keeper.errors))
        self.remember(1)
        self.tick()
        self.start()
        self.assertEqual([1], self.known())
        self.assertTrue(os.path.exists(self.path + ".damaged"))

    def test_damaged_rows(self) -> None:
        """A file whose rows turn out to be damaged when they are read is put aside, too."""
        self.keeper.close()
        with closing(connect(self.path)) as db:
            db.execute("INSERT INTO deliveries VALUES (1, 1, x'0011')")
        self.start()
        self.assertIn("a row of it has no whole entries", self.said()[0])
        self.remember(1)
        self.tick()
        self.start()
        self.assertEqual([1], self.known())

    def test_damaged_later(self) -> None:
        """When damage is found while it is written, a new file gets all that is remembered."""
        self.remember(1)
        self.tick()
        assert self.keeper._file is not None
        self.keeper._file._last = 0
        self.remember(2)
        for _ in range(3):
            self.tick()
        self.assertIn("put aside", self.said()[0])
        self.start()
        self.assertEqual([1, 2], self.known())

    def test_another_file(self) -> None:
        """A reload may name another file, which gets all that is remembered; what it had is left in it."""
        self.remember(1)
        self.tick()
        other = os.path.join(self.directory, "other", FILE_NAME)
        self.wait(self.keeper.use_later(other))
        self.remember(2)
        self.tick()
        self.path = other
        self.start()
        self.assertEqual([1, 2], self.known())

    def test_same_file(self) -> None:
        """A reload that names the same file asks nothing of a thread."""
        self.assertIsNone(self.successResultOf(self.keeper.use_later(self.path)))

    def test_no_file(self) -> None:
        """Without a file nothing is written, and nothing is wrong."""
        self.wait(self.keeper.use_later(None))
        self.remember(1)
        self.tick()
        self.assertEqual("", self.keeper.problem)
        self.assertIsNone(self.successResultOf(self.keeper.close_later()))

    def test_changed_meanwhile(self) -> None:
        """What was copied for one file is not written into another."""
        self.remember(1)
        self.tick()
        self.remember(2)
        self.keeper.tick()
        self.keeper.use(os.path.join(self.directory, "other", FILE_NAME))
        self.path = os.path.join(self.directory, "other", FILE_NAME)
        while self.threads.waiting:
            self.threads.waiting.pop(0)()
        self.tick()
        self.start()
        self.assertEqual([1, 2], self.known())


APPEND = DeliveryFile.append
