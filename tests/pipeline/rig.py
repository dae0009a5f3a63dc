"""A chain whose workers are stepped by a clock, for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.task import Clock

from tests.contracts.consumer_contract import MiB
from webhookrx.errors import NotStored
from webhookrx.interfaces import IMessageObserver
from webhookrx.message.message import Message
from webhookrx.pipeline.chain import Chain
from webhookrx.testing import MemoryObserver, StepWorker, make_message


class LinesObserver(MemoryObserver):
    """Prepares bytes, by a function that it may share with others."""

    def __init__(self, render: Callable[[Message], bytes], spec: str = "lines") -> None:
        super().__init__(spec)
        self.prepare = render


def texts(observer: MemoryObserver) -> list[str]:
    """Return what an observer stored."""
    return [str(message.values["MESSAGE"]) for message in observer.messages]


class Rig:
    """A started chain, its observers and workers, and what it reported."""

    def __init__(
        self,
        *observers: IMessageObserver,
        ack: str = "durable",
        max_bytes: int = MiB,
        max_messages: int = 100,
        max_batch_bytes: int = MiB,
        start: bool = True,
        patience: float = 30.0,
        pause_time: float = 2.0,
    ) -> None:
        self.clock = Clock()
        self.workers: list[StepWorker] = []
        self.reports: list[tuple[str, str, int]] = []
        self.stored: list[tuple[str, int, int, float]] = []
        self.chain = Chain(
            self.clock,
            observers,
            ack=ack,
            max_bytes=max_bytes,
            max_messages=max_messages,
            max_batch_bytes=max_batch_bytes,
            make_worker=self.make_worker,
            report=lambda spec, error, count: self.reports.append((spec, str(error), count)),
            patience=patience,
            pause_time=pause_time,
            stored=lambda *told: self.stored.append(told),
            monotonic=self.clock.seconds,
        )
        if start:
            self.chain.start()

    def make_worker(self, name: str) -> StepWorker:
        """Make a worker that can be held."""
        worker = StepWorker(self.clock, name)
        self.workers.append(worker)
        return worker

    def turns(self) -> None:
        """Let turns pass until nothing is left to do."""
        self.clock.advance(0)

    def wait(self, seconds: float) -> None:
        """Let time pass, and tick at the end of it, twice: a chain does not give up on an observer at first sight."""
        self.clock.advance(seconds)
        self.chain.tick()
        self.chain.tick()

    def write(self, *messages: str) -> list[NotStored | None]:
        """Write messages; return the list that their acknowledgements go to."""
        told: list[NotStored | None] = []
        for text in messages:
            self.chain.write(make_message(text), told.append)
        return told
