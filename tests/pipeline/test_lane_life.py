"""Observers are opened and closed where they may wait for a disk, once each, whatever comes in between."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import BufferingObserver, Rig, texts
from webhookrx.errors import ConfigError, NotStored
from webhookrx.testing import MemoryObserver


class TracingObserver(BufferingObserver):
    """Notes its calls, in which thread they are, and an open while it is open or a close while it is not."""

    def __init__(self, spec: str, rig: list[Rig]) -> None:
        super().__init__(spec)
        self.calls: list[str] = []
        self.hold_when_open = False
        self._rig = rig

    def note(self, what: str) -> None:
        """Note a call."""
        aside = bool(self._rig) and any(thread.works for thread in self._rig[0].threads)
        self.calls.append(what if aside else f"{what} in the reactor's thread")

    def open(self) -> None:
        """Note it."""
        self.note("open" if not self.is_open else "open though it is open")
        super().open()
        if self.hold_when_open:
            self._rig[0].threads[-2].hold()

    def hurry(self) -> None:
        """Note it."""
        self.calls.append("hurry")

    def finish(self) -> None:
        """Note it."""
        self.note("finish")

    def close(self) -> None:
        """Note it."""
        self.note("close" if self.is_open else "close though it is closed")
        super().close()


class _LifeTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Start a chain to one observer, and have another one, and one that can't be opened."""
        self.rigs: list[Rig] = []
        self.old, self.new = TracingObserver("old", self.rigs), TracingObserver("new", self.rigs)
        self.bad = MemoryObserver("bad")
        self.bad.open_error = ConfigError("no such directory")
        self.rig = Rig(self.old, answer_time=5.0)
        self.rigs.append(self.rig)
        self.assertEqual(["open in the reactor's thread"], self.old.calls)
        self.old.calls.clear()

    def fail_to_replace(self) -> None:
        """Let an exchange fail, so that the old observer is closed and opened again."""
        self.failureResultOf(self.rig.replace(self.bad), ConfigError)

    def bar(self) -> None:
        """Let an exchange fail, and the old observer too, when it is opened again."""
        self.old.open_error = OSError("gone")
        self.fail_to_replace()
        self.old.calls.clear()


class AsideTests(_LifeTests):
    """Only the first open is in the thread of the reactor."""

    def test_exchange(self) -> None:
        """The observers that go and those that come are closed and opened in their own threads."""
        self.successResultOf(self.rig.replace(self.new))

        self.assertEqual([["hurry", "finish", "close"], ["open"]], [self.old.calls, self.new.calls])

    def test_failed_exchange(self) -> None:
        """So are those that come back, and those that go again."""
        self.failureResultOf(self.rig.replace(self.new, self.bad), ConfigError)

        self.assertEqual(["hurry", "finish", "close", "open"], self.old.calls)
        self.assertEqual(["open", "hurry", "finish", "close"], self.new.calls)

    def test_new_first(self) -> None:
        """An observer comes back only once those that go again are closed: they may hold its file."""
        self.new.hold_when_open = True
        result = self.rig.replace(self.new, self.bad)
        self.assertNoResult(result)
        self.assertEqual(["hurry", "finish", "close"], self.old.calls)
        self.rig.threads[1].release()
        self.rig.turns()

        self.failureResultOf(result, ConfigError)
        self.assertEqual(["hurry", "finish", "close", "open"], self.old.calls)

    def test_stop(self) -> None:
        """A stop closes them there too."""
        self.successResultOf(self.rig.stop())

        self.assertEqual(["hurry", "finish", "close"], self.old.calls)

    def test_again(self) -> None:
        """So is one opened that could not be opened again, without a message that asks for it."""
        self.bar()
        self.rig.wait(0.5)
        self.assertEqual([], self.old.calls)
        self.rig.wait(0.5)
        self.assertEqual(["open"], self.old.calls)
        self.old.open_error = None
        self.rig.wait(1)
        told = self.rig.write("one")
        self.rig.turns()

        self.assertEqual([None], told)
        self.assertEqual(["open"] * 2, self.old.calls)

    def test_why(self) -> None:
        """Messages fail for what is wrong now, and not for what was once."""
        self.bar()
        self.old.open_error = None
        self.rig.wait(1)
        self.rig.threads[0].hold()
        result = self.rig.replace(self.bad)
        self.rig.wait(5)
        self.failureResultOf(result, ConfigError)
        told = self.rig.write("one")
        self.rig.turns()

        self.assertEqual(["old: it was closed"], [str(failure) for failure in told])

    def test_exit(self) -> None:
        """One that ends its thread when it is opened or closed is reported, as any failure is."""
        self.old.close = lambda: exit("enough")
        self.new.open_error = SystemExit("too much")
        failure = self.failureResultOf(self.rig.replace(self.new), ConfigError)

        self.assertEqual("observer new can't be opened: too much", str(failure.value))
        self.assertEqual([("old", "enough", 0)], self.rig.reports)


