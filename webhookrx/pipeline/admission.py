"""
Admission control: what may wait for observers, when the producer pauses, and how soon a refused sender should retry.

No reactor; clocks come in as arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import ceil, exp, inf
from typing import TYPE_CHECKING

import msgspec
from twisted.logger import Logger

from webhookrx.message.message import Message
from webhookrx.settings import largest_body

if TYPE_CHECKING:
    from twisted.internet.interfaces import IPushProducer

    from webhookrx.interfaces import Prepared
    from webhookrx.message.message import Value

#: Seconds without pressure that end a time of pressure.
CALM = 1.0
#: Seconds that count for most of a rate.
MEMORY = 2.0
#: Seconds after which a sender should retry, at most.
LONGEST = 60

_log = Logger()


class Budget:
    """
    Counts the bytes of bodies in progress, and the messages that wait for their last acknowledgement.

    Senders who begin bodies and do not end them must not keep others out: large bodies in progress get half of the
    bytes, small ones three quarters, and the rest is for messages. A message always finds room when no other waits,
    however large it has become: what passed as a body must not be refused for ever. One message of more than half of
    the bytes may wait beside the limit, so that the others are neither refused nor paused while it is stored.

    The marks look at messages alone: those leave by themselves once observers have them safe. Bodies that senders
    have not finished do not, so pausing the senders because of them would last for ever.

    @ivar bytes: reserved bytes and the bytes of messages together.
    @ivar message_bytes: the bytes of messages.
    @ivar messages: messages that wait.
    @ivar is_high: messages hold more than three quarters of either limit, so the producer should pause.
    @ivar ample: while no more than this many bytes are counted, only the number of messages can be too high. Nearly
        always that answers all questions; -1 when it answers none.
    """

    __slots__ = (
        "_beside",
        "_cap",
        "_high_bytes",
        "_high_messages",
        "_large",
        "_low_bytes",
        "_low_messages",
        "_max_bytes",
        "_max_messages",
        "_max_reserved",
        "_max_reserved_small",
        "ample",
        "bytes",
        "is_high",
        "message_bytes",
        "messages",
    )

    def __init__(self, max_bytes: int, max_messages: int) -> None:
        self._cap = inf
        self._beside = 0  # bytes of the one large message beside the limit
        self.bytes = 0
        self.message_bytes = 0
        self.messages = 0
        self.resize(max_bytes, max_messages)

    def resize(self, max_bytes: int, max_messages: int) -> None:
        """Set other limits. What is counted stays counted, even above them."""
        self._max_bytes = max_bytes
        self._large = max_bytes // 2
        self._max_messages = max_messages
        self._max_reserved = largest_body(max_bytes)
        self._max_reserved_small = max_bytes * 3 // 4
        self._high_bytes = max_bytes * 3 // 4
        self._high_messages = max_messages * 3 // 4
        self._low_bytes = max_bytes // 2
        self._low_messages = max_messages // 2
        self.cap = self._cap
        self._mark()

    @property
    def cap(self) -> float:
        """
        While messages hold this many bytes nothing more is admitted, bodies included; infinite for no cap. It is
        compared before a message is added, not after, so that a large one passes too.
        """
        return self._cap

    @cap.setter
    def cap(self, cap: float) -> None:
        self._cap = cap
        # No other limit is as low as that of large bodies.
        self.ample = self._max_reserved if cap == inf else -1

    def has_room(self, size: int, *, small: bool = False) -> bool:
        """Tell whether C{size} bytes of a body in progress would find room now."""
        total = self.bytes + size
        if total <= self.ample and self.messages < self._max_messages:
            return True
        beside = self._beside
        most = self._max_reserved_small if small else self._max_reserved
        fits = total - beside <= self._max_bytes and total - self.message_bytes <= most
        return fits and self.message_bytes - beside < self._cap and self.messages < self._max_messages

    def reserve(self, size: int, *, small: bool = False) -> bool:
        """Count C{size} bytes of a body in progress; False, and nothing counted, when there is no room."""
        if not self.has_room(size, small=small):
            return False
        self.bytes += size
        return True

    def release(self, size: int) -> None:
        """Give back C{size} reserved bytes."""
        self.bytes -= size

    def is_full(self) -> bool:
        """Tell whether L{admit} would refuse a message of any size."""
        return (
            self.messages >= self._max_messages
            or (self.bytes - self._beside >= self._max_bytes and self.messages > 0)
            or self.message_bytes - self._beside >= self._cap
        )

    def admit(self, size: int) -> bool:
        """Count a message of C{size} bytes; False, and nothing counted, when there is no room."""
        total = self.bytes + size
        messages = self.messages
        if total <= self.ample and messages < self._high_messages:
            self.bytes = total
            self.message_bytes += size
            self.messages = messages + 1
            return True
        message_bytes = self.message_bytes
        beside = self._beside
        if message_bytes - beside >= self._cap:
            return False
        if size > self._large and not beside:
            beside = size
        if messages and (total - beside > self._max_bytes or messages >= self._max_messages):
            return False
        self._beside = beside
        self.bytes = total
        self.message_bytes = message_bytes = message_bytes + size
        self.messages = messages = messages + 1
        self.is_high = message_bytes - beside > self._high_bytes or messages > self._high_messages
        return True

    def admit_all(self, messages: int, size: int) -> bool:
        """
        Count messages of so many bytes together, all or none; False, and nothing counted, when there is no room.

        As one message does, they find room when no other waits, however many and large they are.
        """
        beside = self._beside
        if self.message_bytes - beside >= self._cap:
            return False
        if size > self._large and not beside:
            beside = size
        together = self.messages + messages
        if self.messages and (self.bytes + size - beside > self._max_bytes or together > self._max_messages):
            return False
        self._beside = beside
        self.bytes += size
        self.message_bytes += size
        self.messages = together
        self._mark()
        return True

    def recount(self, was: int, size: int) -> None:
        """Count a message for C{size} bytes that was counted for C{was}, whether there is room for more or not."""
        self.bytes += size - was
        self.message_bytes += size - was
        self._mark()

    def remove(self, messages: int, size: int) -> None:
        """Give back what so many messages of C{size} bytes in all held."""
        self.bytes -= size
        self.message_bytes -= size
        self.messages -= messages
        if self.message_bytes < self._beside:  # the large one has left
            self._beside = 0
        self._mark()

    def is_low(self) -> bool:
        """Tell whether messages hold at most half of both limits, so the producer should resume."""
        return self.message_bytes - self._beside <= self._low_bytes and self.messages <= self._low_messages

    def messages_over_low_mark(self) -> int:
        """Return how many messages have to leave until the producer resumes; 0 or less for none."""
        return self.messages - self._low_messages

    def bytes_over_low_mark(self) -> float:
        """Return how many bytes of messages have to leave until there is room for sure; 0 or less for none."""
        return self.message_bytes - self._beside - min(self._low_bytes, self._cap)

    def _mark(self) -> None:
        self.is_high = self.message_bytes - self._beside > self._high_bytes or self.messages > self._high_messages


def size_of(prepared: Prepared) -> int:
    """
    Return the bytes that a prepared message is counted for: its length, or an estimate of what a L{Message} holds.

    @raise TypeError: it is neither bytes nor a L{Message}.
    """
    if isinstance(prepared, bytes):
        return len(prepared)
    if isinstance(prepared, Message):
        return _size_of_value(prepared.values)
    raise TypeError(f"prepare() must return bytes or a Message, not {type(prepared).__name__}")


def _size_of_value(value: Value) -> int:
    size = sys.getsizeof(value)
    if isinstance(value, msgspec.Raw):
        return size + len(value)
    if isinstance(value, dict):
        return size + sum(sys.getsizeof(name) + _size_of_value(member) for name, member in value.items())
    if isinstance(value, list):
        return size + sum(map(_size_of_value, value))
    return size


class ProducerGate:
    """
    The producer's half of C{twisted.internet.interfaces.IConsumer}, on the marks of a L{Budget}.

    Pausing helps over a moment. When it has to be done again and again, senders wait without end and without an answer;
    so in a time of pressure the producer is paused for C{pause_time} in all at most, and senders that find no room
    after that get a refusal.

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
        self._pressed = -inf  # the last moment of pressure

    def register(self, producer: IPushProducer, streaming: bool) -> None:
        """
        Take the producer, and pause it at once when too much waits already.

        @raise RuntimeError: another one is registered.
        @raise ValueError: it is a pull producer; nobody can pull a request out of a sender.
        """
        if self._producer is not None:
            raise RuntimeError("a producer is registered already")
        if not streaming:
            raise ValueError("only push producers (streaming=True) are supported")
        self._producer = producer
        self.pause_if_high()

    def unregister(self) -> None:
        """Forget the producer, as it is."""
        self._producer = None
        self._paused = False

    def stop(self) -> None:
        """Stop the producer and forget it: nothing more is taken."""
        producer, self._producer, self._paused = self._producer, None, False
        if producer is not None:
            with _log.failuresHandled("Stopping the producer failed"):
                producer.stopProducing()

    def pause_if_high(self) -> None:
        """Pause the producer above the high mark, unless it has been paused for long enough."""
        if not self._paused and self._producer is not None and self._budget.is_high:
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

    def resume_if_low(self) -> None:
        """Resume the producer at the low mark."""
        if self._paused and self._budget.is_low():
            self.resume()

    def resume(self) -> None:
        """Resume the producer, however much waits, until the next L{pause_if_high}."""
        if self._paused and self._producer is not None:
            self._paused = False
            self._pressed = self._monotonic()
            with _log.failuresHandled("Resuming the producer failed"):
                self._producer.resumeProducing()


