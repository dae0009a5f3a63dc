"""A running chain gets other observers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.consumer_contract import RecordingProducer
from tests.pipeline.rig import BufferingObserver, LinesObserver, Rig, WaitingObserver, texts
from webhookrx.errors import ConfigError, NoRoom, NotStored
from webhookrx.message.message import Message
from webhookrx.testing import MemoryObserver, make_message


class Lock:
    """What one observer at a time may hold, as a lock on a file."""

    holder: object = None


class LockingObserver(MemoryObserver):
    """Can be opened only while no other one with the same lock is."""

    def __init__(self, spec: str, lock: Lock) -> None:
        super().__init__(spec)
        self._lock = lock

    def open(self) -> None:
        """Take the lock."""
        if self._lock.holder is not None:
            raise ConfigError(f"{self.spec}: locked")
        super().open()
        self._lock.holder = self

    def close(self) -> None:
        """Give the lock back."""
        super().close()
        self._lock.holder = None


class FinishTests(SynchronousTestCase):
    """An observer that keeps messages for another one may take its time to end, away from the reactor."""

    def test_stop(self) -> None:
        """It finishes where it stores, after its last store and before it is closed; the stop waits for that."""
        observer = BufferingObserver()
        rig = Rig(observer)
        told = rig.write("one")
        rig.turns()
        rig.threads[0].hold()
        stopped = rig.chain.stop()
        rig.turns()
        self.assertNoResult(stopped)
        self.assertEqual(([], True), (observer.finished, observer.is_open))
        rig.threads[0].release()
        rig.turns()

        self.successResultOf(stopped)
        self.assertEqual(([None], [True], False), (told, observer.finished, observer.is_open))

    def test_fails(self) -> None:
        """One that can't is closed all the same, and that is reported."""
        observer = BufferingObserver()
        observer.finish_error = OSError("busy")
        rig = Rig(observer)
        stopped = rig.chain.stop()
        rig.turns()

        self.successResultOf(stopped)
        self.assertFalse(observer.is_open)
        self.assertEqual([("buffering", "busy", 0)], rig.reports)

    def test_back_to_it(self) -> None:
        """One that takes too long on a reload that fails is opened anew: what was hurried does not do all its work."""
        observer, new = BufferingObserver(), MemoryObserver("new")
        new.open_error = ConfigError("locked")
        rig = Rig(observer)
        rig.threads[0].hold()
        replaced = rig.chain.replace([new], ack="durable")
        rig.wait(30)
        self.failureResultOf(replaced, ConfigError)
        refused = rig.write("one")
        rig.turns()
        rig.threads[0].release()
        rig.turns()
        told = rig.write("two")
        rig.turns()

        self.assertEqual(["buffering: it was closed"], [str(failure) for failure in refused])
        self.assertEqual(([None], ["two"], [True]), (told, texts(observer), observer.hurried))


