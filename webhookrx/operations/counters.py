"""
Counts and times, for operators: plain numbers while they are counted, and metrics only on request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct, field

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


class SourceCounts(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """
    What one source has taken.

    @ivar messages: messages accepted into the queue.
    @ivar bytes: bytes of their bodies, as they came by the wire.
    @ivar last: when the last of them came, seconds since the epoch; 0 before the first.
    @ivar answers: times from the last byte of a request to its 200.
    """

    messages: _Count
    bytes: _Count
    last: float
    answers: Histogram

    @classmethod
    def empty(cls) -> SourceCounts:
        """Return the counts of a source that has taken nothing."""
        return cls(0, 0, 0.0, Histogram.empty())

    def __add__(self, other: SourceCounts) -> SourceCounts:
        return SourceCounts(
            self.messages + other.messages,
            self.bytes + other.bytes,
            max(self.last, other.last),
            self.answers + other.answers,
        )


class ObserverCounts(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """
    What one observer has done.

    @ivar messages: messages that it has finished, stored or not.
    @ivar bytes: bytes of these.
    @ivar stores: times that its batches took, stored or not.
    """

    messages: _Count
    bytes: _Count
    stores: Histogram

    @classmethod
    def empty(cls) -> ObserverCounts:
        """Return the counts of an observer that has done nothing."""
        return cls(0, 0, Histogram.empty())

    def __add__(self, other: ObserverCounts) -> ObserverCounts:
        return ObserverCounts(self.messages + other.messages, self.bytes + other.bytes, self.stores + other.stores)


class Counters(Struct, forbid_unknown_fields=True):
    """
    Counts by name and labels, such as C{refused}, C{bad_token} and C{github}. Labels never come from senders, so there
    are few.

    Workers send theirs to the parent, which adds them up; those that were received are for that alone.

    @ivar counts: each count, by its name and labels.
    @ivar sources: what is counted for every message, by source; a new source starts at zero.
    @ivar observers: what is counted for every batch, by the spec of the observer; likewise.
    """

    counts: dict[tuple[str, ...], _Count] = field(default_factory=Counter)
    sources: dict[str, SourceCounts] = field(default_factory=lambda: defaultdict(SourceCounts.empty))
    observers: dict[str, ObserverCounts] = field(default_factory=lambda: defaultdict(ObserverCounts.empty))

    def add(self, name: str, *labels: str, amount: int = 1) -> None:
        """Count C{amount} more."""
        self.counts[name, *labels] += amount

    def get(self, name: str, *labels: str) -> int:
        """Return a count; 0 when nothing was counted."""
        return self.counts.get((name, *labels), 0)

    def labelled(self, name: str) -> list[tuple[tuple[str, ...], int]]:
        """Return all labels with which something of that name was counted, 0 included, and the counts."""
        return [(labels[1:], count) for labels, count in self.counts.items() if labels[0] == name]

    def copy(self) -> Counters:
        """Return these counts as they are now; later counts are not in them."""
        other = Counters()
        other.add_all(self)
        return other

    def add_all(self, other: Counters) -> None:
        """Add the counts of another process."""
        for labels, count in other.counts.items():
            self.counts[labels] += count
        for name, source in other.sources.items():
            self.sources[name] += source
        for spec, observer in other.observers.items():
            self.observers[spec] += observer

    def summary(self) -> str:
        """Return all counts as one line of C{name=1 name.label=2}, in the order of their names."""
        counts = {("messages", source): counts.messages for source, counts in self.sources.items()}
        items = sorted((*self.counts.items(), *counts.items()))
        return " ".join(f"{'.'.join(filter(None, labels))}={count}" for labels, count in items if count)