class HangingOpenTests(_LifeTests):
    """A disk that does not answer holds an exchange up for a while, and never the reactor."""

    def test_new(self) -> None:
        """When it does not let the new one open, the exchange fails; once it has, the new one is closed."""
        result = self.rig.chain.replace([self.old, self.new], ack="durable")
        self.rig.threads[1].hold()
        told = self.rig.write("one")
        self.rig.wait(4.9)
        self.assertNoResult(result)
        self.rig.wait(0.1)
        failure = self.failureResultOf(result, ConfigError)
        self.assertEqual("observer new can't be opened: it does not answer", str(failure.value))
        self.assertEqual([None], told)
        self.rig.threads[1].release()
        self.rig.turns()

        self.assertEqual(["open", "finish", "close"], self.new.calls)
        self.assertTrue(self.rig.threads[1].is_stopped)
        self.successResultOf(self.rig.stop())

    def test_new_fails_late(self) -> None:
        """One that can't be opened in the end is not closed."""
        self.new.open_error = OSError("gone")
        result = self.rig.chain.replace([self.old, self.new], ack="durable")
        self.rig.threads[1].hold()
        self.rig.wait(5)
        self.failureResultOf(result, ConfigError)
        self.rig.threads[1].release()
        self.rig.turns()

        self.assertEqual((["open"], True), (self.new.calls, self.rig.threads[1].is_stopped))
        self.successResultOf(self.rig.stop())

    def hang_on_the_way_back(self) -> None:
        """Let an exchange fail, and the old observer hang when it is opened again."""
        thread = self.rig.threads[0]
        self.patch(thread, "start", thread.hold)
        result = self.rig.replace(self.bad)
        self.rig.wait(5)
        self.failureResultOf(result, ConfigError)
        self.old.calls.clear()

    def test_old(self) -> None:
        """When it does not let the old one open again, that one takes nothing until it has, and that can be seen."""
        self.hang_on_the_way_back()
        told = self.rig.write("one")
        self.rig.turns()
        self.assertEqual(["old: it was closed"], [str(failure) for failure in told])
        self.rig.wait(100)
        self.assertEqual(0.0, self.rig.chain.lanes()[0].failed_ago)
        self.rig.threads[0].release()
        self.rig.turns()
        told = self.rig.write("two")
        self.rig.turns()

        self.assertEqual(([None], None), (told, self.rig.chain.lanes()[0].failed_ago))
        self.assertEqual(["open"], self.old.calls)

    def test_log_rotation(self) -> None:
        """One that may have opened its file just before it was moved away opens it once more."""
        self.hang_on_the_way_back()
        self.rig.chain.reopen()
        self.rig.threads[0].release()
        self.rig.turns()

        self.assertEqual(["open", "finish", "close", "open"], self.old.calls)
        self.assertEqual(0, self.old.reopened)

    def test_stop(self) -> None:
        """A stop waits for it, and closes what is open by then."""
        self.hang_on_the_way_back()
        stopped = self.rig.stop()
        self.assertNoResult(stopped)
        self.rig.threads[0].release()
        self.rig.turns()

        self.successResultOf(stopped)
        self.assertEqual(["open", "finish", "close"], self.old.calls)

    def test_back_once_more(self) -> None:
        """One that is to leave meanwhile, and then to stay after all, is opened anew, since it was told to end."""
        self.hang_on_the_way_back()
        result = self.rig.replace(self.bad)
        self.rig.wait(5)
        self.failureResultOf(result, ConfigError)
        self.rig.threads[0].release()
        self.rig.turns()

        self.assertEqual(["open", "finish", "close", "open"], self.old.calls)

    def test_back_once_more_and_retried(self) -> None:
        """When it can't be opened then, it is tried again."""
        self.hang_on_the_way_back()
        self.old.open_error = OSError("gone")
        result = self.rig.replace(self.bad)
        self.rig.wait(5)
        self.failureResultOf(result, ConfigError)
        self.rig.threads[0].release()
        self.rig.turns()
        self.old.open_error = None
        self.rig.wait(1)

        self.assertEqual((["open", "open"], True), (self.old.calls, self.old.is_open))


