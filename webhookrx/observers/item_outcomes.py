"""
Outcomes of a batch: of a store that answers for each message, and of one that refuses a request as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
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


class RefusedTogether(Exception):
    """At least one message of a request is refused for good. The text says why, in one line."""


def store_by_halves(
    parts: Iterable[tuple[int, int]], count: int, send: Callable[[int, int], None]
) -> list[Exception | None] | None:
    """
    Send a batch, request by request. One that is refused as a whole is halved until the refused message is alone.

    @param parts: where each request begins and ends, in order.
    @param count: of all messages.
    @param send: sends the messages from one place up to another. It raises L{RefusedTogether}, or L{Unavailable}; then
        none of them is stored, and nothing is sent behind them.
    @return: what C{store} of an observer returns.
    @raise Unavailable: no message was stored or refused.
    """
    outcomes: list[Exception | None] = [None] * count
    waiting = deque(parts)
    while waiting:
        begin, end = waiting.popleft()
        try:
            send(begin, end)
        except Unavailable as problem:
            if begin == 0:
                raise
            outcomes[begin:] = [problem] * (count - begin)
            break
        except RefusedTogether as refusal:
            if end - begin > 1:
                middle = (begin + end) // 2
                waiting.extendleft(((middle, end), (begin, middle)))
            else:
                outcomes[begin] = Rejected(str(refusal))
    return outcomes if any(outcomes) else None
