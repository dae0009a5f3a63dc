"""
How much may wait: bytes and messages counted against two limits. No reactor, no clock.
"""

from __future__ import annotations

import sys
from math import inf
from typing import TYPE_CHECKING

import msgspec

from webhookrx.message.message import Message
from webhookrx.settings import largest_body

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared
    from webhookrx.message.message import Value


class Budget:
    """
    Counts what bodies in progress have reserved, and what messages hold until their last acknowledgement.

    Senders who begin bodies and do not end them must not keep others out: large bodies in progress get half of the
    bytes, small ones as far as three quarters, and the rest is there for messages. And a message always finds room
    when no other waits, however large it has become: what passed as a body must not be refused for ever. One message of
    more than half of the bytes may wait beside the limit, so that the others are neither refused nor paused while
    it is stored.

    The marks look at messages alone: those leave by themselves once observers have them safe. Bodies that senders
    have not finished do not, so pausing the senders because of them would wait for ever.

    For a time there may be less room: while observers can't keep up, what waits long helps nobody (L{narrow}).

    @ivar bytes: reserved bytes and the bytes of messages together.
    @ivar message_bytes: the bytes of messages.
    @ivar messages: messages that wait.
    """

    __slots__ = (
        "_beside",
        "_high_bytes",
        "_high_messages",
        "_large",
        "_low_bytes",
        "_low_messages",
        "_max_bytes",
        "_max_messages",
        "_max_reserved",
        "_max_reserved_small",
        "_room",
        "bytes",
        "message_bytes",
        "messages",
    )

    def __init__(self, max_bytes: int, max_messages: int) -> None:
        self._room = inf
        self._beside = 0
        self.bytes = 0
        self.message_bytes = 0
        self.messages = 0
        self.resize(max_bytes, max_messages)

    def resize(self, max_bytes: int, max_messages: int) -> None:
        """Set other limits. What is counted stays counted, though it be more."""
        self._max_bytes = max_bytes
        self._large = max_bytes // 2
        self._max_messages = max_messages
        self._max_reserved = largest_body(max_bytes)
        self._max_reserved_small = max_bytes * 3 // 4
        self._high_bytes = max_bytes * 3 // 4
        self._high_messages = max_messages * 3 // 4
        self._low_bytes = max_bytes // 2
        self._low_messages = max_messages // 2

    def narrow(self, room: float) -> None:
        """
        Take nothing more, bodies included, while messages hold C{room} bytes; infinite for no such limit.

        Whether they do is looked at before a message and not after it, so that a large one passes too.
        """
        self._room = room

    def reserve(self, size: int, *, small: bool = False) -> bool:
        """Count C{size} bytes of a body in progress; False, and nothing counted, when there is no room."""
        if not self.has_room(size, small=small):
            return False
        self.bytes += size
        return True

    def has_room(self, size: int, *, small: bool = False) -> bool:
        """Tell whether C{size} bytes of a body in progress would find room now."""
        total = self.bytes + size
        beside = self._beside
        most = self._max_reserved_small if small else self._max_reserved
        fits = total - beside <= self._max_bytes and total - self.message_bytes <= most
        return fits and self.message_bytes - beside < self._room and self.messages < self._max_messages

    def release(self, size: int) -> None:
        """Give back C{size} reserved bytes."""
        self.bytes -= size

    def is_full(self) -> bool:
        """Tell whether there is surely no room for a message, whatever its size."""
        return (
            self.messages >= self._max_messages
            or (self.bytes - self._beside >= self._max_bytes and self.messages > 0)
            or self.message_bytes - self._beside >= self._room
        )

    def add_message(self, size: int) -> bool:
        """Count a message of C{size} bytes; False, and nothing counted, when there is no room."""
        total = self.bytes + size
        beside = self._beside
        if size > self._large and not beside:
            beside = size
        if self.messages and (total - beside > self._max_bytes or self.messages >= self._max_messages):
            return False
        self._beside = beside
        self.bytes = total
        self.message_bytes += size
        self.messages += 1
        return True

    def recount(self, was: int, size: int) -> None:
        """Count a message for C{size} bytes that was counted for C{was}, whether there is room for more or not."""
        self.bytes += size - was
        self.message_bytes += size - was

    def messages_over_low_mark(self) -> int:
        """Return how many messages have to leave until the producer is resumed; less than 1: none."""
        return self.messages - self._low_messages

    def bytes_over_low_mark(self) -> float:
        """Return how many bytes of messages have to leave until there is room for sure; less than 1: none."""
        return self.message_bytes - self._beside - min(self._low_bytes, self._room)

    def remove_messages(self, count: int, size: int) -> None:
        """Give back what C{count} messages of C{size} bytes in all held."""
        self.bytes -= size
        self.message_bytes -= size
        self.messages -= count
        if self.message_bytes < self._beside:  # it has left
            self._beside = 0

    def is_above_high_mark(self) -> bool:
        """Tell whether messages hold more than three quarters of either limit: time to pause the producer."""
        return self.message_bytes - self._beside > self._high_bytes or self.messages > self._high_messages

    def is_below_low_mark(self) -> bool:
        """Tell whether messages hold at most half of both limits: time to resume the producer."""
        return self.message_bytes - self._beside <= self._low_bytes and self.messages <= self._low_messages


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
