"""
What the receiver is like at one moment: what health is judged by, and metrics are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.operations.counters import encodable

_Value = TypeVar("_Value", bool, float)


class Phase(Enum):
    """What the receiver is about."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    """From the moment it is told to stop, before its endpoints close."""


class Level(NamedTuple):
    """How much there is of something, and how much there may be."""

    now: int
    most: int


class Facts(NamedTuple):
    """
    The receiver at one moment.

    @ivar phase: what it is about.
    @ivar endpoints: each endpoint as its user wrote it, and whether it is bound.
    @ivar lanes: the ways to the observers.
    @ivar sources: the names of the sources.
    @ivar queue_bytes: bytes of bodies that arrive and of messages that wait.
    @ivar queue_messages: messages that wait.
    @ivar connections: open connections.
    @ivar requests: requests that have begun and are not answered in full.
    @ivar paused: whether reading from senders is off, since too much waits.
    @ivar certificates: each certificate file, and when what was read from it ends: seconds since the epoch.
    @ivar reload_succeeded: whether the last reload did; True when there was none.
    @ivar loaded: when the settings in use were loaded, seconds since the epoch.
    @ivar connectors: the labels of each connector: its name, its rule, type, port, product, vendor, and all labels.
    @ivar unread_age: seconds that the oldest of what senders have sent is unread; 0 while it is read in time.
    @ivar overloaded: whether more is sent than can be read.
    @ivar blocked: why the connectors stay as they are, though the rules have others: one sentence for each file.
    @ivar closed: which connectors could not begin because of their files, and why: one sentence for each.
    @ivar not_taken: why the rules file as it is now is not in use; empty when it is, or there is none.
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
    blocked: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    not_taken: str = ""
    unread_age: float = 0.0
    overloaded: bool = False


def portable(facts: Facts) -> Facts:
    """Return the same facts with texts that UTF-8 can hold, for another process; as L{Counters.plain} has them."""
    return facts._replace(
        endpoints={encodable(text): is_bound for text, is_bound in facts.endpoints.items()},
        lanes=[_portable_lane(lane) for lane in facts.lanes],
        sources=[encodable(name) for name in facts.sources],
        certificates={encodable(file): ends for file, ends in facts.certificates.items()},
        blocked=tuple(map(encodable, facts.blocked)),
        closed=tuple(map(encodable, facts.closed)),
        not_taken=encodable(facts.not_taken),
    )


def total(facts: Sequence[Facts]) -> Facts:
    """
    Return the facts of one receiver that consists of several: one at least.

    What is wrong with any of them is wrong with it. Its settings are as old as the oldest of theirs, so that a reload
    shows once it has come to all.
    """
    return Facts(
        phase=_phase([each.phase for each in facts]),
        endpoints=_merged((each.endpoints for each in facts), all),
        lanes=_lanes([lane for each in facts for lane in each.lanes]),
        sources=list(dict.fromkeys(name for each in facts for name in each.sources)),
        queue_bytes=_level(each.queue_bytes for each in facts),
        queue_messages=_level(each.queue_messages for each in facts),
        connections=_level(each.connections for each in facts),
        requests=sum(each.requests for each in facts),
        paused=any(each.paused for each in facts),
        certificates=_merged((each.certificates for each in facts), min),
        reload_succeeded=all(each.reload_succeeded for each in facts),
        loaded=min(each.loaded for each in facts),
        connectors=tuple(dict.fromkeys(labels for each in facts for labels in each.connectors)),
        blocked=tuple(dict.fromkeys(reason for each in facts for reason in each.blocked)),
        closed=tuple(dict.fromkeys(reason for each in facts for reason in each.closed)),
        not_taken=next((each.not_taken for each in facts if each.not_taken), ""),
        unread_age=max(each.unread_age for each in facts),
        overloaded=any(each.overloaded for each in facts),
    )


def _portable_lane(lane: LaneStatus) -> LaneStatus:
    backlog = lane.backlog
    if backlog is not None and backlog.away is not None:
        backlog = backlog._replace(away=encodable(backlog.away))
    return lane._replace(spec=encodable(lane.spec), backlog=backlog)


def _phase(phases: Sequence[Phase]) -> Phase:
    if Phase.DRAINING in phases:
        return Phase.DRAINING
    return Phase.STARTING if Phase.STARTING in phases else Phase.RUNNING


def _merged(mappings: Iterable[Mapping[str, _Value]], merge: Callable[[Iterable[_Value]], _Value]) -> dict[str, _Value]:
    """Merge the values of each key, with the keys in the order in which they come first."""
    values: dict[str, list[_Value]] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            values.setdefault(key, []).append(value)
    return {key: merge(each) for key, each in values.items()}


def _level(levels: Iterable[Level]) -> Level:
    now, most = zip(*levels, strict=True)
    return Level(sum(now), sum(most))


def _lanes(lanes: Iterable[LaneStatus]) -> list[LaneStatus]:
    """Make one lane of those to the same observer."""
    by_spec: dict[str, list[LaneStatus]] = {}
    for lane in lanes:
        by_spec.setdefault(lane.spec, []).append(lane)
    return [
        LaneStatus(
            spec,
            messages=sum(lane.messages for lane in same),
            bytes=sum(lane.bytes for lane in same),
            stalled=any(lane.stalled for lane in same),
            # The last failure is what tells.
            failed_ago=min((lane.failed_ago for lane in same if lane.failed_ago is not None), default=None),
            backlog=_backlog([lane.backlog for lane in same if lane.backlog is not None]),
        )
        for spec, same in by_spec.items()
    ]


def _backlog(backlogs: Sequence[Backlog]) -> Backlog | None:
    return Backlog.of_all(backlogs) if backlogs else None
