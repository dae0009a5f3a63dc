"""
Counts and times, for operators: plain numbers while they are counted, and metrics only on request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct, field

from webhookrx.store_counts import Histogram, TakenCounts

MOST_SENDERS: Final = 1000
"""Senders of one source whose last messages are known. Their ids come from definitions, so there are some hundreds."""

# This type checks what a worker sends, before its counts are added up.
_Count: TypeAlias = Annotated[int, Meta(ge=0)]


class SecretUse(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """
    What one secret or token has proved.

    @ivar requests: how many requests.
    @ivar last: when the last of them came, seconds since the epoch; 0 before the first.
    """

    requests: _Count
    last: float

    def __add__(self, other: SecretUse) -> SecretUse:
        return SecretUse(self.requests + other.requests, max(self.last, other.last))


_UNUSED: Final = SecretUse(0, 0.0)


SKEW_BOUNDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0)
"""Upper ends of the buckets of skews, in seconds. Senders are taken that are off by one to ten minutes."""

_SKEW_BUCKETS: Final = len(SKEW_BOUNDS) + 1
_SkewBuckets: TypeAlias = Annotated[list[_Count], Meta(min_length=_SKEW_BUCKETS, max_length=_SKEW_BUCKETS)]


class Skews(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """
    How far signed moments were away, counted by bucket; see L{Histogram}.
    """

    counts: _SkewBuckets
    sum: float

    @classmethod
    def empty(cls) -> Skews:
        """Return one that has counted nothing."""
        return cls([0] * _SKEW_BUCKETS, 0.0)

    def observe(self, seconds: float) -> None:
        """Count a skew, in the past or the future."""
        self.counts[bisect_left(SKEW_BOUNDS, abs(seconds))] += 1
        self.sum += abs(seconds)

    def __add__(self, other: Skews) -> Skews:
        return Skews([a + b for a, b in zip(self.counts, other.counts, strict=True)], self.sum + other.sum)


def _sum(first: Skews | None, second: Skews | None) -> Skews | None:
    """Return a sum that no later count changes."""
    if first is None and second is None:
        return None
    return (first or Skews.empty()) + (second or Skews.empty())


def _latest(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    latest = dict(first)
    for sender, last in second.items():
        latest[sender] = max(latest.get(sender, 0.0), last)
    return latest


def _joined(first: dict[str, SecretUse], second: dict[str, SecretUse]) -> dict[str, SecretUse]:
    uses = dict(first)
    for name, use in second.items():
        uses[name] = uses.get(name, _UNUSED) + use
    return uses


class SourceCounts(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """
    What one source has taken.

    @ivar messages: messages accepted into the queue.
    @ivar bytes: bytes of their bodies, as they came by the wire.
    @ivar last: when the last of them came, seconds since the epoch; 0 before the first.
    @ivar answers: times from the last byte of a request to its 200.
    @ivar secrets: what its secrets have proved, by their names.
    @ivar tokens: the same for its tokens, which may have the same names.
    @ivar skews: of genuine signatures that say when they were made; None if its sender's never do.
    @ivar senders: when the last message of each sender came, by its id, where Classify finds it; the empty id is for
        those of none.
    @ivar sender: the id of the one sender that it hears; empty if it hears any.
    @ivar sender_from: messages that came later than that are of C{sender}.
    """

    messages: _Count
    bytes: _Count
    last: float
    answers: Histogram
    secrets: dict[str, SecretUse]
    tokens: dict[str, SecretUse]
    skews: Skews | None
    senders: dict[str, float]
    sender: str
    sender_from: float

    @classmethod
    def empty(cls) -> SourceCounts:
        """Return the counts of a source that has taken nothing."""
        return cls(0, 0, 0.0, Histogram.empty(), {}, {}, None, {}, "", 0.0)

    def hears(self, sender: str) -> None:
        """Hear one sender only from now on; empty: any."""
        if sender != self.sender:
            self.senders, self.sender, self.sender_from = self.last_by_sender, sender, self.last

    def heard(self, sender: str, now: float) -> None:
        """Take a message that Classify has found to be of this sender."""
        if sender in self.senders or len(self.senders) < MOST_SENDERS:
            self.senders[sender] = now

    @property
    def last_by_sender(self) -> dict[str, float]:
        """When the last message of each known sender came, by its id; 0 before the first."""
        if not self.sender:
            return dict(self.senders)
        of_its_own = self.last if self.last > self.sender_from else 0.0
        return {**self.senders, self.sender: max(self.senders.get(self.sender, 0.0), of_its_own)}

    def __add__(self, other: SourceCounts) -> SourceCounts:
        return SourceCounts(
            self.messages + other.messages,
            self.bytes + other.bytes,
            max(self.last, other.last),
            self.answers + other.answers,
            _joined(self.secrets, other.secrets),
            _joined(self.tokens, other.tokens),
            _sum(self.skews, other.skews),
            _latest(self.senders, other.senders),
            self.sender or other.sender,
            max(self.sender_from, other.sender_from),
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
