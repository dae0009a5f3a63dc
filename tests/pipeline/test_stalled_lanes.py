"""An observer that does not answer, beside others that do."""

from __future__ import annotations

from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import BufferingObserver, LinesObserver, Rig, texts
from webhookrx.errors import NotStored, Rejected
from webhookrx.interfaces import LaneStatus
from webhookrx.message.message import Message
from webhookrx.testing import MemoryObserver, make_message

#: What a stalled observer's messages are acknowledged with.
NO_ANSWER = "stuck: it does not answer"


def words(told: list[NotStored | None]) -> list[str]:
    """Return why messages are not stored, C{"safe"} for those that are."""
    return ["safe" if failure is None else str(failure) for failure in told]


class StallTests(SynchronousTestCase):
    """A store that runs for too long fails what waits for it, and holds nobody else up."""

    def setUp(self) -> None:
        """Make an observer whose thread hangs, and a good one."""
        self.stuck, self.good = MemoryObserver("stuck"), MemoryObserver("good")

    def make_rig(self, ack: str = "durable", answer_time: float = 30.0) -> Rig:
        """Start a chain to both of them."""
        rig = Rig(self.stuck, self.good, ack=ack, answer_time=answer_time)
        rig.threads[0].hold()
        return rig

    def test_in_time(self) -> None:
        """A store that comes back within the answer_time is no stall."""
        rig = self.make_rig()
        told = rig.write("one")
        rig.turns()
        rig.wait(29.5)
        self.assertFalse(rig.chain.is_stuck)
        rig.threads[0].release()
        rig.turns()
        rig.wait(30)

        self.assertEqual(["safe"], words(told))
        self.assertFalse(rig.chain.is_stuck)

    def test_stall(self) -> None:
        """What is being stored and what waits fails, its room is free again, and the others have it."""
        rig = self.make_rig()
        told = rig.write("one")
        rig.turns()
        told_later = rig.write("two", "three")
        rig.turns()
        self.assertEqual([], told + told_later)
        rig.wait(30)

        self.assertEqual([NO_ANSWER] * 3, words(told + told_later))
        self.assertEqual(["one", "two", "three"], texts(self.good))
        self.assertEqual((0, 0), (rig.chain.budget.bytes, rig.chain.budget.messages))
        self.assertEqual([("stuck", "it does not answer", 3)], rig.reports)
        self.assertTrue(rig.chain.is_stuck)

    def test_bytes(self) -> None:
        """The bytes of what fails wait no more."""
        rig = self.make_rig()
        rig.write("one")
        rig.turns()
        lane = rig.chain._lanes.current[0]
        self.assertGreater(lane.waiting, 0)
        rig.wait(30)

        self.assertEqual(0, lane.waiting)

    def test_gathered(self) -> None:
        """What the running turn has gathered fails too, though a tick comes before its end."""
        rig = self.make_rig()
        rig.write("one")
        rig.turns()
        rig.clock.advance(30)
        rig.chain.tick()
        told = rig.write("two")
        rig.chain.tick()
        rig.turns()

        self.assertEqual([NO_ANSWER], words(told))
        self.assertEqual(["one", "two"], texts(self.good))

    def test_during_a_stall(self) -> None:
        """What comes fails once the others have it, and takes no room."""
        rig = self.make_rig()
        rig.write("one")
        rig.turns()
        rig.wait(30)
        rig.threads[1].hold()
        told = rig.write("two")
        rig.turns()
        self.assertEqual([], told)
        rig.threads[1].release()
        rig.turns()

        self.assertEqual([NO_ANSWER], words(told))
        self.assertEqual(["one", "two"], texts(self.good))
        self.assertEqual(0, rig.chain.budget.messages)
        self.assertEqual(("stuck", "it does not answer", 1), rig.reports[-1])

    def test_end(self) -> None:
        """Once the store is back, messages are stored again; its late word changes nothing."""
        rig = self.make_rig()
        told = rig.write("one")
        rig.turns()
        rig.wait(30)
        reports = list(rig.reports)
        rig.threads[0].release()
        rig.turns()
        told_later = rig.write("two")
        rig.turns()

        self.assertEqual([[NO_ANSWER], ["safe"]], [words(told), words(told_later)])
        self.assertEqual(["one", "two"], texts(self.stuck))
        self.assertFalse(rig.chain.is_stuck)
        self.assertEqual(reports, rig.reports)
        self.assertEqual(0, rig.chain.budget.messages)

    def test_end_in_failure(self) -> None:
        """A late failure ends the stall too, and is seen as the state of the observer."""
        rig = self.make_rig()
        rig.write("one")
        rig.turns()
        rig.wait(30)
        self.stuck.store_error = OSError("broken")
        with capturedLogs() as events:
            rig.threads[0].release()
            rig.turns()

        self.assertIn("what it was given last is not stored", formatEvent(events[0]))
        self.assertFalse(rig.chain.is_stuck)
        self.assertEqual(0.0, rig.chain.lanes()[0].failed_ago)

    def test_room_of_the_others(self) -> None:
        """What was worth having in front of an observer does not keep the others' messages out once it has stalled."""
        rig = self.make_rig()
        rig.write("one")
        rig.turns()
        (stuck, _) = rig.chain._lanes.current
        stuck.limit.cap = 1
        rig.chain._update_cap()
        self.assertTrue(rig.chain.budget.is_full())
        rig.wait(30)
        rig.write("two")

        self.assertFalse(rig.chain.budget.is_full())

    def test_waiting(self) -> None:
        """What it has given up on does not wait for it any more."""
        rig = self.make_rig()
        (stuck, _) = rig.chain._lanes.current
        rig.threads[0].hold()
        rig.write("one", "two")
        rig.turns()
        self.assertGreater(stuck.waiting, 0)
        rig.wait(30)

        self.assertEqual(0, stuck.waiting)

    def test_log(self) -> None:
        """The beginning and the end of a stall are one line each, however long it lasts."""
        rig = self.make_rig()
        rig.clock.advance(50)
        with capturedLogs() as events:
            rig.write("one")
            rig.turns()
            for _ in range(10):
                rig.wait(10)
            rig.threads[0].release()
            rig.turns()
        lines = [(event["log_level"].name, formatEvent(event)) for event in events]

        self.assertEqual(["error", "warn"], [level for level, _ in lines])
        self.assertIn("Observer stuck has not answered for 30.0 s", lines[0][1])
        self.assertIn("Observer stuck answers again, after 100.0 s: what it was given last is stored", lines[1][1])

    def test_gathered_at_the_end(self) -> None:
        """What is gathered in the turn in which the store comes back is stored."""
        rig = self.make_rig()
        rig.write("one")
        rig.turns()
        rig.wait(30)

        def write_more(message: Message) -> None:
            if message.values["MESSAGE"] == "one":
                rig.write("two")

        self.stuck.judge = write_more
        rig.threads[0].release()
        rig.turns()

        self.assertEqual(["one", "two"], texts(self.stuck))

    def test_failed_before(self) -> None:
        """A message that could not be prepared keeps its own reason."""
        lines = LinesObserver(lambda message: 1 / 0, "lines")
        rig = Rig(self.stuck, lines)
        rig.threads[0].hold()
        told = rig.write("one")
        rig.turns()
        rig.wait(30)

        self.assertEqual(["lines: division by zero"], words(told))

    def test_alone(self) -> None:
        """The only observer that stalls fails each message in a later turn than its write."""
        rig = Rig(self.stuck)
        rig.threads[0].hold()
        rig.write("one")
        rig.turns()
        rig.wait(30)
        told = rig.write("two")
        self.assertEqual([], told)
        rig.turns()

        self.assertEqual([NO_ANSWER], words(told))

    def test_write_from_acknowledge(self) -> None:
        """Who writes again as soon as it hears of the failure is heard."""
        rig = self.make_rig()
        told: list[list[NotStored | None]] = []
        rig.write("one")
        rig.turns()
        rig.chain.write(make_message("two"), lambda _: told.append(rig.write("three")))
        rig.turns()
        rig.wait(30)
        rig.turns()

        self.assertEqual([NO_ANSWER], words(told[0]))

    def test_stop(self) -> None:
        """A stop waits for the hanging store, and closes the observer after it."""
        rig = self.make_rig()
        rig.write("one")
        rig.turns()
        rig.wait(30)
        stopped = rig.chain.stop()
        rig.turns()
        self.assertNoResult(stopped)
        self.assertEqual((True, False), (self.stuck.is_open, self.good.is_open))
        rig.threads[0].release()
        rig.turns()

        self.successResultOf(stopped)
        self.assertFalse(self.stuck.is_open)

    def test_hanging_reopen(self) -> None:
        """A reopen that hangs stalls the lane as soon as something waits behind it."""
        rig = self.make_rig()
        rig.chain.reopen()
        rig.turns()
        rig.wait(100)
        self.assertFalse(rig.chain.is_stuck)
        told = rig.write("one")
        rig.turns()
        rig.wait(30)

        self.assertEqual([NO_ANSWER], words(told))

    def test_answer_time_changes(self) -> None:
        """A shorter answer_time holds from the next tick on."""
        rig = self.make_rig()
        told = rig.write("one")
        rig.turns()
        rig.wait(5)
        self.assertEqual([], told)
        rig.chain.set_limits(max_bytes=1000, max_messages=10, answer_time=5, pause_time=2)
        rig.wait(0)

        self.assertEqual([NO_ANSWER], words(told))

    def test_stopped_process(self) -> None:
        """After a minute in which nothing ran at all, a store gets the moment that it needs to come back."""
        rig = self.make_rig()
        told = rig.write("one")
        rig.turns()
        rig.clock.advance(60)
        rig.chain.tick()
        self.assertFalse(rig.chain.is_stuck)
        rig.threads[0].release()
        rig.clock.advance(0.5)
        rig.chain.tick()

        self.assertEqual(["safe"], words(told))

    def test_queued(self) -> None:
        """What was acknowledged as queued stays queued; what comes during the stall is not taken."""
        rig = self.make_rig("queued")
        told = rig.write("one")
        rig.turns()
        told_too = rig.write("two")
        rig.turns()
        rig.wait(30)
        told_later = rig.write("three")
        rig.turns()

        self.assertEqual(["safe", "safe"], words(told + told_too))
        self.assertEqual([NO_ANSWER], words(told_later))
        self.assertEqual(2, rig.chain.budget.messages)
        self.assertEqual(["one", "two", "three"], texts(self.good))
        rig.threads[0].release()
        rig.turns()
        told_at_last = rig.write("four")
        rig.turns()

        self.assertEqual(["safe"], words(told_at_last))
        self.assertEqual(["one", "two", "four"], texts(self.stuck))
        self.assertEqual(0, rig.chain.budget.messages)


