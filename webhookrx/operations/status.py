"""
The status of a service, for people: what it takes, refuses and stores, and what needs attention.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from webhookrx.interfaces import LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import WorkerState, health_of
from webhookrx.operations.snapshot import ReceiverSnapshot

if TYPE_CHECKING:
    from webhookrx.management.alarm_values import AlarmRow

RATE_OVER: Final = 60.0
"""Seconds over which rates are taken."""


class Rates:
    """
    How many messages a second each source takes, over the last minute or since the start.

    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, Mapping[str, int]]] = deque([(clock(), {})])

    def take(self, messages: Mapping[str, int]) -> None:
        """Take how many messages each source has taken until now."""
        now = self._clock()
        self._samples.append((now, messages))
        while len(self._samples) > 2 and now - self._samples[1][0] >= RATE_OVER:
            self._samples.popleft()

    def rates(self) -> dict[str, float]:
        """Return messages a second by source."""
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        seconds = last - first
        if seconds <= 0:
            return {}
        return {name: (count - before.get(name, 0)) / seconds for name, count in after.items()}


def status_of(
    counters: Counters,
    snapshot: ReceiverSnapshot,
    workers: Sequence[WorkerState],
    rates: Mapping[str, float],
    now: float,
    started: float,
    version: str,
    alarms: Sequence[AlarmRow] | None = None,
) -> dict[str, Any]:
    """
    Return a service as JSON values. It names what the settings name, and no secrets.

    @param rates: messages a second, by source.
    @param now: seconds since the epoch, as all times here.
    @param alarms: those that are not ok; None: there are no alarm rules.
    """
    health = health_of(snapshot, workers)
    refused: dict[str, dict[str, int]] = {}
    for (word, source), count in counters.labelled("refused"):
        if count:
            refused.setdefault(source, {})[word] = count
    ports = {row[0]: int(row[3]) for row in snapshot.connectors}
    sources = [_source(name, counters, rates, refused.get(name, {}), ports.get(name)) for name in snapshot.sources]
    return {
        "version": version,
        "now": now,
        "started": started,
        "phase": snapshot.phase.value,
        "health": health.state,
        "reasons": list(health.reasons),
        "loaded": snapshot.loaded,
        "endpoints": dict(snapshot.endpoints),
        "connections": {"now": snapshot.connections.now, "most": snapshot.connections.most},
        "queue": {
            "messages": snapshot.queue_messages.now,
            "bytes": snapshot.queue_bytes.now,
            "most_bytes": snapshot.queue_bytes.most,
        },
        "workers": [worker._asdict() for worker in workers],
        "sources": sources,
        "refused_before_a_source": refused.get("", {}),
        "observers": [_observer(lane, counters, now) for lane in snapshot.lanes],
        "certificates": dict(snapshot.certificates),
        "gate": {
            "closed": bool(snapshot.blocked),
            "reasons": [to_builtins(each) for each in snapshot.blocked],
            "without": [{**to_builtins(each), "text": each.sentence} for each in snapshot.closed],
        },
        "console": None if snapshot.console is None else snapshot.console._asdict(),
        "alarms": None if alarms is None else [to_builtins(each) for each in alarms],
    }


def _source(
    name: str, counters: Counters, rates: Mapping[str, float], refused: Mapping[str, int], port: int | None
) -> dict[str, Any]:
    counts = counters.sources.get(name)
    return {
        "name": name,
        "port": port,
        "messages": 0 if counts is None else counts.messages,
        "bytes": 0 if counts is None else counts.bytes,
        "last": None if counts is None or not counts.last else counts.last,
        "rate": rates.get(name),
        "senders": {} if counts is None else {sender: last or None for sender, last in counts.last_by_sender.items()},
        "refused": dict(refused),
    }


def _observer(lane: LaneStatus, counters: Counters, now: float) -> dict[str, Any]:
    counts, backlog = counters.observers.get(lane.spec), lane.backlog
    state = "hangs" if lane.stalled else "fails" if lane.failed_ago is not None else "ok"
    if state == "ok" and backlog is not None and backlog.away is not None:
        state = "away"
    return {
        "spec": lane.spec,
        "state": state,
        "waiting": lane.messages,
        "messages": 0 if counts is None else counts.messages,
        "refused": 0 if counts is None else counts.refused,
        "backlog": None
        if backlog is None
        else {
            "messages": backlog.messages,
            "bytes": backlog.bytes,
            "oldest_age": None if backlog.oldest is None else max(0.0, now - backlog.oldest / 1e9),
            "dead": backlog.dead,
            "full": backlog.full,
        },
    }
