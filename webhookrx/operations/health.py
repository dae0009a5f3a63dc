"""
Health: whether the receiver is ready for messages, and why not; a plain function on plain values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from webhookrx.interfaces import LaneStatus
from webhookrx.operations.snapshot import ConsoleStanding, Phase, ReceiverSnapshot

#: Seconds for which the receiver is not ready after a failed C{store}. Then it takes messages again: without any there
#: would be no further C{store} to show whether the observer works.
FAILURE_COUNTS = 10.0


#: Seconds after which a console that does not answer needs attention.
AWAY_COUNTS = 600.0


class WorkerState(NamedTuple):
    """
    The state of a process that receives.

    @ivar number: from 0; it stays the same when the worker is restarted.
    @ivar up: it receives.
    @ivar stuck: it has sent nothing for too long.
    @ivar connections: how many it has open.
    """

    number: int
    up: bool
    stuck: bool = False
    connections: int = 0


ALONE = WorkerState(0, True)
"""The state of the only process."""


class Health(NamedTuple):
    """
    How the receiver is.

    @ivar state: C{"degraded"} is ready for messages, but needs attention.
    @ivar reasons: a sentence for each problem, the worst first. They name what the settings name, and no secrets.
    """

    state: Literal["ready", "degraded", "not_ready"]
    reasons: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether the receiver is ready for messages."""
        return self.state != "not_ready"


def health_of(snapshot: ReceiverSnapshot, workers: Sequence[WorkerState] = (ALONE,)) -> Health:
    severe = tuple(_severe(snapshot, workers))
    slight = tuple(_slight(snapshot, workers))
    if severe:
        return Health("not_ready", severe + slight)
    return Health("degraded", slight) if slight else Health("ready")


def _severe(snapshot: ReceiverSnapshot, workers: Sequence[WorkerState]) -> Iterator[str]:
    if snapshot.phase is not Phase.RUNNING:
        yield f"The receiver is {snapshot.phase.value}."
    if not any(worker.up and not worker.stuck for worker in workers):
        yield "No worker receives."
    for text, is_bound in snapshot.endpoints.items():
        if not is_bound:
            yield f"Endpoint {text} is not bound."
    if snapshot.console is not None and snapshot.console.lacks_bundle:
        yield "The router has no rules of its console yet."
    if snapshot.blocked and not snapshot.sources:
        yield "The router is blocked, so it has no connectors."
    elif snapshot.closed and not snapshot.sources:
        yield "All connectors of the router are closed."
    for lane in snapshot.lanes:
        problem = _problem(lane)
        if problem:
            yield f"Observer {lane.spec} {problem}"


def _problem(lane: LaneStatus) -> str:
    if lane.stalled:
        return "hangs."
    if lane.failed_ago is not None and lane.failed_ago < FAILURE_COUNTS:
        return "could not make its last messages safe."
    if lane.backlog is not None and lane.backlog.full:
        return "is full."
    return ""


def _slight(snapshot: ReceiverSnapshot, workers: Sequence[WorkerState]) -> Iterator[str]:
    if snapshot.not_taken:
        yield snapshot.not_taken
    elif not snapshot.reload_succeeded:
        # The reason is in the log alone: it may quote a configuration file, and anybody may read this page.
        yield "The last reload failed: the settings and secrets from before are in use."
    if snapshot.console is not None:
        yield from _of_console(snapshot.console)
    for reason in snapshot.blocked:
        yield f"The router is blocked: {reason.text}"
    yield from (each.sentence for each in snapshot.closed)
    if snapshot.overloaded:
        yield "More is sent than can be read: requests wait unread, and some are refused."
    if snapshot.deliveries_not_kept:
        # The reason is in the log alone: it names a path.
        yield "The idempotency window can't be kept: after a restart, deliveries may be stored again."
    for worker in workers:
        if worker.stuck:
            yield f"Worker {worker.number} hangs."
        elif not worker.up:
            yield f"Worker {worker.number} is not up."
    for lane in snapshot.lanes:
        # The reason is in the log alone: it may quote another machine, and anybody may read this page.
        if lane.backlog is not None and lane.backlog.away is not None:
            yield f"Observer {lane.spec} keeps messages for an observer that is away."


def _of_console(console: ConsoleStanding) -> Iterator[str]:
    if console.refusal == "pending":
        yield "The router waits for approval at the console."
    elif console.refusal:
        yield "The console has disabled this router, or does not know it: what runs goes on."
    elif console.away >= AWAY_COUNTS:
        yield f"No console for {_long(console.away)}: what runs goes on."


def _long(seconds: float) -> str:
    """Return a long time as people say it."""
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} d"
