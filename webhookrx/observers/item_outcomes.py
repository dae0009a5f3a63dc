"""
What a store says of each message of a batch, and tries that send again only what it has not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeAlias, TypeVar

from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.retrying import Retries
from webhookrx.store_counts import StoreCounts

T = TypeVar("T")


class Ack(Enum):
    """The word of a store on a message that it has."""

    STORED = "stored"
    KNOWN = "known"
    """It had a message with this id already."""


#: What became of a message: L{Rejected} if it is at fault itself, else L{Unavailable}.
Outcome: TypeAlias = Ack | Rejected | Unavailable


def store_items(
    items: Sequence[T], send: Callable[[Sequence[T]], Sequence[Outcome]], retries: Retries, counts: StoreCounts
) -> list[Exception | None] | None:
    """
    Send a batch, and what was not taken again, until C{retry_for} is over.

    @param send: sends messages in order, and returns an outcome for each.
    @param counts: counts messages that the store knew.
    @return: what C{store} of an observer returns.
    @raise Unavailable: no message was stored or refused.
    """
    outcomes: list[Exception | None] = [None] * len(items)
    left = list(range(len(items)))

    def attempt() -> None:
        nonlocal left
        answers = send([items[place] for place in left])
        later: list[int] = []
        problem: Unavailable | None = None
        for place, answer in zip(left, answers, strict=True):
            if isinstance(answer, Unavailable):
                later.append(place)
                problem = problem or answer
            elif isinstance(answer, Rejected):
                outcomes[place] = answer
        counts.known(sum(answer is Ack.KNOWN for answer in answers))
        left = later
        if problem is not None:
            raise problem

    try:
        retries.call(attempt, retries.begin())
    except Unavailable as problem:
        if len(left) == len(items):
            raise
        for place in left:
            outcomes[place] = problem
    return outcomes if any(outcomes) else None
