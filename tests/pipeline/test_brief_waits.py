"""Stores that are back before the turn that began them has ended."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import Rig, texts
from webhookrx.errors import NotStored
from webhookrx.pipeline.observer_thread import ENOUGH
from webhookrx.testing import MemoryObserver, make_message


def written(spec: str = "written") -> MemoryObserver:
    """Make an observer that does not sync."""
    return MemoryObserver(spec, "written")


class PromptStoreTests(SynchronousTestCase):
    """The reactor waits a moment for an observer that only has to write, and does not go on when that is in vain."""

    def test_same_turn(self) -> None:
        """Messages are acknowledged at the end of the turn that they came in."""
        observer = written()
        rig = Rig(observer, ack="written")
        told = rig.write("one", "two")
        (end_of_turn,) = rig.clock.getDelayedCalls()
        end_of_turn.func()

        self.assertEqual([None, None], told)
        self.assertEqual(([2], [True]), (observer.batch_sizes, rig.threads[0].waits))

    def test_failure(self) -> None:
        """So are messages that could not be stored."""
        observer = written()
        rig = Rig(observer, ack="written")
        observer.store_error = OSError("broken")
        told = rig.write("one")
        rig.turns()

        self.assertEqual([NotStored], [type(failure) for failure in told])
        self.assertEqual([True], rig.threads[0].waits)

    def test_not_waited_for(self) -> None:
        """Nobody waits for a sync, nor where the answer does not."""
        for promise, ack in (("durable", "durable"), ("durable", "written"), ("written", "queued")):
            rig = Rig(MemoryObserver("memory", promise), ack=ack)
            told = rig.write("one")
            rig.turns()

            self.assertEqual(([], [None]), (rig.threads[0].waits, told), (promise, ack))

    def test_in_vain(self) -> None:
        """Who was waited for in vain several times is not waited for again, but once after each look at it."""
        observer = written()
        rig = Rig(observer, ack="written")
        thread = rig.threads[0]

        def store(*, late: bool) -> None:
            if late:
                thread.hold()
            told = rig.write("one")
            rig.turns()
            thread.release()
            rig.turns()
            self.assertEqual([None], told)

        for _ in range(ENOUGH + 2):
            store(late=True)
        self.assertEqual([False] * ENOUGH, thread.waits)
        for _ in range(2):
            rig.chain.tick()
            store(late=True)
            store(late=False)
        self.assertEqual([False] * (ENOUGH + 2), thread.waits)
        rig.chain.tick()
        store(late=False)
        store(late=True)
        store(late=False)

        self.assertEqual([True, False, True], thread.waits[ENOUGH + 2 :])

    def test_still_at_work(self) -> None:
        """What waits behind a store that takes its time is not waited for, look or no look."""
        rig = Rig(written(), ack="written")
        thread = rig.threads[0]
        thread.hold()
        for text in "123":
            rig.write(text)
            rig.turns()
            rig.chain.tick()

        self.assertEqual([False], thread.waits)

    def test_stalled(self) -> None:
        """Nobody waits for an observer that does not answer."""
        rig = Rig(written(), ack="written", answer_time=30.0)
        thread = rig.threads[0]
        thread.hold()
        rig.write("one")
        rig.turns()
        rig.wait(31.0)
        told = rig.write("two")
        rig.turns()

        self.assertEqual([NotStored], [type(failure) for failure in told])
        self.assertEqual([False], thread.waits)

    def test_nothing_outside_a_turn(self) -> None:
        """A flush waits for nobody, so that no acknowledgement comes out of it."""
        rig = Rig(written(), ack="written")
        told = rig.write("one")
        rig.chain.flush()
        self.assertEqual(([], []), (told, rig.threads[0].waits))
        rig.turns()

        self.assertEqual([None], told)

    def test_several(self) -> None:
        """All get the batch before any is waited for; when one takes its time, nobody waits for those behind it."""
        for held, waits in ((None, [[True], [True]]), (0, [[False], []]), (1, [[True], [False]])):
            rig = Rig(written("a"), written("b"), ack="written")
            if held is not None:
                rig.threads[held].hold()
            told = rig.write("one")
            rig.turns()

            self.assertEqual(waits, [thread.waits for thread in rig.threads])
            self.assertEqual([] if held is not None else [None], told)

    def test_write_from_acknowledge(self) -> None:
        """What is written out of an acknowledgement belongs to a turn of its own."""
        observer = written()
        rig = Rig(observer, ack="written")
        told: list[NotStored | None] = []
        rig.chain.write(make_message("one"), lambda failure: rig.chain.write(make_message("two"), told.append))
        rig.turns()

        self.assertEqual(([1, 1], [None]), (observer.batch_sizes, told))

    def test_end_from_acknowledge(self) -> None:
        """The chain may be stopped, and its observers exchanged, out of an acknowledgement."""
        old, new = [written("a"), written("b")], written("c")
        rig = Rig(*old, ack="written")
        rig.chain.write(make_message("one"), lambda failure: rig.chain.replace([new], ack="durable"))
        rig.turns()
        self.assertEqual([["one"], ["one"]], [texts(observer) for observer in old])
        rig.chain.write(make_message("two"), lambda failure: rig.chain.stop())
        rig.turns()

        self.assertEqual(["two"], texts(new))
        self.assertEqual([False] * 3, [observer.is_open for observer in (*old, new)])