class ReplaceTests(SynchronousTestCase):
    """The chain's observers become exactly those that are given."""

    def setUp(self) -> None:
        """Make two old observers and a new one."""
        self.kept, self.old, self.new = MemoryObserver("kept"), MemoryObserver("old"), MemoryObserver("new")

    def test_idle(self) -> None:
        """With nothing to store it is done at once: one is closed, one opened, and one not touched."""
        rig = Rig(self.kept, self.old)
        self.kept.close = self.kept.open = lambda: self.fail("touched")
        self.successResultOf(rig.replace(self.new, self.kept))
        told = rig.write("one")
        rig.turns()

        self.assertEqual((False, True), (self.old.is_open, self.new.is_open))
        self.assertEqual([None], told)
        self.assertEqual([["one"], [], ["one"]], [texts(o) for o in (self.kept, self.old, self.new)])
        self.assertEqual([False, True, False], [thread.is_stopped for thread in rig.threads])
        self.assertEqual(["new", "kept"], [state.spec for state in rig.chain.lanes()])
        self.assertEqual("observer-2", rig.threads[2].name)

    def test_same(self) -> None:
        """The same observers in another order change nothing but the order."""
        rig = Rig(self.kept, self.old)
        self.successResultOf(rig.replace(self.old, self.kept))

        self.assertEqual(["old", "kept"], [state.spec for state in rig.chain.lanes()])
        self.assertEqual((True, 2), (self.old.is_open, len(rig.threads)))

    def test_under_way(self) -> None:
        """What came before goes to the old ones, what comes meanwhile waits for the new ones, and all is safe."""
        rig = Rig(self.kept, self.old)
        rig.threads[1].hold()
        before = rig.write("1")
        rig.turns()
        gathered = rig.write("2")
        replaced = rig.chain.replace([self.kept, self.new], ack="durable")
        meanwhile = rig.write("3", "4")
        rig.wait(1)

        self.assertNoResult(replaced)
        self.assertEqual([], before + gathered + meanwhile)
        self.assertEqual((True, False), (self.old.is_open, self.new.is_open))
        self.assertEqual(4, rig.chain.budget.messages)
        rig.threads[1].release()
        rig.turns()

        self.successResultOf(replaced)
        self.assertEqual([None] * 4, before + gathered + meanwhile)
        self.assertEqual([["1", "2", "3", "4"], ["1", "2"], ["3", "4"]], [*map(texts, (self.kept, self.old, self.new))])
        self.assertEqual((0, 0), (rig.chain.budget.bytes, rig.chain.budget.messages))

    def test_kept_lane_is_behind(self) -> None:
        """One that stays gets what still waits for it as it prepared it, though it is prepared in another place now."""
        kept = LinesObserver(lambda message: b"line", "kept")
        rig = Rig(self.old, kept)
        rig.threads[1].hold()
        told = rig.write("one")
        rig.turns()
        told_too = rig.write("two")
        rig.turns()
        self.successResultOf(rig.replace(kept, self.new))
        rig.write("three")
        rig.turns()
        rig.threads[1].release()
        rig.turns()

        self.assertEqual([b"line"] * 3, kept.messages)
        self.assertEqual([None, None], told + told_too)

    def test_same_file(self) -> None:
        """An observer finds the file closed and unlocked by the one that it replaces."""
        lock = Lock()
        old, new = LockingObserver("old", lock), LockingObserver("new", lock)
        rig = Rig(old)
        rig.write("one")
        replaced = rig.chain.replace([new], ack="durable")
        rig.write("two")
        rig.turns()

        self.successResultOf(replaced)
        self.assertEqual([["one"], ["two"]], [texts(old), texts(new)])

    def test_room(self) -> None:
        """What waits for the new observers is counted, and there is room up to the limits."""
        rig = Rig(self.old, max_messages=4)
        producer = RecordingProducer()
        rig.chain.registerProducer(producer, True)
        rig.threads[0].hold()
        rig.write("1")
        replaced = rig.chain.replace([self.new], ack="durable")
        rig.write("2", "3")
        self.assertTrue(rig.chain.reserve(10))
        rig.chain.release(10)
        self.assertEqual([], producer.calls)
        told = rig.write("4")
        self.assertEqual(["pause"], producer.calls)
        self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)
        rig.threads[0].release()
        rig.turns()

        self.successResultOf(replaced)
        self.assertEqual([None], told)
        self.assertEqual(["pause", "resume"], producer.calls)

    def test_bytes_of_held(self) -> None:
        """One that finds no room by its estimated size is refused, and nothing is kept of it."""
        rig = Rig(self.old, max_bytes=1000)
        rig.threads[0].hold()
        rig.write("x" * 1000)
        rig.chain.replace([self.new], ack="durable")

        self.assertRaises(NoRoom, rig.chain.write, make_message("x" * 1000), self.fail)
        self.assertEqual(1, rig.chain.budget.messages)

    def test_larger_than_estimated(self) -> None:
        """A message that the new observers make more of than was reckoned is taken all the same."""
        new = LinesObserver(lambda message: b"x" * 5000, "new")
        rig = Rig(self.old, max_bytes=2000)
        rig.threads[0].hold()
        rig.write("1")
        rig.chain.replace([new], ack="durable")
        told = rig.write("2")
        rig.threads[0].release()
        rig.turns()

        self.assertEqual([None], told)
        self.assertEqual((0, 0), (rig.chain.budget.bytes, rig.chain.budget.messages))

    def test_ack_to_queued(self) -> None:
        """A weaker level holds for what comes after; what came before hears as it was promised."""
        rig = Rig(self.kept, self.old)
        rig.threads[0].hold()
        before = rig.write("1")
        rig.turns()
        self.successResultOf(rig.replace(self.kept, ack="queued"))
        after = rig.write("2")
        rig.turns()

        self.assertEqual([[], [None]], [before, after])
        rig.threads[0].release()
        rig.turns()
        self.assertEqual([[None], [None]], [before, after])

    def test_ack_from_queued(self) -> None:
        """A stronger level holds for what comes after, and nobody hears twice."""
        rig = Rig(self.kept, ack="queued")
        rig.threads[0].hold()
        before = rig.write("1")
        rig.turns()
        self.successResultOf(rig.replace(self.kept))
        after = rig.write("2")
        rig.turns()

        self.assertEqual([[None], []], [before, after])
        rig.threads[0].release()
        rig.turns()
        self.assertEqual([[None], [None]], [before, after])

    def test_stall_after_ack_from_queued(self) -> None:
        """In one queue, a stall fails what nobody has heard of, and keeps what was acknowledged."""
        rig = Rig(self.kept, ack="queued")
        rig.threads[0].hold()
        rig.write("1")
        rig.turns()
        rig.write("2")
        rig.turns()
        self.successResultOf(rig.replace(self.kept))
        after = rig.write("3")
        rig.turns()
        rig.wait(30)
        self.assertEqual(["kept: it does not answer"], [str(failure) for failure in after])
        rig.threads[0].release()
        rig.turns()

        self.assertEqual(["1", "2"], texts(self.kept))
        self.assertEqual(0, rig.chain.budget.messages)

    def test_next_message_once_queued(self) -> None:
        """A message that an acknowledgement brings when the exchange begins is stored, though that ends at once."""
        rig = Rig(self.kept, ack="queued")
        told = self.write_pipelined(rig)
        self.successResultOf(rig.replace(self.kept))

        self.assertEqual(([None, None], ["2", "3"]), (told, texts(self.kept)))
        self.assertEqual((0, 0), (rig.chain.budget.bytes, rig.chain.budget.messages))

    def test_next_message_once_refused(self) -> None:
        """The same, stored by the new observer, when the old one hangs and refuses the message before."""
        rig = Rig(self.old)
        rig.threads[0].hold()
        rig.write("1")
        rig.turns()
        rig.wait(30)
        told = self.write_pipelined(rig)
        self.successResultOf(rig.replace(self.new))

        self.assertEqual(["old: it does not answer", "None"], [str(failure) for failure in told])
        self.assertEqual((["3"], 0), (texts(self.new), rig.chain.budget.messages))

    def write_pipelined(self, rig: Rig) -> list[NotStored | None]:
        """Write message 2, whose acknowledgement writes message 3; return the list of both acknowledgements."""
        told: list[NotStored | None] = []

        def acknowledged(failure: NotStored | None) -> None:
            told.append(failure)
            rig.chain.write(make_message("3"), told.append)

        rig.chain.write(make_message("2"), acknowledged)
        return told

    def test_hurry(self) -> None:
        """An observer that waits for something outside is hurried before it has to go, and one that stays is not."""
        leaving, staying = WaitingObserver("leaving"), WaitingObserver("staying")
        rig = Rig(leaving, staying)
        self.successResultOf(rig.replace(staying, self.new))
        self.assertEqual([[True], []], [leaving.hurried, staying.hurried])
        self.successResultOf(rig.stop())

        self.assertEqual([[True], [True]], [leaving.hurried, staying.hurried])

    def test_hurry_fails(self) -> None:
        """One that can't even be hurried is reported, and waited for."""
        waiting = WaitingObserver()
        waiting.hurry = lambda: 1 / 0
        rig = Rig(waiting)
        self.successResultOf(rig.replace(self.new))

        self.assertEqual([("waiting", "division by zero", 0)], rig.reports)

    def test_bad_calls(self) -> None:
        """No observers, one twice, another exchange under way, or no chain that runs: nothing changes."""
        rig = Rig(self.old, start=False)
        self.failureResultOf(rig.replace(self.new), RuntimeError)
        rig.chain.start()
        self.failureResultOf(rig.replace(), ValueError)
        self.failureResultOf(rig.replace(self.new, self.new), ValueError)
        rig.threads[0].hold()
        rig.write("one")
        rig.chain.replace([self.new], ack="durable")
        self.failureResultOf(rig.replace(self.kept), RuntimeError)
        rig.chain.reopen()
        rig.threads[0].release()
        rig.turns()

        self.assertEqual(["new"], [state.spec for state in rig.chain.lanes()])

    def test_room_of_one_that_stays(self) -> None:
        """What an observer that stays can't store soon is refused early again, once the others are exchanged."""
        rig = Rig(self.kept, self.old)
        rig.threads[0].hold()
        rig.write("one")
        rig.turns()
        rig.chain._lanes.current[0].limit.cap = 1
        rig.chain.tick()
        self.assertTrue(rig.chain.budget.is_full())
        self.successResultOf(rig.replace(self.kept, self.new))
        self.assertTrue(rig.chain.budget.is_full())

    def test_limits_of_new_lanes(self) -> None:
        """Limits that were changed hold for observers that come later too."""
        rig = Rig(self.old)
        rig.chain.set_limits(max_bytes=10_000, max_messages=2, answer_time=5, pause_time=1)
        self.successResultOf(rig.replace(self.new))
        rig.threads[1].hold()
        told = rig.write("1", "2")
        self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)
        rig.turns()
        rig.wait(5)

        self.assertEqual([NotStored] * 2, [type(failure) for failure in told])


