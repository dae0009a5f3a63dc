"""
A message on its way through processing steps, and what they leave behind of it for the counters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from webhookrx.work import Work

if TYPE_CHECKING:
    from webhookrx.senders.classifier import Classifier, Match
    from webhookrx.senders.evidence import Evidence

#: What happened to a message at a step: a kind, and a name for the label of its counter.
StepEvent: TypeAlias = tuple[str, str]

# The kinds. The name is that of the step, but for a probe its own, and for CLASSIFIED the id of the sender's entry,
# empty when there is none.
DROPPED: Final = "dropped"
PROBE: Final = "probe"
CLASSIFIED: Final = "classified"
STEP_ERROR: Final = "step_error"

UNKNOWN_SENDER: Final[StepEvent] = (CLASSIFIED, "")


class StepContext(msgspec.Struct, gc=False):
    """
    One message under way.

    @ivar record: the message; steps change it in place.
    @ivar evidence: what is known of the request.
    @ivar host_is_set: the path said which host it is, so that no sender's entry does.
    @ivar classifier: knows the senders; None where no step asks.
    @ivar match: who sent it, once a Classify has found out.
    @ivar work: what may still be done for it.
    @ivar stale: C{log.body} may have changed since C{evidence} was made.
    """

    record: dict[str, Any]
    evidence: Evidence
    host_is_set: bool
    classifier: Classifier | None
    work: Work
    match: Match | None = None
    stale: bool = False


#: Tells whether a step is done to a message. What it raises means that the step failed.
Condition: TypeAlias = Callable[[StepContext], bool]

#: Does one step to a message. An event of the kind L{DROPPED} ends its way. What it raises means that the step failed
#: and has left the message as it was.
Action: TypeAlias = Callable[[StepContext], "StepEvent | None"]
