"""
Counts of an observer that stores elsewhere, made in its own thread and taken by another; and the histogram of times.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

#: Upper ends of the buckets of times, in seconds. Senders give up after 3, 5, 10 or 30.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)

_BUCKETS: Final = len(BOUNDS) + 1

# These types check what a worker sends, before its counts are added up.
_Count: TypeAlias = Annotated[int, Meta(ge=0)]
_Buckets: TypeAlias = Annotated[list[_Count], Meta(min_length=_BUCKETS, max_length=_BUCKETS)]


class Histogram(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """
    Times, counted by bucket.

    @ivar counts: the times in each bucket, without those of lower buckets; the last bucket has no upper end.
    @ivar sum: all times together, in seconds.
    """

    counts: _Buckets
    sum: float

    @classmethod
    def empty(cls) -> Histogram:
        """Return one that has counted nothing."""
        return cls([0] * _BUCKETS, 0.0)

    def observe(self, seconds: float) -> None:
        """Count a time. An upper end belongs to its bucket."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        """How many times were counted."""
        return sum(self.counts)

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram([a + b for a, b in zip(self.counts, other.counts, strict=True)], self.sum + other.sum)


@dataclass(frozen=True, slots=True)
class TakenCounts:
    """
    What was counted between two calls of L{StoreCounts.take}.

    @ivar refused: messages that the store refused for good.
    @ivar known: messages that the store had already, so that it stored them once.
    @ivar confirms: times from an answer of the store to its word that the messages are safe, where that is asked for.
    """

    refused: int
    known: int
    confirms: Histogram

    def __add__(self, other: TakenCounts) -> TakenCounts:
        return TakenCounts(self.refused + other.refused, self.known + other.known, self.confirms + other.confirms)


class StoreCounts:
    """Counts of one observer, from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._refused = 0
        self._known = 0
        self._confirms = Histogram.empty()

    def refused(self, messages: int) -> None:
        """Count messages that were refused for good. The caller of C{store} does, for every observer."""
        with self._lock:
            self._refused += messages

    def known(self, messages: int) -> None:
        """Count messages that the store had already."""
        with self._lock:
            self._known += messages

    def confirmed(self, seconds: float) -> None:
        """Count a confirmation that took so long: HEC's indexer acknowledgement, or WAITAOF."""
        with self._lock:
            self._confirms.observe(seconds)

    def add(self, taken: TakenCounts) -> None:
        """Count what was counted elsewhere."""
        with self._lock:
            self._refused += taken.refused
            self._known += taken.known
            self._confirms += taken.confirms

    def take(self) -> TakenCounts:
        """Return what was counted since the last call."""
        with self._lock:
            taken = TakenCounts(self._refused, self._known, self._confirms)
            self._refused = self._known = 0
            self._confirms = Histogram.empty()
        return taken