class DrainRate:
    """
    Measures how fast bytes and messages leave, from tick to tick, for C{Retry-After}.

    @param now: seconds on the monotonic clock, as everywhere here.
    """

    def __init__(self, now: float) -> None:
        self._ticked = now
        self._drained = now  # the last moment at which something left, or nothing waited
        self._bytes = self._messages = 0  # left since the last tick
        self._bytes_rate = self._messages_rate = 0.0
        self._has_rate = False

    def left(self, messages: int, size: int) -> None:
        """Count messages that have left."""
        self._messages += messages
        self._bytes += size

    def tick(self, now: float, waiting: int) -> None:
        """
        Update the rates, unless the queue was idle since the last tick.

        @param waiting: how many messages wait.
        """
        seconds = now - self._ticked
        if seconds <= 0:
            return
        self._ticked = now
        if self._messages or not waiting:
            self._drained = now
        if self._messages or waiting:
            weight = 1 - exp(-seconds / MEMORY) if self._has_rate else 1.0
            self._bytes_rate += weight * (self._bytes / seconds - self._bytes_rate)
            self._messages_rate += weight * (self._messages / seconds - self._messages_rate)
            self._has_rate = True
        self._bytes = self._messages = 0

    def seconds_for(self, now: float, messages: float, size: float) -> int:
        """
        Return after how many whole seconds so many messages and bytes should have left, from 1 to 60.

        When nothing leaves at all, the best guess is that this goes on for as long again as it has lasted.
        """
        seconds = max(now - self._drained, 1.0) if messages > 0 or size > 0 else 1.0
        if self._drained >= self._ticked:
            for amount, rate in ((size, self._bytes_rate), (messages, self._messages_rate)):
                if amount > 0 and rate > 0:
                    seconds = max(seconds, amount / rate)
        return min(ceil(seconds), LONGEST)
