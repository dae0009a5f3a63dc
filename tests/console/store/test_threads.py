"""
Tests for L{webhookrx.console.store.threads}.
"""

from __future__ import annotations

import os
import threading

from twisted.internet import reactor
from twisted.internet.defer import ensureDeferred, gatherResults
from twisted.trial.unittest import TestCase

from tests.console.store.test_database import one_revision
from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.console.store.history import newest_revision
from webhookrx.console.store.threads import MOST_WAITING, StoreThreads
from webhookrx.errors import StoreUnavailable


class StoreThreadsTests(TestCase):
    """Three threads, with bounds."""

    def setUp(self) -> None:
        path = os.path.abspath(self.mktemp())
        self.store = StoreThreads(reactor, StoreWriter(path), StoreReader(path), StoreReader(path))
        self.store.start()
        self.addCleanup(self.store.stop)

    async def test_other_threads(self) -> None:
        """Writing and reading have a thread each, and neither is that of the reactor."""
        names = [await self.store.write(lambda _: threading.get_ident()) for _ in range(3)]
        names += [await self.store.read(lambda _: threading.get_ident()) for _ in range(3)]
        self.assertEqual(2, len(set(names)))
        self.assertNotIn(threading.get_ident(), names)

    async def test_look(self) -> None:
        """A look does not wait for what reads long: whoever asks for much stops nobody from being known."""
        free = threading.Event()
        reading = ensureDeferred(self.store.read(lambda _: free.wait(60)))
        self.assertEqual(0, await self.store.look(newest_revision))
        self.assertFalse(reading.called)
        free.set()
        self.assertTrue(await reading)

    async def test_in_order(self) -> None:
        """Writes that are asked for at once are made one after the other, in their order."""
        numbers = await gatherResults([ensureDeferred(self.store.write(one_revision)) for _ in range(20)])
        self.assertEqual(list(range(1, 21)), numbers)
        self.assertEqual(20, await self.store.read(newest_revision))

    async def test_bounded(self) -> None:
        """More calls than may wait are refused, and those that wait are done."""
        free = threading.Event()
        waiting = [ensureDeferred(self.store.read(lambda _: free.wait(60))) for _ in range(MOST_WAITING)]
        with self.assertRaises(StoreUnavailable):
            await self.store.read(newest_revision)
        free.set()
        self.assertEqual([True] * MOST_WAITING, await gatherResults(waiting))
        self.assertEqual(0, self.store.waiting)

    async def test_error(self) -> None:
        """An error of a function reaches its caller alone."""
        with self.assertRaises(ZeroDivisionError):
            await self.store.write(lambda _: 1 // 0)
        self.assertEqual(1, await self.store.write(one_revision))

    async def test_closed(self) -> None:
        """A store that is closed refuses, and has finished what waited."""
        self.store.stop()
        with self.assertRaises(StoreUnavailable):
            await self.store.write(one_revision)
