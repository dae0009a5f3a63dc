"""Tests of webhookrx.relay.side_thread."""

from __future__ import annotations

from threading import Event, current_thread

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.relay.side_thread import SideThread


class SideThreadTests(SynchronousTestCase):
    """Calls in a thread of their own."""

    def setUp(self) -> None:
        self.thread = SideThread("beside", 0.001)
        self.thread.start()
        self.addCleanup(self.thread.stop)

    def test_result(self) -> None:
        """The caller gets what the work returns, which runs in the other thread."""
        self.assertEqual("beside", self.thread.call(lambda: current_thread().name, lambda: None))

    def test_error(self) -> None:
        """It gets what the work raises, even the end of an interpreter; the thread goes on."""

        def fail() -> None:
            raise SystemExit("no")

        self.assertRaises(SystemExit, self.thread.call, fail, lambda: None)
        self.assertEqual(1, self.thread.call(lambda: 1, lambda: None))

    def test_meanwhile(self) -> None:
        """Until the work is back the caller does something else, in its own thread, and the thread is busy."""
        release = Event()
        seen: list[tuple[str, bool]] = []

        def meanwhile() -> None:
            seen.append((current_thread().name, self.thread.busy > 0))
            if len(seen) == 3:
                release.set()

        self.assertTrue(self.thread.call(lambda: release.wait(60), meanwhile))
        self.assertEqual([(current_thread().name, True)] * 3, seen[:3])
        self.assertEqual(0.0, self.thread.busy)
