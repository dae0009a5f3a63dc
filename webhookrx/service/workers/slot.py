"""
One place in the crew: the worker that has it now, and all that is known of those who had it.
"""

from __future__ import annotations

from enum import Enum
from math import inf

from twisted.internet.defer import Deferred

from webhookrx.operations.counters import Counters
from webhookrx.operations.health import WorkerState
from webhookrx.service.workers.messages import Changed, State
from webhookrx.service.workers.process import Worker
from webhookrx.service.workers.restarts import Restarts


class Wanted(Enum):
    """What is wanted in a place."""

    RUN = "run"
    """A worker that receives; one that ends is followed by another."""
    END = "end"
    """Nobody, once the worker has finished what is under way."""


class Member:
    """
    A place in the crew. All times are seconds on the monotonic clock.

    @ivar number: from 0.
    @ivar wanted: what is wanted there.
    @ivar worker: who has it; None while nobody does.
    @ivar size: how many workers there are as far as it knows.
    @ivar up: the worker receives.
    @ivar fit: whether the worker was told that the service should be sent messages.
    @ivar accepts: the worker may take connections.
    @ivar failure: why the worker could not begin, in its own words; empty when it did not say.
    @ivar state: what the worker said last of itself.
    @ivar counters: what it had counted by then.
    @ivar heard: when it last said anything.
    @ivar told_to_end: the worker was told to end.
    @ivar kill_at: when it is killed, if it has not ended.
    @ivar order: the number of the change that it is at.
    @ivar changed: waits for what comes of that; None while it is at none.
    @ivar change_until: how long.
    """

    def __init__(self, number: int, restarts: Restarts) -> None:
        self.number = number
        self.restarts = restarts
        self.wanted = Wanted.RUN
        self.order = 0
        self.changed: Deferred[Changed] | None = None
        self.change_until = inf
        self.heard = 0.0
        self.size = 0
        self.vacate()

    def vacate(self) -> None:
        """Nobody has it any more."""
        self.worker: Worker | None = None
        self.up = False
        self.fit = False
        self.accepts = False
        self.failure = ""
        self.state: State | None = None
        self.counters = Counters()
        self.told_to_end = False
        self.kill_at = inf

    def occupy(self, worker: Worker, size: int, now: float) -> None:
        """A worker has it from now on, who knows of so many."""
        self.worker = worker
        self.size = size
        self.accepts = True
        self.heard = now
        self.restarts.started(now)

    def tell(self, state: State) -> None:
        """
        Its worker says how it does.

        @raise ValueError, TypeError, LookupError: its counts can't be read.
        """
        self.counters = Counters.from_plain(state.counters)
        self.state = state

    def is_stuck(self, now: float, patience: float) -> bool:
        """Tell whether its worker has said nothing for too long."""
        return self.worker is not None and now - self.heard > patience

    def health(self, now: float, patience: float) -> WorkerState:
        """Return how its worker is, for operators."""
        return WorkerState(self.number, self.up, self.is_stuck(now, patience))
