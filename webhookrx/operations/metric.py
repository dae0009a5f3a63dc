"""
The type of a metric, and the functions that read its values from a snapshot and counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from webhookrx.errors import (
    BAD_REQUEST,
    HEADERS_TOO_LARGE,
    INTERNAL_ERROR,
    NO_MATCHING_PATH,
    OVERLOADED,
    REASONS,
    TARGET_TOO_LONG,
    TIMEOUT,
    TOO_MANY_CONNECTIONS,
    Reason,
)
from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.operations.counters import Counters, ObserverCounts, SecretUse, Skews, SourceCounts
from webhookrx.operations.health import ALONE, WorkerState
from webhookrx.operations.snapshot import ReceiverSnapshot
from webhookrx.store_counts import Histogram

#: The values of a metric's labels, in their order, and its value.
Sample: TypeAlias = tuple[tuple[str, ...], float | Histogram | Skews]
Kind: TypeAlias = Literal["counter", "gauge", "histogram", "info"]

RELOAD_RESULTS = ("ok", "failed")
"""Labels of the count C{reloads}."""

#: Reasons for which a request is refused before its source is known.
_NEVER_OF_SOURCE = (NO_MATCHING_PATH, TARGET_TOO_LONG, HEADERS_TOO_LARGE, OVERLOADED, TOO_MANY_CONNECTIONS)

REASONS_WITHOUT_SOURCE = frozenset(reason.word for reason in (*_NEVER_OF_SOURCE, BAD_REQUEST, TIMEOUT, INTERNAL_ERROR))
"""Words of the reasons for which a request is refused before a path pattern has matched."""

REASONS_OF_SOURCE = frozenset(reason.word for reason in REASONS if reason not in _NEVER_OF_SOURCE)
"""Words of the reasons for which a source refuses; some are in both."""


class Build(NamedTuple):
    """
    What runs: versions, and which path requests take.

    @ivar path: C{compiled} or C{pure}.
    """

    python: str
    twisted: str
    version: str
    path: str


class View(NamedTuple):
    """
    Everything that metrics are read from.

    @ivar counters: a copy.
    @ivar now: seconds since the epoch.
    @ivar started: when the process started, likewise.
    @ivar workers: the state of each process that receives.
    """

    counters: Counters
    snapshot: ReceiverSnapshot
    build: Build
    now: float
    started: float
    workers: tuple[WorkerState, ...] = (ALONE,)


V = TypeVar("V")


class Metric(NamedTuple, Generic[V]):
    """
    One line of a table. Its values are read from a V.

    @ivar name: that of a counter ends in C{_total}.
    @ivar help: one sentence, for people.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    read: Callable[[V], Iterable[Sample]]


def gauge(name: str, help: str, read: Callable[[View], float]) -> Metric[View]:
    """Return a gauge without labels."""
    return Metric(name, "gauge", (), help, lambda view: [((), read(view))])


def counter(name: str, help: str, count: str) -> Metric[View]:
    """Return a counter without labels, of the count of that name."""
    return Metric(name, "counter", (), help, lambda view: [((), view.counters.get(count))])


def by_source(name: str, kind: Kind, help: str, read: Callable[[SourceCounts], float | Histogram]) -> Metric[View]:
    """Return a metric of the counts of each source."""
    return Metric(
        name,
        kind,
        ("source",),
        help,
        lambda view: [((source,), read(view.counters.sources[source])) for source in view.snapshot.sources],
    )


def count_by_source(name: str, help: str, count: str) -> Metric[View]:
    """Return a counter of each source, of the rare count of that name."""
    return Metric(
        name,
        "counter",
        ("source",),
        help,
        lambda view: [((source,), view.counters.get(count, source)) for source in view.snapshot.sources],
    )


def by_observer(name: str, kind: Kind, help: str, read: Callable[[ObserverCounts], float | Histogram]) -> Metric[View]:
    """Return a metric of the counts of each observer."""
    return Metric(
        name,
        kind,
        ("observer",),
        help,
        lambda view: [((lane.spec,), read(view.counters.observers[lane.spec])) for lane in view.snapshot.lanes],
    )


