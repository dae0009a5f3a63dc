"""
What the receiver is like at one moment: what health is judged by, and metrics are made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from webhookrx.interfaces import LaneState


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
    """

    phase: Phase
    endpoints: Mapping[str, bool]
    lanes: Sequence[LaneState]
    sources: Sequence[str]
    queue_bytes: Level
    queue_messages: Level
    connections: Level
    requests: int
    paused: bool
    certificates: Mapping[str, float]
    reload_succeeded: bool
    loaded: float
