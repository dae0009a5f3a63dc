"""
Counts and times, for operators: kept as plain numbers, and made into metrics only when somebody asks for them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import Any

#: Upper ends of the buckets of times, in seconds. Senders give up after 3, 5, 10 or 30.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)


class Histogram:
    """
    Times, counted by bucket.

    @ivar counts: how many fell into each bucket, not those before it; the last one has no upper end.
    @ivar sum: all of them together, in seconds.
    """

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count a time. An upper end belongs to its bucket."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        """How many were counted."""
        return sum(self.counts)

    def copy(self) -> Histogram:
        """See L{Counters.copy}."""
        other = Histogram()
        other.counts[:] = self.counts
        other.sum = self.sum
        return other

    def add_all(self, other: Histogram) -> None:
        """See L{Counters.add_all}."""
        self.counts[:] = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum

    def plain(self) -> tuple[list[int], float]:
        """See L{Counters.plain}."""
        return self.counts[:], self.sum

    @classmethod
    def from_plain(cls, plain: Any) -> Histogram:
        """See L{Counters.from_plain}."""
        self = cls()
        self.counts[:], self.sum = plain
        return self


class SourceCounts:
    """
    What one source has taken.

    @ivar messages: messages that were made of requests and found room.
    @ivar bytes: bytes of their bodies, as they came by the wire.
    @ivar last: when the last of them came, seconds since the epoch; 0 when none has.
    @ivar answers: times from a request being there in full to its 200.
    """

    __slots__ = ("answers", "bytes", "last", "messages")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.last = 0.0
        self.answers = Histogram()

    def copy(self) -> SourceCounts:
        """See L{Counters.copy}."""
        other = SourceCounts()
        other.messages, other.bytes, other.last = self.messages, self.bytes, self.last
        other.answers = self.answers.copy()
        return other

    def add_all(self, other: SourceCounts) -> None:
        """See L{Counters.add_all}."""
        self.messages += other.messages
        self.bytes += other.bytes
        self.last = max(self.last, other.last)
        self.answers.add_all(other.answers)

    def plain(self) -> tuple[int, int, float, Any]:
        """See L{Counters.plain}."""
        return self.messages, self.bytes, self.last, self.answers.plain()

    @classmethod
    def from_plain(cls, plain: Any) -> SourceCounts:
        """See L{Counters.from_plain}."""
        self = cls()
        self.messages, self.bytes, self.last, answers = plain
        self.answers = Histogram.from_plain(answers)
        return self


class ObserverCounts:
    """
    What one observer has done.

    @ivar messages: messages that it was given and is done with, well or not.
    @ivar bytes: bytes of these.
    @ivar stores: times that a batch took, well stored or not.
    """

    __slots__ = ("bytes", "messages", "stores")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.stores = Histogram()

    def copy(self) -> ObserverCounts:
        """See L{Counters.copy}."""
        other = ObserverCounts()
        other.messages, other.bytes = self.messages, self.bytes
        other.stores = self.stores.copy()
        return other

    def add_all(self, other: ObserverCounts) -> None:
        """See L{Counters.add_all}."""
        self.messages += other.messages
        self.bytes += other.bytes
        self.stores.add_all(other.stores)

    def plain(self) -> tuple[int, int, Any]:
        """See L{Counters.plain}."""
        return self.messages, self.bytes, self.stores.plain()

    @classmethod
    def from_plain(cls, plain: Any) -> ObserverCounts:
        """See L{Counters.from_plain}."""
        self = cls()
        self.messages, self.bytes, stores = plain
        self.stores = Histogram.from_plain(stores)
        return self


class Counters:
    """
    Counts by name and labels, such as C{refused}, C{bad_token} and C{github}. Labels never come from senders, so there
    are few.

    @ivar sources: what is counted for every message, by source. One that was never heard of begins at zero.
    @ivar observers: what is counted for every batch, by the spec of the observer; likewise.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()
        self.sources: defaultdict[str, SourceCounts] = defaultdict(SourceCounts)
        self.observers: defaultdict[str, ObserverCounts] = defaultdict(ObserverCounts)

    def add(self, name: str, *labels: str, amount: int = 1) -> None:
        """Count C{amount} more."""
        self._counts[name, *labels] += amount

    def get(self, name: str, *labels: str) -> int:
        """Return a count; 0 when nothing was counted."""
        return self._counts.get((name, *labels), 0)

    def labelled(self, name: str) -> list[tuple[tuple[str, ...], int]]:
        """Return all labels with which something of that name was counted, 0 included, and the counts."""
        return [(labels[1:], count) for labels, count in self._counts.items() if labels[0] == name]

    def copy(self) -> Counters:
        """Return these counts as they are at this moment; what is counted later is not in them."""
        other = Counters()
        other._counts = self._counts.copy()
        other.sources.update((name, counts.copy()) for name, counts in self.sources.items())
        other.observers.update((spec, counts.copy()) for spec, counts in self.observers.items())
        return other

    def add_all(self, other: Counters) -> None:
        """Count what another one has counted, too. The last message is the last of both."""
        self._counts.update(other._counts)
        for name, source in other.sources.items():
            self.sources[name].add_all(source)
        for spec, observer in other.observers.items():
            self.observers[spec].add_all(observer)

    def plain(self) -> dict[str, Any]:
        """Return these counts as lists, texts and numbers, for another process."""
        return {
            "counts": [[list(map(encodable, labels)), count] for labels, count in self._counts.items()],
            "sources": {encodable(name): counts.plain() for name, counts in self.sources.items()},
            "observers": {encodable(spec): counts.plain() for spec, counts in self.observers.items()},
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Counters:
        """
        Return the counts of which L{plain} was made.

        @raise ValueError, TypeError, LookupError: it was made by another version.
        """
        self = cls()
        self._counts.update({tuple(labels): count for labels, count in plain["counts"]})
        self.sources.update((name, SourceCounts.from_plain(counts)) for name, counts in plain["sources"].items())
        self.observers.update((spec, ObserverCounts.from_plain(counts)) for spec, counts in plain["observers"].items())
        return self

    def summary(self) -> str:
        """Return all counts as one line of C{name=1 name.label=2}, in the order of their names."""
        counts = {("messages", source): counts.messages for source, counts in self.sources.items()}
        items = sorted((*self._counts.items(), *counts.items()))
        return " ".join(f"{'.'.join(filter(None, labels))}={count}" for labels, count in items if count)


def encodable(text: str) -> str:
    """Return a text that UTF-8 can hold, by escapes where need be: the name of a file need not be text."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
