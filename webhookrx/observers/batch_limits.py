"""
How many messages go to a store at once, in one request or transaction, and where a batch is cut for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from webhookrx.config.specs import SpecOptions
from webhookrx.settings import MiB


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """
    How many messages one request may have.

    @ivar messages: the most.
    @ivar size: the most bytes of them, before packing; a larger message goes alone.
    """

    messages: int = 500
    size: int = MiB

    def cut(self, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """
        Yield where each request begins and ends. This depends only on the messages from there on, so that those that
        are retried in a later batch are cut as before and keep their key.

        @param sizes: the bytes of each message.
        """
        if 0 < len(sizes) <= self.messages and sum(sizes) <= self.size:
            # The usual case, in a fifth of the time.
            yield 0, len(sizes)
            return
        begin = total = 0
        for place, size in enumerate(sizes):
            if place > begin and (place - begin >= self.messages or total + size > self.size):
                yield begin, place
                begin, total = place, 0
            total += size
        if begin < len(sizes):
            yield begin, len(sizes)


USUAL_LIMITS: Final = BatchLimits()


def read_limits(options: SpecOptions, default: BatchLimits = USUAL_LIMITS) -> BatchLimits:
    """
    Read the options C{batch} and C{batch_size}.

    @raise ConfigError: one of them is wrong.
    """
    return BatchLimits(options.count("batch", default.messages), options.size("batch_size", default.size, at_least=1))
