"""
How a console does, for operators: its health and its metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, get_args

from webhookrx.console.alarms.console_alarms import AlarmsStatus
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.registry import RouterState
from webhookrx.console.taps.console_taps import TapsStatus
from webhookrx.management.agent_protocol import ApplyStatus
from webhookrx.management.alarm_values import STANDING
from webhookrx.operations.health import Health
from webhookrx.operations.metric import Build, Kind, Metric, Sample
from webhookrx.operations.snapshot import Phase


class FleetStatus(NamedTuple):
    """
    The routers of a console at one moment; all but C{states} are about those that are approved.

    @ivar states: routers by state.
    @ivar statuses: routers by what became of their newest bundle.
    @ivar polls: polls that wait.
    @ivar away: those of which nothing has been heard for longer than they would be silent.
    @ivar gates_closed: those whose reload gate is closed.
    """

    states: Mapping[str, int] = {}
    statuses: Mapping[str, int] = {}
    polls: int = 0
    away: int = 0
    gates_closed: int = 0
    duplicates: int = 0
    connectors: int = 0
    is_held_back: bool = False


def fleet_status(fleet: FleetOfRouters | None) -> FleetStatus:
    """Return how routers do; without a fleet, as none have been read yet, there are none."""
    if fleet is None:
        return FleetStatus()
    now = fleet.clock()
    approved = [each for each in fleet.registry if each.state == "approved"]
    return FleetStatus(
        Counter(each.state for each in fleet.registry),
        Counter(each.applied.status for each in approved),
        fleet.polls.waiting,
        sum(each.is_away(now) for each in approved),
        sum(bool(each.gate.reasons or each.gate.paths) for each in approved),
        sum(each.is_duplicate(now) for each in approved),
        sum(len(each.connectors) for each in approved),
        bool(fleet.problem),
    )


class ConsoleStatus(NamedTuple):
    """
    A console at one moment.

    @ivar revision: the newest one.
    @ivar waiting: calls that wait for the store, or are under way there.
    @ivar store_problem: why the last write failed; empty when it did not.
    @ivar problems: what else needs attention.
    @ivar fleet: its routers.
    @ivar taps: those that run, and what they have shown.
    @ivar alarms: how many there are in which state.
    """

    phase: Phase
    build: Build
    started: float
    revision: int = 0
    waiting: int = 0
    writes: int = 0
    failed_writes: int = 0
    store_problem: str = ""
    problems: tuple[str, ...] = ()
    fleet: FleetStatus = FleetStatus()
    taps: TapsStatus = TapsStatus()
    alarms: AlarmsStatus = AlarmsStatus()


def console_health(status: ConsoleStatus) -> Health:
    """Return whether a console works, and why not. Routers go on without it."""
    if status.phase is not Phase.RUNNING:
        return Health("not_ready", (f"The console is {status.phase.value}.", *status.problems))
    if status.store_problem:
        return Health("not_ready", (status.store_problem, *status.problems))
    return Health("degraded", status.problems) if status.problems else Health("ready")


def _metric(name: str, kind: Kind, help: str, read: Callable[[ConsoleStatus], float]) -> Metric[ConsoleStatus]:
    def samples(status: ConsoleStatus) -> Iterator[Sample]:
        yield (), read(status)

    return Metric(name, kind, (), help, samples)


def _by(
    name: str, label: str, words: tuple[str, ...], help: str, read: Callable[[FleetStatus], Mapping[str, int]]
) -> Metric[ConsoleStatus]:
    def samples(status: ConsoleStatus) -> Iterator[Sample]:
        numbers = read(status.fleet)
        for word in words:
            yield (word.lower(),), numbers.get(word, 0)

    return Metric(name, "gauge", (label,), help, samples)


def _alarms(status: ConsoleStatus) -> Iterator[Sample]:
    for each in status.alarms.counts:
        for state in (*STANDING, "left_out"):
            yield (each.alarm, each.kind, state), getattr(each, state)


def _alarm_posts(status: ConsoleStatus) -> Iterator[Sample]:
    yield ("told",), status.alarms.telling.told
    yield ("given_up",), status.alarms.telling.given_up


CONSOLE_METRICS: Final = (
    _metric("webhookrx_console_start_timestamp_seconds", "gauge", "When it started.", lambda status: status.started),
    _metric("webhookrx_console_revision", "gauge", "The newest revision.", lambda status: status.revision),
    _metric(
        "webhookrx_console_store_waiting", "gauge", "Calls that the store has to do.", lambda status: status.waiting
    ),
    _metric(
        "webhookrx_console_writes_total", "counter", "Transactions that were written.", lambda status: status.writes
    ),
    _metric(
        "webhookrx_console_failed_writes_total",
        "counter",
        "Transactions that could not be written, such as on a full disk; nothing of them is there.",
        lambda status: status.failed_writes,
    ),
    _metric(
        "webhookrx_console_store_failed",
        "gauge",
        "1 since a transaction could not be written, until one is.",
        lambda status: bool(status.store_problem),
    ),
    _by(
        "webhookrx_console_routers",
        "state",
        get_args(RouterState),
        "Routers that are enrolled.",
        lambda fleet: fleet.states,
    ),
    _by(
        "webhookrx_console_router_bundles",
        "status",
        get_args(ApplyStatus),
        "Approved routers, by what became of the newest bundle of each; blocked ones wait for files.",
        lambda fleet: fleet.statuses,
    ),
    _metric(
        "webhookrx_console_router_polls", "gauge", "Polls of routers that wait.", lambda status: status.fleet.polls
    ),
    _metric(
        "webhookrx_console_routers_away",
        "gauge",
        "Approved routers of which nothing has been heard for a minute.",
        lambda status: status.fleet.away,
    ),
    _metric(
        "webhookrx_console_routers_gate_closed",
        "gauge",
        "Approved routers whose reload gate is closed.",
        lambda status: status.fleet.gates_closed,
    ),
    _metric(
        "webhookrx_console_routers_duplicate",
        "gauge",
        "Approved routers whose certificate is used by two processes.",
        lambda status: status.fleet.duplicates,
    ),
    _metric(
        "webhookrx_console_connectors",
        "gauge",
        "Connectors of approved routers, as they have told last.",
        lambda status: status.fleet.connectors,
    ),
    _metric(
        "webhookrx_console_held_back",
        "gauge",
        "1 while nothing is handed out to routers, as the console is older than they are.",
        lambda status: status.fleet.is_held_back,
    ),
    _metric("webhookrx_console_taps", "gauge", "Taps that run.", lambda status: status.taps.running),
    _metric(
        "webhookrx_console_tap_rows_total",
        "counter",
        "Messages, refusals and lines that taps have shown.",
        lambda status: status.taps.shown,
    ),
    _metric(
        "webhookrx_console_tap_rows_dropped_total",
        "counter",
        "Those of them that nobody got, since the reader of the tap was slow or had gone.",
        lambda status: status.taps.dropped,
    ),
    Metric(
        "webhookrx_console_alarms",
        "gauge",
        ("alarm", "kind", "state"),
        "What alarms are about that is `firing`, `pending` or `unknown`; what is too much to be known is `left_out`.",
        _alarms,
    ),
    _metric(
        "webhookrx_console_alarms_looked_timestamp_seconds",
        "gauge",
        "When the console has looked at its alarms last; 0 before the first time.",
        lambda status: status.alarms.looked_at,
    ),
    Metric(
        "webhookrx_console_alarm_posts_total",
        "counter",
        ("result",),
        "Changes of alarms that targets were told of, by result: `told` or `given_up`.",
        _alarm_posts,
    ),
    _metric(
        "webhookrx_console_alarm_posts_waiting",
        "gauge",
        "Changes of alarms that targets are to be told of.",
        lambda status: status.alarms.telling.waiting,
    ),
)
"""What a console shows on C{/metrics}."""
