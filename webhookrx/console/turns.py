"""
Long work in the reactor in turns, each so short that everything else goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred

SLICE: Final = 0.01
"""Seconds of a turn."""

_T = TypeVar("_T")


class _Turns:
    """
    Who waits for a turn of one reactor. In each of its rounds one of them has a turn, however many they are: the
    network waits for one turn at most.
    """

    def __init__(self) -> None:
        self._waiting: deque[Deferred[None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def next(self, reactor: Any) -> Deferred[None]:
        """Return what fires when it is one's turn; it may be cancelled."""
        if not self._waiting:
            reactor.callLater(0, self._round, reactor)
        turn: Deferred[None] = Deferred()
        self._waiting.append(turn)
        return turn

    def _round(self, reactor: Any) -> None:
        turn = self._waiting.popleft()
        if self._waiting:
            reactor.callLater(0, self._round, reactor)
        if not turn.called:
            turn.callback(None)


_turns: Final[WeakKeyDictionary[Any, _Turns]] = WeakKeyDictionary()


async def in_turns(reactor: Any, items: Iterable[_T]) -> AsyncIterator[_T]:
    """
    Yield items, and let the reactor go on whenever a turn has lasted for L{SLICE}. All work in turns takes them one
    after the other.

    @param items: what is changed by others in between has to be copied.
    """
    turns = _turns.get(reactor)
    if turns is None:
        turns = _turns[reactor] = _Turns()
    if turns:
        await turns.next(reactor)
    until = reactor.seconds() + SLICE
    for each in items:
        yield each
        if reactor.seconds() >= until:
            await turns.next(reactor)
            until = reactor.seconds() + SLICE
