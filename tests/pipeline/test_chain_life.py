"""The chain's start, reopen and stop."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import Rig, texts
from webhookrx.errors import ConfigError, NoRoom
from webhookrx.testing import MemoryObserver, make_message


class LifeTests(SynchronousTestCase):
    """Start, reopen and stop."""

    def test_no_observers(self) -> None:
        """Without an observer there is nobody to make a message safe."""
        self.assertRaises(ValueError, Rig)

    def test_thread_names(self) -> None:
        """Each observer has a thread with a name of its own."""
        rig = Rig(MemoryObserver(), MemoryObserver())

        self.assertEqual(["observer-0", "observer-1"], [thread.name for thread in rig.threads])

    def test_not_started(self) -> None:
        """Before the start there is no room, and reopen() and stop() do nothing."""
        observer = MemoryObserver()
        rig = Rig(observer, start=False)

        self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)
        self.assertFalse(rig.chain.reserve(1))
        rig.chain.reopen()
        self.successResultOf(rig.chain.stop())
        self.assertEqual((False, 0), (observer.is_open, observer.reopened))

    def test_start_fails(self) -> None:
        """When one can't be opened the start fails with its reason, and those before it are closed again."""
        first, second, third = MemoryObserver("first"), MemoryObserver("second"), MemoryObserver("third")
        for error, text in (
            (ConfigError("no such directory"), "no such directory"),
            (OSError("no"), "observer second can't be opened: no"),
        ):
            second.open_error = error
            rig = Rig(first, second, third, start=False)

            self.assertEqual(text, str(self.assertRaises(ConfigError, rig.chain.start)))
            self.assertEqual([False] * 3, [observer.is_open for observer in (first, second, third)])
            self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)

    def test_start_fails_and_close_too(self) -> None:
        """What stopped the start is told, not what went wrong after it."""
        first, second = MemoryObserver(), MemoryObserver()
        first.close = lambda: 1 / 0
        second.open_error = ConfigError("the reason")
        rig = Rig(first, second, start=False)

        self.assertEqual("the reason", str(self.assertRaises(ConfigError, rig.chain.start)))

    def test_stop(self) -> None:
        """A stop takes nothing more, stores and acknowledges what is there, and closes the observers at the end."""
        fast, slow = MemoryObserver(), MemoryObserver()
        rig = Rig(fast, slow)
        rig.threads[1].hold()
        told = rig.write("one")
        rig.turns()
        told_later = rig.write("two")
        stopped = rig.chain.stop()
        self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)
        self.assertFalse(rig.chain.reserve(1))
        rig.turns()

        self.assertNoResult(stopped)
        self.assertFalse(fast.is_open)
        self.assertTrue(slow.is_open)
        rig.threads[1].release()
        rig.turns()

        self.successResultOf(stopped)
        self.assertEqual([None, None], told + told_later)
        self.assertEqual(["one", "two"], texts(slow))
        self.assertFalse(slow.is_open)
        self.assertEqual([True, True], [thread.is_stopped for thread in rig.threads])

    def test_stop_from_acknowledge(self) -> None:
        """A stop out of an acknowledgement is done only once everyone else of the batch has heard too."""
        observer = MemoryObserver()
        rig = Rig(observer)
        order: list[object] = []
        rig.chain.write(make_message("one"), lambda _: rig.chain.stop().addCallback(lambda _: order.append("stopped")))
        rig.chain.write(make_message("two"), order.append)
        rig.turns()

        self.assertEqual([None, "stopped"], order)
        self.assertEqual(0, rig.chain.budget.messages)

    def test_stop_twice(self) -> None:
        """Everyone who stops it hears when it has stopped."""
        rig = Rig(MemoryObserver())
        rig.threads[0].hold()
        rig.write("one")
        first, second = rig.chain.stop(), rig.chain.stop()
        self.assertNoResult(second)
        rig.threads[0].release()
        rig.turns()

        self.successResultOf(first)
        self.successResultOf(second)
        self.successResultOf(rig.chain.stop())

    def test_stop_idle(self) -> None:
        """With nothing to store a stop is done as soon as the observer is closed."""
        observer = MemoryObserver()
        self.successResultOf(Rig(observer).stop())

        self.assertFalse(observer.is_open)

    def test_close_fails(self) -> None:
        """An observer that can't be closed is reported, and the stop goes on."""
        observer = MemoryObserver()
        observer.close = lambda: 1 / 0
        rig = Rig(observer)

        self.successResultOf(rig.stop())
        self.assertEqual([("memory", "division by zero", 0)], rig.reports)

    def test_release_after_stop(self) -> None:
        """Bytes that were reserved before a stop can still be given back."""
        rig = Rig(MemoryObserver())
        rig.chain.reserve(10)
        rig.chain.stop()
        rig.chain.release(10)

        self.assertEqual(0, rig.chain.budget.bytes)

    def test_reopen(self) -> None:
        """All observers are reopened, each in its thread between two batches; one that fails is reported."""
        good, bad = MemoryObserver("good"), MemoryObserver("bad")
        bad.reopen_error = OSError("gone")
        rig = Rig(bad, good)
        rig.threads[1].hold()
        rig.write("one")
        rig.turns()
        rig.chain.reopen()
        rig.turns()
        self.assertEqual(0, good.reopened)
        rig.threads[1].release()
        rig.turns()

        self.assertEqual(1, good.reopened)
        self.assertEqual([("bad", "gone", 0)], rig.reports)

    def test_stop_after_reopen(self) -> None:
        """A stop waits for a reopen that still runs."""
        observer = MemoryObserver()
        rig = Rig(observer)
        rig.chain.reopen()
        stopped = rig.chain.stop()
        self.assertNoResult(stopped)
        self.assertTrue(observer.is_open)
        rig.turns()

        self.successResultOf(stopped)
        self.assertFalse(observer.is_open)

    def test_closed_once_after_reopen(self) -> None:
        """An observer that was reopened is closed once, and after that."""
        observer = MemoryObserver()
        rig = Rig(observer)
        closed: list[int] = []
        self.patch(observer, "close", lambda: closed.append(observer.reopened))
        rig.chain.reopen()
        self.successResultOf(rig.stop())

        self.assertEqual([1], closed)

    def test_weaker_than_ack(self) -> None:
        """There is a warning for each observer whose word means less than the level says."""
        observers = [MemoryObserver(word, promise=word) for word in ("durable", "written", "queued", "nonsense")]
        for ack, weaker in (
            ("durable", ["written", "queued", "nonsense"]),
            ("written", ["queued", "nonsense"]),
            ("queued", []),
        ):
            warnings = Rig(*observers, ack=ack).chain.weaker_than_ack()

            self.assertEqual(len(weaker), len(warnings))
            for word, warning in zip(weaker, warnings, strict=True):
                self.assertIn(f"observer {word} ", warning)
                self.assertIn(f"--ack {ack} ", warning)
