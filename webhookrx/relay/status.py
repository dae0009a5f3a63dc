"""
How a relay does, for operators: its status, its health and its metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from webhookrx.interfaces import LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import Health
from webhookrx.operations.metric import Kind, Metric, Sample, View
from webhookrx.operations.metrics import METRICS
from webhookrx.operations.snapshot import Phase
from webhookrx.relay.relay import BYTES, DEAD, LOST, RECORDS, REDELIVERED, STORED, TEXTS


class RelayStatus(NamedTuple):
    """
    A relay at one moment.

    @ivar broker: the spec of the broker, fit for a page that anybody may read.
    @ivar broker_away: whether it does not deliver.
    @ivar held: records that are fetched and not settled.
    @ivar lag: records that wait in the broker; None if unknown.
    @ivar lanes: the observer, and that of dead letters; C{failed_ago} is None while it takes messages.
    """

    phase: Phase
    broker: str
    broker_away: bool
    held: int
    lag: int | None
    lanes: tuple[LaneStatus, ...]


class RelayView(NamedTuple):
    """
    Everything that the metrics of a relay are read from.

    @ivar view: what those of observers are read from, as for a receiver.
    """

    view: View
    status: RelayStatus

    @property
    def counters(self) -> Counters:
        """What was counted, as a copy."""
        return self.view.counters


def relay_health(status: RelayStatus) -> Health:
    """Return whether messages are moved, and why not. The reasons name what the options name, and no secrets."""
    severe, slight = tuple(_severe(status)), tuple(_slight(status))
    if severe:
        return Health("not_ready", severe + slight)
    return Health("degraded", slight) if slight else Health("ready")


def _severe(status: RelayStatus) -> Iterator[str]:
    if status.phase is not Phase.RUNNING:
        yield f"The relay is {status.phase.value}."
    if status.broker_away:
        yield f"Broker {status.broker} does not deliver."
    for lane in status.lanes:
        if lane.stalled:
            yield f"Observer {lane.spec} hangs."
        elif lane.failed_ago is not None:
            yield f"Observer {lane.spec} does not take messages."
        elif lane.backlog is not None and lane.backlog.full:
            yield f"Observer {lane.spec} is full."


def _slight(status: RelayStatus) -> Iterator[str]:
    for lane in status.lanes:
        # The reason is in the log alone: it may quote another machine, and anybody may read this page.
        if lane.backlog is not None and lane.backlog.away is not None:
            yield f"Observer {lane.spec} keeps messages for an observer that is away."


def summary(counters: Counters, status: RelayStatus) -> str:
    """Return one line on how the relay does."""
    lag = "" if status.lag is None else f", {status.lag} waiting in the broker"
    stored, dead = counters.get(STORED), counters.get(DEAD)
    return f"{counters.get(RECORDS)} records, {stored} stored, {dead} dead letters, {status.held} in hand{lag}"


# -- metrics ---------------------------------------------------------------------------------------------------------


def _of_receivers(metric: Metric[View]) -> Metric[RelayView]:
    read: Callable[[View], Iterable[Sample]] = metric.read
    return Metric(metric.name, metric.kind, metric.labels, metric.help, lambda relay: read(relay.view))


def _counter(name: str, help: str, count: str) -> Metric[RelayView]:
    return Metric(name, "counter", (), help, lambda relay: [((), relay.counters.get(count))])


def _gauge(name: str, help: str, read: Callable[[RelayStatus], float | None]) -> Metric[RelayView]:
    """Return a gauge without labels, of a value that may be unknown."""

    def samples(relay: RelayView) -> Iterator[Sample]:
        value = read(relay.status)
        if value is not None:
            yield (), value

    kind: Kind = "gauge"
    return Metric(name, kind, (), help, samples)


OWN_METRICS: Final = (
    _counter("webhookrx_relay_records_total", "Records fetched from the broker, again included.", RECORDS),
    _counter("webhookrx_relay_record_bytes_total", "Bytes of their values.", BYTES),
    _counter(
        "webhookrx_relay_text_records_total",
        "Records that were no lines of webhookrx, and became messages with their text.",
        TEXTS,
    ),
    _counter(
        "webhookrx_relay_redelivered_records_total",
        "Records that the broker says it has delivered before.",
        REDELIVERED,
    ),
    _counter("webhookrx_relay_stored_messages_total", "Messages that the observer has stored.", STORED),
    _counter(
        "webhookrx_relay_dead_messages_total",
        "Messages that the observer has refused for good, and the observer of dead letters has stored.",
        DEAD,
    ),
    _counter(
        "webhookrx_relay_lost_records_total",
        "Records that went to another relay of the group before they were settled.",
        LOST,
    ),
    _gauge("webhookrx_relay_held_records", "Records fetched and not settled.", lambda status: status.held),
    _gauge(
        "webhookrx_relay_lag_records",
        "Records that wait in the broker for the group, or for this relay where the broker tells only that.",
        lambda status: status.lag,
    ),
    _gauge("webhookrx_relay_broker_away", "1 while the broker does not deliver.", lambda status: status.broker_away),
)
"""What only a relay has."""

_SHARED: Final = ("webhookrx_build_info", "webhookrx_start_timestamp_seconds")

#: It speaks of senders, and there are none.
_LEFT_OUT: Final = "webhookrx_observer_failed_messages_total"

RELAY_METRICS: Final = (
    *OWN_METRICS,
    *(
        _of_receivers(metric)
        for metric in METRICS
        if (metric.labels == ("observer",) and metric.name != _LEFT_OUT) or metric.name in _SHARED
    ),
)
"""All metrics of a relay; those of observers are the receiver's."""
