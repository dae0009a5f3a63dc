"""
Messages that are held while the observers of a chain are exchanged: only the new ones know how to encode them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from webhookrx.errors import NoRoom
from webhookrx.pipeline.admission import Budget, size_of

if TYPE_CHECKING:
    from webhookrx.interfaces import Acknowledge
    from webhookrx.message.message import Message
    from webhookrx.pipeline.batch import Encoded, Encoders


class HeldMessages:
    """
    Messages in the order in which they came.

    @param budget: they are counted in it, by an estimate of their size.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._held: list[tuple[Message | Sequence[Message], Acknowledge, int]] = []

    def add(self, message: Message, acknowledge: Acknowledge) -> None:
        """@raise NoRoom: there is none."""
        size = _size(message)
        if not self._budget.admit(size):
            raise NoRoom
        self._held.append((message, acknowledge, size))

    def add_all(self, messages: Sequence[Message], acknowledge: Acknowledge) -> None:
        """@raise NoRoom: there is none for all of them, which have one acknowledgement."""
        size = sum(map(_size, messages))
        if not self._budget.admit_all(len(messages), size):
            raise NoRoom
        self._held.append((messages, acknowledge, size))

    def release(
        self,
        encoders: Encoders,
        gather: Callable[[Encoded, Acknowledge], None],
        gather_all: Callable[[Sequence[Encoded], Acknowledge], None],
    ) -> None:
        """Encode all of them, and hold them no longer."""
        held, self._held = self._held, []
        for content, acknowledge, size in held:
            if isinstance(content, Sequence):
                together = encoders.encode_all(content)
                self._budget.recount(size, sum([each for _, each, _ in together]))
                gather_all(together, acknowledge)
            else:
                encoded = encoders.encode(content)
                self._budget.recount(size, encoded[1])
                gather(encoded, acknowledge)


def _size(message: Message) -> int:
    """Return an estimate: the values of a message with a line may not be made, so that the line counts for them."""
    return size_of(message) if message.line is None else 2 * len(message.line)
