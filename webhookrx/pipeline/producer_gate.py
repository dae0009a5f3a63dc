"""
Pauses the one producer of a chain when too much waits, and resumes it once enough has left.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from twisted.logger import Logger

if TYPE_CHECKING:
    from twisted.internet.interfaces import IPushProducer

    from webhookrx.pipeline.budget import Budget

_log = Logger()


#: Seconds without pressure that end a time of pressure.
CALM = 1.0


class ProducerGate:
    """
    The producer's half of C{twisted.internet.interfaces.IConsumer}, on the marks of a L{Budget}.

    Pausing helps over a moment. When it has to be done again and again, senders wait without end and without a word; so
    in a time of pressure nobody is paused for longer than C{pause_time} in all, and who finds no room then is told so.

    @param monotonic: seconds on a clock that nobody sets.
    @ivar pause_time: seconds, from the first pause, in which the producer may be paused.
    """

    def __init__(self, budget: Budget, monotonic: Callable[[], float], pause_time: float) -> None:
        self.pause_time = pause_time
        self._budget = budget
        self._monotonic = monotonic
        self._producer: IPushProducer | None = None
        self._paused = False
        self._pressed_since = -inf
        self._pressed = -inf  # when it was last

    def register(self, producer: IPushProducer, streaming: bool) -> None:
        """
        Take the producer, and pause it at once when too much waits already.

        @raise RuntimeError: there is one already.
        @raise ValueError: it is a pull producer; nobody can pull a request out of a sender.
        """
        if self._producer is not None:
            raise RuntimeError("a producer is registered already")
        if not streaming:
            raise ValueError("only push producers (streaming=True) are supported")
        self._producer = producer
        self.grew()

    def unregister(self) -> None:
        """Forget the producer, as it is."""
        self._producer = None
        self._paused = False

    def stop(self) -> None:
        """Tell the producer that nothing more is taken, and forget it."""
        producer, self._producer, self._paused = self._producer, None, False
        if producer is not None:
            with _log.failuresHandled("Stopping the producer failed"):
                producer.stopProducing()

    def grew(self) -> None:
        """Look at the budget after something was added to it."""
        if not self._paused and self._producer is not None and self._budget.is_above_high_mark():
            now = self._monotonic()
            if now - self._pressed >= CALM:
                self._pressed_since = now
            self._pressed = now
            if now - self._pressed_since >= self.pause_time:
                return
            # First the fact, then the call: a producer may call back into the chain from here.
            self._paused = True
            with _log.failuresHandled("Pausing the producer failed"):
                self._producer.pauseProducing()

    def shrank(self) -> None:
        """Look at the budget after something was taken from it."""
        if self._budget.is_below_low_mark():
            self.open()

    def open(self) -> None:
        """Resume the producer, however much waits, until more comes."""
        if self._paused and self._producer is not None:
            self._paused = False
            self._pressed = self._monotonic()
            with _log.failuresHandled("Resuming the producer failed"):
                self._producer.resumeProducing()