class StateTests(SynchronousTestCase):
    """How observers are doing can be seen."""

    def test_idle(self) -> None:
        """An observer with nothing to do has nothing to tell."""
        (state,) = Rig(MemoryObserver()).chain.lanes()

        self.assertEqual(LaneStatus("memory", 0, 0, False, None, None), state)

    def test_waiting(self) -> None:
        """What is being stored and what waits is counted, until nobody waits for it any more."""
        rig = Rig(LinesObserver(lambda message: b"12345"), MemoryObserver("good"))
        rig.threads[0].hold()
        rig.write("one")
        rig.turns()
        rig.write("two", "three")
        rig.turns()
        rig.clock.advance(3)
        state, good = rig.chain.lanes()

        self.assertEqual((3, False), (state.messages, state.stalled))
        self.assertEqual(rig.chain.budget.message_bytes, state.bytes)
        self.assertEqual((0, 0), (good.messages, good.bytes))
        rig.wait(27)
        state, good = rig.chain.lanes()
        self.assertEqual((0, True), (state.messages, state.stalled))

    def test_failing(self) -> None:
        """Why the last store failed stays to be seen until one succeeds."""
        observer = MemoryObserver()
        rig = Rig(observer)
        observer.store_error = OSError("disk full")
        rig.write("one")
        rig.turns()
        rig.clock.advance(5)
        self.assertEqual(5.0, rig.chain.lanes()[0].failed_ago)
        observer.store_error = None
        rig.write("two")
        rig.turns()

        self.assertIsNone(rig.chain.lanes()[0].failed_ago)

    def test_nothing_to_store(self) -> None:
        """A batch of which nothing could be prepared says nothing about the observer: it stays as it was."""
        observer = LinesObserver(lambda message: b"x" if message.values["MESSAGE"] != "bad" else 1 / 0)
        rig = Rig(observer)
        rig.write("bad")
        rig.turns()
        self.assertIsNone(rig.chain.lanes()[0].failed_ago)
        observer.store_error = OSError("disk full")
        rig.write("one")
        rig.turns()
        rig.write("bad")
        rig.turns()

        self.assertEqual(([1], 0.0), (observer.batch_sizes, rig.chain.lanes()[0].failed_ago))

    def test_failing_messages(self) -> None:
        """Messages that are refused for good, or one that fails among others, say nothing about the observer."""
        observer = MemoryObserver()
        rig = Rig(observer)
        for judge, failing in (
            (lambda message: Rejected("too long"), None),
            (lambda message: ValueError("no") if message.values["MESSAGE"] == "one" else None, None),
            (lambda message: ValueError("no"), 0.0),
        ):
            observer.judge = judge
            rig.write("one", "two")
            rig.turns()

            self.assertEqual(failing, rig.chain.lanes()[0].failed_ago)

    def test_backlog(self) -> None:
        """One that keeps messages for another tells how many; one that can't is one without, and the log says so."""
        observer = BufferingObserver()
        rig = Rig(observer)
        self.assertEqual(observer.backlog(), rig.chain.lanes()[0].backlog)
        observer.backlog = lambda: 1 / 0

        self.assertIsNone(rig.chain.lanes()[0].backlog)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_stored(self) -> None:
        """Each store is told with its messages, bytes and seconds, a failed one too; a batch of nothing is not."""
        observer = LinesObserver(lambda message: b"12345" if message.values["MESSAGE"] != "bad" else 1 / 0)
        rig = Rig(observer)
        store = observer.store

        def store_slowly(batch: object) -> object:
            rig.clock.rightNow += 0.25
            return store(batch)

        observer.store = store_slowly
        rig.write("one", "two")
        rig.turns()
        observer.store_error = OSError("broken")
        rig.write("three")
        rig.turns()
        rig.write("bad")
        rig.turns()

        self.assertEqual([("lines", 2, 10, 0.25), ("lines", 1, 5, 0.25)], rig.stored)
