"""Batches: what comes in together goes out together."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import LinesObserver, Rig, texts
from webhookrx.message.message import Message
from webhookrx.testing import MemoryObserver


class BatchTests(SynchronousTestCase):
    """What comes in together goes out together."""

    def test_one_turn(self) -> None:
        """A turn's messages are one batch."""
        observer = MemoryObserver()
        rig = Rig(observer)
        rig.write("one", "two", "three")
        rig.turns()

        self.assertEqual([3], observer.batch_sizes)

    def test_age(self) -> None:
        """The queue in front of the observer is told how long the oldest of a store has waited for its end."""
        rig = Rig(MemoryObserver())
        queue = rig.chain._lanes.current[0].limit
        told: list[float] = []
        self.patch(type(queue), "stored", lambda self, now, size, seconds, waiting, age: told.append(age))
        rig.clock.advance(100)
        rig.threads[0].hold()
        rig.write("one")
        rig.turns()
        rig.clock.advance(3)
        for text, seconds in (("two", 1.5), ("three", 0.5)):
            rig.write(text)
            rig.turns()
            rig.clock.advance(seconds)
        rig.threads[0].release()
        rig.turns()
        self.assertEqual([5.0, 2.0], told)

    def test_during_a_sync(self) -> None:
        """What several turns gather during one sync is one batch, the running turn's messages included."""
        observer = MemoryObserver()
        rig = Rig(observer)
        thread = rig.threads[0]
        thread.hold()
        rig.write("one")
        rig.turns()
        rig.write("two")
        rig.turns()

        def write_more(message: Message) -> None:
            # Work and its outcome are one step of the thread: this comes in the turn of the outcome, just before it.
            if observer.batch_sizes == [1]:
                rig.write("three")

        observer.judge = write_more
        thread.release()
        rig.turns()

        self.assertEqual(["one", "two", "three"], texts(observer))
        self.assertEqual([1, 2], observer.batch_sizes)

    def test_one_batch_in_flight(self) -> None:
        """While an observer stores, nothing more is given to its thread."""
        observer = MemoryObserver()
        rig = Rig(observer)
        rig.threads[0].hold()
        for text in "123":
            rig.write(text)
            rig.turns()

        self.assertEqual(1, len(rig.threads[0]._tasks))
        rig.threads[0].release()
        rig.turns()
        self.assertEqual([1, 2], observer.batch_sizes)

    def test_bytes_of_a_batch(self) -> None:
        """A batch holds no more than its bytes, or one message; order stays."""
        cases = [
            ([2, 2, 2, 2], [2, 2]),
            ([9, 1, 1], [1, 2]),
            ([1, 9, 1], [1, 1, 1]),
            ([4], [1]),
            ([1, 1, 1, 1, 1], [4, 1]),
        ]
        for sizes, batch_sizes in cases:
            observer = LinesObserver(lambda message: b"x" * int(str(message.values["MESSAGE"])))
            rig = Rig(observer, max_batch_bytes=4)
            told = rig.write(*map(str, sizes))
            rig.turns()

            self.assertEqual(batch_sizes, observer.batch_sizes, sizes)
            self.assertEqual([b"x" * size for size in sizes], observer.messages)
            self.assertEqual([None] * len(sizes), told)

    def test_joined_up_to_the_bytes(self) -> None:
        """Turns are joined up to the bytes of a batch."""
        observer = LinesObserver(lambda message: b"xx")
        rig = Rig(observer, max_batch_bytes=4)
        rig.threads[0].hold()
        for text in "12345":
            rig.write(text)
            rig.turns()
        rig.threads[0].release()
        rig.turns()

        self.assertEqual([1, 2, 2], observer.batch_sizes)

    def test_late_end_of_turn(self) -> None:
        """When a wall clock that was set back holds up the end of a turn, the next tick hands over what it gathered."""
        observer = MemoryObserver()
        rig = Rig(observer)
        rig.write("one")
        (end_of_turn,) = rig.clock.getDelayedCalls()
        end_of_turn.delay(3600)
        rig.chain.tick()
        rig.turns()
        self.assertEqual(["one"], texts(observer))

    def test_flush(self) -> None:
        """flush() hands over at once what the turn's end would, and then there is nothing left for it."""
        observer = MemoryObserver()
        rig = Rig(observer)
        rig.chain.flush()
        told = rig.write("one")
        # As with a wall clock that was set back: the turn's end lies in the future.
        (end_of_turn,) = rig.clock.getDelayedCalls()
        end_of_turn.delay(3600)
        rig.chain.flush()
        rig.chain.flush()
        rig.turns()

        self.assertEqual([None], told)
        self.assertEqual([1], observer.batch_sizes)
        self.assertEqual([], rig.clock.getDelayedCalls())