class FailedReplaceTests(SynchronousTestCase):
    """When a new observer can't be opened, the old ones go on."""

    def setUp(self) -> None:
        """Make observers; the last new one can't be opened."""
        self.kept, self.old = MemoryObserver("kept"), MemoryObserver("old")
        self.new, self.bad = MemoryObserver("new"), MemoryObserver("bad")
        self.bad.open_error = ConfigError("no such directory")

    def test_back(self) -> None:
        """New ones are closed again, old ones open again, and what was held is stored by them."""
        rig = Rig(self.kept, self.old)
        rig.threads[1].hold()
        rig.write("1")
        replaced = rig.chain.replace([self.kept, self.new, self.bad], ack="queued")
        told = rig.write("2")
        rig.threads[1].release()
        rig.turns()

        self.assertEqual("no such directory", str(self.failureResultOf(replaced, ConfigError).value))
        self.assertEqual([None], told)
        self.assertEqual([["1", "2"], ["1", "2"], []], [*map(texts, (self.kept, self.old, self.new))])
        self.assertEqual([True, True, False], [o.is_open for o in (self.kept, self.old, self.new)])
        self.assertEqual([], rig.reports)
        told = rig.write("3")
        rig.threads[1].hold()
        rig.turns()
        self.assertEqual([], told)

    def test_again(self) -> None:
        """After a failure the next try can succeed."""
        rig = Rig(self.old)
        self.failureResultOf(rig.replace(self.bad), ConfigError)
        self.bad.open_error = None
        self.successResultOf(rig.replace(self.bad))
        rig.write("1")
        rig.turns()

        self.assertEqual([[], ["1"]], [texts(self.old), texts(self.bad)])

    def test_no_way_back(self) -> None:
        """An old one that can't be opened again fails its messages; it is tried again, once a second at most."""
        rig = Rig(self.kept, self.old)
        tries: list[float] = []
        may_open: list[bool] = []

        def open_again() -> None:
            tries.append(rig.clock.seconds())
            if not may_open:
                raise OSError("gone")
            self.old.is_open = True

        self.old.open = open_again
        self.failureResultOf(rig.replace(self.kept, self.bad), ConfigError)
        why = "observer old can't be opened: gone"
        self.assertEqual([("old", why, 0)], rig.reports)
        self.assertEqual(0.0, rig.chain.lanes()[1].failed_ago)
        told = rig.write("1")
        rig.turns()
        rig.wait(0.9)
        told_too = rig.write("2")
        rig.turns()

        self.assertEqual([f"old: {why}"] * 2, [str(failure) for failure in told + told_too])
        self.assertEqual(["1", "2"], texts(self.kept))
        self.assertEqual([0.0], tries)
        self.assertFalse(rig.chain.is_stuck)
        rig.wait(0.1)
        told_later = rig.write("3")
        rig.turns()
        self.assertEqual([NotStored], [type(failure) for failure in told_later])
        may_open.append(True)
        rig.wait(1)
        self.assertIsNone(rig.chain.lanes()[1].failed_ago)
        told_at_last = rig.write("4")
        rig.turns()

        self.assertEqual([None], told_at_last)
        self.assertEqual([0.0, 1.0, 2.0], tries)
        self.assertEqual(["4"], texts(self.old))
        self.assertEqual(0, rig.chain.budget.messages)

    def test_stop_without_a_way_back(self) -> None:
        """One that is not open is not closed either."""
        rig = Rig(self.old)
        self.old.open_error = OSError("gone")
        self.failureResultOf(rig.replace(self.bad), ConfigError)
        self.old.close = lambda: self.fail("closed")
        self.successResultOf(rig.stop())

        self.assertTrue(rig.threads[0].is_stopped)