class OnceTests(_LifeTests):
    """Whatever comes together, nothing is opened or closed twice."""

    def test_failed_reload_during_a_stall(self) -> None:
        """After two failed exchanges, the second of them during a stall, a message in the right turn opens nothing."""
        self.fail_to_replace()
        self.rig.threads[0].hold()
        self.rig.write("one")
        self.rig.turns()
        result = self.rig.chain.replace([self.bad], ack="durable")
        self.rig.wait(5.1)
        self.rig.wait(5.1)
        self.failureResultOf(result, ConfigError)
        self.rig.write("two")
        self.rig.threads[0].release()
        self.rig.turns()
        told = self.rig.write("three")
        self.rig.turns()

        self.assertEqual(["hurry", "finish", "close", "open"] * 2, self.old.calls)
        self.assertEqual(([None], ["one", "three"]), (told, texts(self.old)))

    def test_stop_while_one_finishes(self) -> None:
        """One that still finishes when its exchange is given up does not finish once more when the service stops."""
        self.rig.threads[0].hold()
        result = self.rig.chain.replace([self.new], ack="durable")
        self.rig.wait(5)
        self.successResultOf(result)
        stopped = self.rig.stop()
        self.assertNoResult(stopped)
        self.rig.threads[0].release()
        self.rig.turns()

        self.successResultOf(stopped)
        self.assertEqual(["hurry", "finish", "close"], self.old.calls)

    def test_log_rotation_while_one_finishes(self) -> None:
        """One that is about to be closed and opened is not opened by name besides."""
        self.rig.threads[0].hold()
        result = self.rig.chain.replace([self.bad], ack="durable")
        self.rig.wait(5)
        self.failureResultOf(result, ConfigError)
        self.rig.chain.reopen()
        self.rig.threads[0].release()
        self.rig.turns()

        self.assertEqual(0, self.old.reopened)
        self.assertEqual(["hurry", "finish", "close", "open"], self.old.calls)

    def test_retried_and_removed(self) -> None:
        """One that could not be opened again is removed at once, and its thread ends."""
        self.bar()
        self.successResultOf(self.rig.replace(self.new))
        self.rig.wait(5)

        self.assertEqual([], self.old.calls)
        self.assertTrue(self.rig.threads[0].is_stopped)


class StalledTests(_LifeTests):
    """One that is known to hang is not waited for."""

    def test_removed(self) -> None:
        """To remove it holds no message up."""
        good = MemoryObserver("good")
        self.successResultOf(self.rig.replace(self.old, good))
        self.rig.threads[0].hold()
        self.rig.write("one")
        self.rig.turns()
        self.rig.wait(5)
        self.assertTrue(self.rig.chain.is_stuck)
        result = self.rig.chain.replace([good], ack="durable")
        told = self.rig.write("two")
        self.rig.turns()

        self.successResultOf(result)
        self.assertEqual([None], told)
        self.rig.threads[0].release()
        self.rig.turns()
        self.assertEqual(["hurry", "finish", "close"], self.old.calls)

    def test_removed_with_another(self) -> None:
        """Only the others that go are waited for."""
        slow = MemoryObserver("slow")
        self.successResultOf(self.rig.replace(self.old, slow))
        self.rig.threads[0].hold()
        stuck = self.rig.write("one")
        self.rig.turns()
        self.rig.wait(5)
        self.rig.threads[1].hold()
        self.rig.write("two")
        self.rig.turns()
        result = self.rig.replace(self.new)
        self.assertNoResult(result)
        self.rig.threads[1].release()
        self.rig.turns()

        self.successResultOf(result)
        self.assertEqual([NotStored], [type(failure) for failure in stuck])
        self.assertEqual(["one", "two"], texts(slow))
