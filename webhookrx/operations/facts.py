"""
What the receiver is like at one moment: what health is judged by, and metrics are made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from twisted.logger import Logger

from webhookrx.interfaces import Backlog, IBufferingObserver, IMessageObserver

_log = Logger()


class Phase(Enum):
    """What the receiver is about."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    """From the moment it is told to stop, before its endpoints close."""


class LaneState(Protocol):
    """What the chain tells of the way to one observer."""

    @property
    def observer(self) -> IMessageObserver:
        """Who stores."""

    @property
    def spec(self) -> str:
        """Its spec string, fit for a log line."""

    @property
    def messages(self) -> int:
        """How many messages wait for it, those that are being stored included."""

    @property
    def bytes(self) -> int:
        """What they take."""

    @property
    def stalled(self) -> bool:
        """Whether its C{store} has been running for longer than an answer may take."""

    @property
    def failing(self) -> str | None:
        """Why its last C{store} made nothing safe; None when all is well."""

    @property
    def failing_age(self) -> float:
        """Seconds since then."""


class Lane(NamedTuple):
    """
    The way to one observer.

    @ivar spec: the observer's spec string, fit for a log line.
    @ivar messages: how many wait for it.
    @ivar bytes: what they take.
    @ivar stalled: its C{store} has been running for longer than an answer may take.
    @ivar failed_ago: seconds since its last C{store}, which made nothing safe; None when all is well.
    @ivar backlog: what it keeps for another observer; None when it keeps nothing.
    """

    spec: str
    messages: int = 0
    bytes: int = 0
    stalled: bool = False
    failed_ago: float | None = None
    backlog: Backlog | None = None


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
    """

    phase: Phase
    endpoints: Mapping[str, bool]
    lanes: Sequence[Lane]
    sources: Sequence[str]
    queue_bytes: Level
    queue_messages: Level
    connections: Level
    requests: int
    paused: bool
    certificates: Mapping[str, float]
    reload_succeeded: bool
    loaded: float


def lane_of(state: LaneState) -> Lane:
    """Return the facts of a lane. An observer that can't tell its backlog is one without."""
    backlog = None
    if IBufferingObserver.providedBy(state.observer):
        try:
            backlog = state.observer.backlog()
        except Exception:
            _log.failure("Observer {spec} can't tell what it keeps", spec=state.spec)
    failed_ago = None if state.failing is None else state.failing_age
    return Lane(state.spec, state.messages, state.bytes, state.stalled, failed_ago, backlog)