class HangingReplaceTests(SynchronousTestCase):
    """An observer that has to go and hangs is not waited for without end."""

    def setUp(self) -> None:
        """Make an old observer and a new one."""
        self.old, self.new = MemoryObserver("old"), MemoryObserver("new")

    def make_rig(self, ack: str = "durable", new: MemoryObserver | None = None) -> Rig:
        """Start a chain whose only observer hangs, and begin to replace it."""
        rig = Rig(self.old, ack=ack)
        rig.threads[0].hold()
        self.told = rig.write("1")
        rig.turns()
        self.told_too = rig.write("2")
        rig.turns()
        rig.clock.advance(10)
        self.replaced = rig.chain.replace([new or self.new], ack=ack)
        self.held = rig.write("3")
        return rig

    def test_left_alone(self) -> None:
        """After the answer_time the new ones are opened; the old one is closed when it comes back."""
        rig = self.make_rig()
        rig.wait(20)
        self.assertEqual(["old: it does not answer"] * 2, [str(failure) for failure in self.told + self.told_too])
        self.assertNoResult(self.replaced)
        rig.wait(10)
        rig.turns()

        self.successResultOf(self.replaced)
        self.assertEqual([None], self.held)
        self.assertEqual((True, True), (self.old.is_open, self.new.is_open))
        self.assertFalse(rig.chain.is_stuck)
        rig.threads[0].release()
        rig.turns()
        self.assertFalse(self.old.is_open)
        self.assertTrue(rig.threads[0].is_stopped)

    def test_slow(self) -> None:
        """One that is only slow is waited for no longer than that either."""
        rig = Rig(self.old)
        rig.threads[0].hold()
        told = rig.write("1")
        rig.turns()
        rig.clock.advance(5)
        replaced = rig.chain.replace([self.new], ack="durable")
        rig.chain.set_limits(max_bytes=1000, max_messages=10, answer_time=1000, pause_time=2)
        rig.wait(30)

        self.successResultOf(replaced)
        self.assertEqual(["old: it does not answer"], [str(failure) for failure in told])

    def test_hanging_reopen(self) -> None:
        """One that has nothing to store and still does not come back is left alone as well."""
        rig = Rig(self.old)
        rig.threads[0].hold()
        rig.chain.reopen()
        replaced = rig.chain.replace([self.new], ack="durable")
        self.assertNoResult(replaced)
        rig.wait(30)

        self.successResultOf(replaced)

    def test_back_to_it(self) -> None:
        """When the new one can't be opened, the old one stays, stalled until it comes back."""
        self.new.open_error = ConfigError("locked")
        rig = self.make_rig()
        rig.wait(20)
        rig.wait(10)
        self.failureResultOf(self.replaced, ConfigError)
        rig.turns()
        self.assertEqual(["old: it does not answer"], [str(failure) for failure in self.held])
        self.assertTrue(rig.chain.is_stuck)
        rig.threads[0].release()
        rig.turns()
        told = rig.write("4")
        rig.turns()

        self.assertEqual([None], told)
        self.assertTrue(self.old.is_open)

    def test_queued(self) -> None:
        """What was acknowledged is stored when the observer comes back, and only then is it closed."""
        rig = self.make_rig("queued")
        rig.wait(30)
        rig.turns()
        self.successResultOf(self.replaced)
        stopped = rig.chain.stop()
        rig.turns()
        self.assertNoResult(stopped)
        rig.threads[0].release()
        rig.turns()

        self.successResultOf(stopped)
        self.assertEqual([None] * 3, self.told + self.told_too + self.held)
        self.assertEqual([["1", "2"], ["3"]], [texts(self.old), texts(self.new)])
        self.assertFalse(self.old.is_open)

    def test_stop(self) -> None:
        """A stop in between takes nothing more, and stores what was held before it ends."""
        rig = self.make_rig()
        stopped, stopped_too = rig.chain.stop(), rig.chain.stop()
        self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)
        self.assertFalse(rig.chain.has_room(1))
        rig.threads[0].release()
        rig.turns()

        self.successResultOf(self.replaced)
        self.successResultOf(stopped)
        self.successResultOf(stopped_too)
        self.assertEqual([None] * 3, self.told + self.told_too + self.held)
        self.assertEqual([["1", "2"], ["3"]], [texts(self.old), texts(self.new)])
        self.assertEqual((False, False), (self.old.is_open, self.new.is_open))


