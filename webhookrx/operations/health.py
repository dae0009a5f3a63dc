"""
Whether the receiver should be sent anything: a plain function on plain values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from webhookrx.interfaces import LaneState
from webhookrx.operations.facts import Facts, Phase

#: Seconds for which a failed C{store} tells against an observer. After that only another try can tell, and there is
#: none without messages: it must not keep them away for ever.
FAILURE_COUNTS = 10.0


class Health(NamedTuple):
    """
    How the receiver is.

    @ivar state: C{"degraded"} is fit for messages, but somebody should look.
    @ivar reasons: a sentence for each thing that is not as it should be, the worst first. They hold what the settings
        hold and no secrets.
    """

    state: Literal["ready", "degraded", "not_ready"]
    reasons: tuple[str, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether messages should be sent."""
        return self.state != "not_ready"


def health_of(facts: Facts) -> Health:
    """Judge by these facts."""
    severe = tuple(_severe(facts))
    slight = tuple(_slight(facts))
    if severe:
        return Health("not_ready", severe + slight)
    return Health("degraded", slight) if slight else Health("ready")


def _severe(facts: Facts) -> Iterator[str]:
    if facts.phase is not Phase.RUNNING:
        yield f"The receiver is {facts.phase.value}."
    for text, is_bound in facts.endpoints.items():
        if not is_bound:
            yield f"Endpoint {text} is not bound."
    for lane in facts.lanes:
        problem = _problem(lane)
        if problem:
            yield f"Observer {lane.spec} {problem}"


def _problem(lane: LaneState) -> str:
    if lane.stalled:
        return "hangs."
    if lane.failed_ago is not None and lane.failed_ago < FAILURE_COUNTS:
        return "could not make its last messages safe."
    if lane.backlog is not None and lane.backlog.full:
        return "is full."
    return ""


def _slight(facts: Facts) -> Iterator[str]:
    for lane in facts.lanes:
        # Why it is away is in the log: what another machine says is not for whoever asks here.
        if lane.backlog is not None and lane.backlog.away is not None:
            yield f"Observer {lane.spec} keeps messages for one that is away."