def by_lane(name: str, kind: Kind, help: str, read: Callable[[LaneStatus], float]) -> Metric[View]:
    """Return a metric of the lane to each observer."""
    return Metric(
        name, kind, ("observer",), help, lambda view: [((lane.spec,), read(lane)) for lane in view.snapshot.lanes]
    )


def by_spool(name: str, kind: Kind, help: str, read: Callable[[Backlog, View], float]) -> Metric[View]:
    """Return a metric of the backlog of each observer that keeps messages for another."""
    return Metric(
        name,
        kind,
        ("observer",),
        help,
        lambda view: [
            ((lane.spec,), read(lane.backlog, view)) for lane in view.snapshot.lanes if lane.backlog is not None
        ],
    )


def counts_of_steps(name: str) -> Callable[[View], Iterable[Sample]]:
    """Read what the steps of connectors count, by source and label."""

    def read(view: View) -> Iterator[Sample]:
        sources = set(view.snapshot.sources)
        for labels, count in view.counters.labelled(name):
            if labels[0] in sources:
                yield labels, count

    return read


def by_secret(read: Callable[[SecretUse], float]) -> Callable[[View], Iterable[Sample]]:
    """Read what the secrets and tokens of each source have proved, by source, kind and name."""

    def samples(view: View) -> Iterator[Sample]:
        for source in view.snapshot.sources:
            counts = view.counters.sources[source]
            for kind, uses in (("secret", counts.secrets), ("token", counts.tokens)):
                for name, use in uses.items():
                    yield (source, kind, name), read(use)

    return samples


def last_by_sender(view: View) -> Iterator[Sample]:
    """Read when the last message of each sender came, by source."""
    for source in view.snapshot.sources:
        for sender, last in view.counters.sources[source].last_by_sender.items():
            yield (source, sender), last


def skews(view: View) -> Iterator[Sample]:
    """Read how far signed moments were away, by source."""
    for source in view.snapshot.sources:
        found = view.counters.sources[source].skews
        if found is not None:
            yield (source,), found


def refusals(view: View) -> Iterator[Sample]:
    """Read the refusals by source, the empty one for none, and reason."""
    for source in ("", *view.snapshot.sources):
        for reason, count in _refused(view, source):
            yield (source, reason.word), count


def requests(view: View) -> Iterator[Sample]:
    """Read the answers by source, the empty one for none, and status; 200 stands for all that refuse nothing."""
    counters = view.counters
    others: Counter[str] = Counter()
    for (source, *_), count in (*counters.labelled("handshake"), *counters.labelled("duplicate")):
        others[source] += count
    for source in view.snapshot.sources:
        yield (source, "200"), counters.sources[source].answers.count + others[source]
    for source in ("", *view.snapshot.sources):
        by_status: Counter[int] = Counter()
        for reason, count in _refused(view, source):
            by_status[reason.status] += count
        for status, count in by_status.items():
            yield (source, str(status)), count


def _refused(view: View, source: str) -> Iterator[tuple[Reason, int]]:
    """Read the refusals of a source, with 0 for each possible reason that has not occurred."""
    possible = REASONS_OF_SOURCE if source else REASONS_WITHOUT_SOURCE
    for reason in REASONS:
        count = view.counters.get("refused", reason.word, source)
        # A count is shown even if its reason should not have been possible.
        if count or reason.word in possible:
            yield reason, count


def not_stored(view: View) -> Iterator[Sample]:
    """Read the messages that were not stored, by observer."""
    for lane in view.snapshot.lanes:
        yield (lane.spec,), view.counters.get("not_stored", lane.spec)


def oldest_age(backlog: Backlog, view: View) -> float:
    """Return the age of the oldest message that waits, in seconds."""
    # The clock may have been set back.
    return 0.0 if backlog.oldest is None else max(0.0, view.now - backlog.oldest / 1e9)
