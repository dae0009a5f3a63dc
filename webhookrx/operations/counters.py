"""
Counts and times, for operators: plain numbers while they are counted, and metrics only on request.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct, field

from webhookrx.store_counts import Histogram, TakenCounts

# This type checks what a worker sends, before its counts are added up.
_Count: TypeAlias = Annotated[int, Meta(ge=0)]


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
    @ivar refused: messages that it, or the one behind it, has refused for good.
    @ivar known: messages that its store had already.
    @ivar confirms: times that its store took to confirm that messages are safe, where that is asked for.
    """

    messages: _Count
    bytes: _Count
    stores: Histogram
    refused: _Count
    known: _Count
    confirms: Histogram

    @classmethod
    def empty(cls) -> ObserverCounts:
        """Return the counts of an observer that has done nothing."""
        return cls(0, 0, Histogram.empty(), 0, 0, Histogram.empty())

    def add_taken(self, taken: TakenCounts) -> None:
        """Add what an observer has counted itself."""
        self.refused += taken.refused
        self.known += taken.known
        self.confirms += taken.confirms

    def __add__(self, other: ObserverCounts) -> ObserverCounts:
        return ObserverCounts(
            self.messages + other.messages,
            self.bytes + other.bytes,
            self.stores + other.stores,
            self.refused + other.refused,
            self.known + other.known,
            self.confirms + other.confirms,
        )


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
