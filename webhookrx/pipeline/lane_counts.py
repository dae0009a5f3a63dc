"""
What an observer counts itself, and what its answers say is refused for good, on the way to the counters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from webhookrx.pipeline.guarded_calls import refused_in, take_counts
from webhookrx.store_counts import Histogram, TakenCounts

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver

#: Called with the observer's spec, and what was counted since the last call.
Counted = Callable[[str, TakenCounts], None]


class LaneCounts:
    """
    Takes the counts of one observer.

    @param counted: gets them, in the reactor thread; None for nobody.
    """

    def __init__(self, observer: IMessageObserver, counted: Counted | None) -> None:
        self._observer = observer
        self._counted = counted

    def take(self) -> None:
        """Hand on what the observer, or the one behind it, has counted since the last call."""
        taken = take_counts(self._observer)
        if taken is not None and self._counted is not None:
            self._counted(self._observer.spec, taken)

    def note_refused(self, count: int, outcome: object) -> None:
        """Count how many of C{count} messages were refused for good, by what C{store} returned or raised."""
        refused = refused_in(count, outcome)
        if refused and self._counted is not None:
            self._counted(self._observer.spec, TakenCounts(refused, 0, Histogram.empty()))
