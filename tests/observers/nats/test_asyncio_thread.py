"""A loop in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.nats.asyncio_thread import AsyncioThread

#: Long enough for any machine; what is waited for comes at once.
PATIENCE = [60.0]


class AsyncioThreadTests(SynchronousTestCase):
    """All of it."""

    def setUp(self) -> None:
        """Make one."""
        self.thread = AsyncioThread("webhookrx-test")
        self.addCleanup(self.thread.close)

    def test_result(self) -> None:
        """A coroutine runs in the thread, and its result or error comes back; the loop stays between two."""

        async def work() -> tuple[str, asyncio.AbstractEventLoop]:
            return threading.current_thread().name, asyncio.get_running_loop()

        async def fail() -> None:
            raise KeyError("x")

        name, loop = self.thread.run(work(), PATIENCE)
        self.assertRaises(KeyError, self.thread.run, fail(), PATIENCE)

        self.assertEqual("webhookrx-test", name)
        self.assertIs(loop, self.thread.run(work(), PATIENCE)[1])

    def test_log(self) -> None:
        """What asyncio logs in the thread is not said to standard error; what it logs elsewhere is left alone."""
        logger = logging.getLogger("asyncio")
        seen: list[str] = []
        handler = logging.Handler()
        self.patch(handler, "emit", lambda record: seen.append(record.getMessage()))
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)

        async def work() -> None:
            logger.warning("inside %s", "it")

        self.thread.run(work(), PATIENCE)
        logger.warning("outside %s", "it")

        self.assertEqual(["outside it"], seen)

    def test_time_is_over(self) -> None:
        """What takes longer than its steps is cancelled."""
        cancelled = threading.Event()

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        self.assertRaises(TimeoutError, self.thread.run, work(), [0.0, 0.0])

        self.assertTrue(cancelled.wait(60.0))

    def test_close(self) -> None:
        """Closing cancels what still runs, ends the thread, and can be done twice; the next call starts a new one."""
        ended = threading.Event()

        async def linger() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def begin() -> tuple[threading.Thread, asyncio.Task[None]]:
            task = asyncio.create_task(linger())
            await asyncio.sleep(0)
            return threading.current_thread(), task

        thread, _ = self.thread.run(begin(), PATIENCE)
        self.thread.close()
        self.thread.close()

        self.assertTrue(ended.is_set())
        self.assertFalse(thread.is_alive())
        other, _ = self.thread.run(begin(), PATIENCE)
        self.assertIsNot(thread, other)
