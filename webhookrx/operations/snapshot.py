"""
The receiver at one moment, from which health is judged and metrics are made; and many snapshots merged into one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.router.gate import ClosedConnector, GateReason


class Phase(Enum):
    """Where in its life the receiver is."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    """From the signal to stop on, before its endpoints close."""


class AlarmTally(NamedTuple):
    """How many subjects of an alarm rule are in a state that is not ok."""

    alarm: str
    kind: str
    state: str
    subjects: int


class ConsoleStanding(NamedTuple):
    """
    How the receiver stands with its console.

    @ivar status: what became of the newest bundle, such as C{APPLIED}, with C{error}.
    @ivar revision: of the bundle in use; 0 without one.
    @ivar away: seconds for which the console has not answered; 0 while it does.
    @ivar refusal: C{pending} while the router waits for approval at the console, C{disabled} while it is; else empty.
    @ivar problem: why it has not answered, or refuses this router; empty while all is well.
    @ivar lacks_bundle: it needs a bundle, and has had none.
    """

    status: str
    revision: int
    error: str
    away: float
    refusal: str
    problem: str
    lacks_bundle: bool


class Level(NamedTuple):
    """An amount, and its limit."""

    now: int
    most: int


class ReceiverSnapshot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    The receiver at one moment. How those of several workers become one is in L{_MERGE}.

    @ivar endpoints: each endpoint as its user wrote it, and whether it is bound.
    @ivar lanes: the ways to the observers.
    @ivar sources: the names of the sources.
    @ivar queue_bytes: bytes of bodies that arrive and of messages that wait.
    @ivar queue_messages: messages that wait.
    @ivar connections: open connections.
    @ivar requests: requests that have begun and are not answered in full.
    @ivar paused: whether reading from senders is off, since too much waits.
    @ivar certificates: each certificate file, and when what was read from it ends: seconds since the epoch.
    @ivar reload_succeeded: whether the last reload did; True before the first.
    @ivar loaded: when the settings in use were loaded, seconds since the epoch.
    @ivar connectors: the labels of each connector: its name, its rule, type, port, product, vendor, and all labels.
    @ivar unread_age: seconds that the oldest request in the sockets is unread; 0 while requests are read in time.
    @ivar overloaded: whether more is sent than can be read.
    @ivar blocked: why the connectors stay as they are, though the rules have others.
    @ivar closed: which connectors could not begin because of their files.
    @ivar not_taken: a sentence that says why the newest rules are not in use; empty when they are, or there are none.
    @ivar deliveries: how many deliveries the idempotency windows know.
    @ivar deliveries_not_kept: why a restart would forget them; empty when it would not, or nothing asks for that.
    @ivar alarms: how many alarms of each rule there are; none of a worker.
    @ivar console: how it stands with its console; None without one, and of a worker.
    """

    phase: Phase
    endpoints: Mapping[str, bool]
    lanes: Sequence[LaneStatus]
    sources: Sequence[str]
    queue_bytes: Level
    queue_messages: Level
    connections: Level
    requests: int
    paused: bool
    certificates: Mapping[str, float]
    reload_succeeded: bool
    loaded: float
    connectors: tuple[tuple[str, ...], ...] = ()
    blocked: tuple[GateReason, ...] = ()
    closed: tuple[ClosedConnector, ...] = ()
    not_taken: str = ""
    unread_age: float = 0.0
    overloaded: bool = False
    deliveries: int = 0
    deliveries_not_kept: str = ""
    alarms: tuple[AlarmTally, ...] = ()
    console: ConsoleStanding | None = None


NOTHING: Final = ReceiverSnapshot(
    phase=Phase.STARTING,
    endpoints={},
    lanes=(),
    sources=(),
    queue_bytes=Level(0, 0),
    queue_messages=Level(0, 0),
    connections=Level(0, 0),
    requests=0,
    paused=False,
    certificates={},
    reload_succeeded=True,
    loaded=0.0,
)
"""The snapshot of a receiver without workers."""


def merge(snapshots: Sequence[ReceiverSnapshot]) -> ReceiverSnapshot:
    """Return the snapshot of one receiver that consists of several, such as its workers."""
    if not snapshots:
        return NOTHING
    values = {name: [getattr(each, name) for each in snapshots] for name in ReceiverSnapshot.__struct_fields__}
    return ReceiverSnapshot(**{name: _MERGE[name](each) for name, each in values.items()})


_Merge: TypeAlias = Callable[[list[Any]], Any]


def _phase(phases: Sequence[Phase]) -> Phase:
    if Phase.DRAINING in phases:
        return Phase.DRAINING
    return Phase.STARTING if Phase.STARTING in phases else Phase.RUNNING


def _by_key(merge_values: Callable[[list[Any]], Any]) -> _Merge:
    """Merge the values of each key, with the keys in the order in which they come first."""

    def merge_mappings(mappings: list[Mapping[str, Any]]) -> dict[str, Any]:
        values: dict[str, list[Any]] = {}
        for mapping in mappings:
            for key, value in mapping.items():
                values.setdefault(key, []).append(value)
        return {key: merge_values(each) for key, each in values.items()}

    return merge_mappings


def _each_once(sequences: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(sequences)))


def _levels(levels: Iterable[Level]) -> Level:
    now, most = zip(*levels, strict=True)
    return Level(sum(now), sum(most))


def _lanes(sequences: Iterable[Sequence[LaneStatus]]) -> list[LaneStatus]:
    """Make one lane of the lanes to the same observer."""
    by_spec: dict[str, list[LaneStatus]] = {}
    for lane in chain.from_iterable(sequences):
        by_spec.setdefault(lane.spec, []).append(lane)
    return [
        LaneStatus(
            spec,
            messages=sum(lane.messages for lane in same),
            bytes=sum(lane.bytes for lane in same),
            stalled=any(lane.stalled for lane in same),
            # The latest failure counts.
            failed_ago=min((lane.failed_ago for lane in same if lane.failed_ago is not None), default=None),
            backlog=_backlog([lane.backlog for lane in same if lane.backlog is not None]),
        )
        for spec, same in by_spec.items()
    ]


def _backlog(backlogs: Sequence[Backlog]) -> Backlog | None:
    return Backlog.of_all(backlogs) if backlogs else None


def _first_known(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _first(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


#: How each field is merged. A problem of one worker is a problem of the receiver. The settings are as old as the oldest
#: in use, so that a reload shows once all workers have it.
_MERGE: Final[Mapping[str, _Merge]] = {
    "phase": _phase,
    "endpoints": _by_key(all),
    "lanes": _lanes,
    "sources": _each_once,
    "queue_bytes": _levels,
    "queue_messages": _levels,
    "connections": _levels,
    "requests": sum,
    "paused": any,
    "certificates": _by_key(min),
    "reload_succeeded": all,
    "loaded": min,
    "connectors": _each_once,
    "blocked": _each_once,
    "closed": _each_once,
    "not_taken": _first,
    "unread_age": max,
    "overloaded": any,
    "deliveries": sum,
    "deliveries_not_kept": _first,
    "alarms": _each_once,
    "console": _first_known,
}
