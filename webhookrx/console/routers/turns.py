"""
Long work in the reactor in turns, each so short that everything else goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, TypeVar

from twisted.internet.task import deferLater

SLICE: Final = 0.01
"""Seconds of a turn."""

_T = TypeVar("_T")


async def in_turns(reactor: Any, items: Iterable[_T]) -> AsyncIterator[_T]:
    """
    Yield items, and let the reactor go on whenever a turn has lasted for L{SLICE}.

    @param items: what is changed by others in between has to be copied.
    """
    until = reactor.seconds() + SLICE
    for each in items:
        yield each
        if reactor.seconds() >= until:
            await deferLater(reactor, 0)
            until = reactor.seconds() + SLICE