class PreparedTests(SynchronousTestCase):
    """Messages that were prepared before they are written."""

    def test_once(self) -> None:
        """What was prepared is stored as it is."""
        rendered: list[str] = []

        def render(message: Message) -> bytes:
            rendered.append(str(message.values["MESSAGE"]))
            return rendered[-1].encode()

        observer = LinesObserver(render)
        rig = Rig(observer)
        message = make_message("one")
        prepared = rig.chain.prepare(message)
        self.assertEqual(0, rig.chain.budget.bytes)
        outcomes: list[NotStored | None] = []
        rig.chain.write(message, outcomes.append, prepared)
        self.assertEqual(3, rig.chain.budget.bytes)
        rig.turns()
        self.assertEqual((["one"], [b"one"], [None]), (rendered, observer.messages, outcomes))

    def test_other_observers(self) -> None:
        """When the observers have changed since, it is prepared for the new ones."""
        old, new = LinesObserver(lambda message: b"old"), LinesObserver(lambda message: b"new!")
        rig = Rig(old)
        message = make_message("one")
        prepared = rig.chain.prepare(message)
        rig.chain.replace([new], ack="durable")
        rig.turns()
        outcomes: list[NotStored | None] = []
        rig.chain.write(message, outcomes.append, prepared)
        rig.turns()
        self.assertEqual(([], [b"new!"], [None]), (old.messages, new.messages, outcomes))
