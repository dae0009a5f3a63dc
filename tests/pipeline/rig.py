"""A chain whose threads are stepped by a clock, for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from zope.interface import implementer

from tests.contracts.consumer_contract import MiB
from webhookrx.errors import NotStored
from webhookrx.interfaces import Backlog, IBufferingObserver, IMessageObserver, IWaitingObserver
from webhookrx.message.message import Message
from webhookrx.pipeline.chain import Chain
from webhookrx.pipeline.observer_thread import Done, Work
from webhookrx.store_counts import StoreCounts, TakenCounts
from webhookrx.testing import MemoryObserver, StepThread, make_message
from webhookrx.transport.turn_end import TurnEnd


class LinesObserver(MemoryObserver):
    """Prepares bytes, by a function that it may share with others."""

    def __init__(self, render: Callable[[Message], bytes], spec: str = "lines") -> None:
        super().__init__(spec)
        self.prepare = render


@implementer(IWaitingObserver)
class WaitingObserver(MemoryObserver):
    """Notes that it is hurried, and whether it was open then."""

    def __init__(self, spec: str = "waiting") -> None:
        super().__init__(spec)
        self.hurried: list[bool] = []

    def hurry(self) -> None:
        """Note it."""
        self.hurried.append(self.is_open)


@implementer(IBufferingObserver)
class BufferingObserver(WaitingObserver):
    """Notes whether it was open when it was to finish."""

    def __init__(self, spec: str = "buffering") -> None:
        super().__init__(spec)
        self.finished: list[bool] = []
        self.finish_error: Exception | None = None
        self.inner = MemoryObserver()
        self.counts = StoreCounts()

    def take_counts(self) -> TakenCounts:
        """Return what the test has counted."""
        return self.counts.take()

    def backlog(self) -> Backlog:
        """Nothing waits."""
        return Backlog(0, 0, None, 0, 0, None, False)

    def finish(self) -> None:
        """Note it."""
        self.finished.append(self.is_open)
        if self.finish_error is not None:
            raise self.finish_error


def texts(observer: MemoryObserver) -> list[str]:
    """Return what an observer stored."""
    return [str(message.values["MESSAGE"]) for message in observer.messages]


class NotingThread(StepThread):
    """
    Tells whether it is at work.

    @ivar waits: for each time that somebody waited for it, whether it was back.
    """

    works = False

    def __init__(self, clock: Clock, name: str) -> None:
        super().__init__(clock, name)
        self.waits: list[bool] = []

    def wait(self, seconds: float) -> bool:
        """Do the work now, unless it is held up."""
        self.waits.append(super().wait(seconds))
        return self.waits[-1]

    def run(self, work: Work, done: Done) -> None:
        """Do the work in a turn to come, and note when that is."""

        def note() -> object:
            self.works = True
            try:
                return work()
            finally:
                self.works = False

        super().run(note, done)


class Rig:
    """A started chain, its observers and threads, and what it reported."""

    def __init__(
        self,
        *observers: IMessageObserver,
        ack: str = "durable",
        max_bytes: int = MiB,
        max_messages: int = 100,
        max_batch_bytes: int = MiB,
        start: bool = True,
        answer_time: float = 30.0,
        pause_time: float = 2.0,
        turn_end: TurnEnd | None = None,
    ) -> None:
        self.clock = Clock()
        self.threads: list[NotingThread] = []
        self.reports: list[tuple[str, str, int]] = []
        self.stored: list[tuple[str, int, int, float]] = []
        self.counted: dict[str, TakenCounts] = {}
        self.chain = Chain(
            self.clock,
            observers,
            ack=ack,
            max_bytes=max_bytes,
            max_messages=max_messages,
            max_batch_bytes=max_batch_bytes,
            make_thread=self.make_thread,
            report=lambda spec, error, count: self.reports.append((spec, str(error), count)),
            answer_time=answer_time,
            pause_time=pause_time,
            stored=lambda *told: self.stored.append(told),
            counted=self.count,
            monotonic=self.clock.seconds,
            at_turn_end=(turn_end or TurnEnd()).add,
        )
        if start:
            self.chain.start()

    def count(self, spec: str, taken: TakenCounts) -> None:
        """Add up what was counted."""
        self.counted[spec] = self.counted[spec] + taken if spec in self.counted else taken

    def make_thread(self, name: str) -> NotingThread:
        """Make a thread that can be held."""
        thread = NotingThread(self.clock, name)
        self.threads.append(thread)
        return thread

    def turns(self) -> None:
        """Let turns pass until nothing is left to do."""
        self.clock.advance(0)

    def replace(self, *observers: IMessageObserver, ack: str = "durable") -> Deferred[None]:
        """Begin to replace the observers, and let turns pass until nothing is left to do."""
        result = self.chain.replace(observers, ack=ack)
        self.turns()
        return result

    def stop(self) -> Deferred[None]:
        """Begin to stop, and let turns pass until nothing is left to do."""
        result = self.chain.stop()
        self.turns()
        return result

    def wait(self, seconds: float) -> None:
        """Let time pass, and tick at the end of it, twice: a chain does not give up on an observer at first sight."""
        self.clock.advance(seconds)
        self.chain.tick()
        self.chain.tick()
        self.turns()

    def write(self, *messages: str) -> list[NotStored | None]:
        """Write messages; return the list that their acknowledgements go to."""
        told: list[NotStored | None] = []
        for text in messages:
            self.chain.write(make_message(text), told.append)
        return told
