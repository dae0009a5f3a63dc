"""
What all kinds of steps share: the context and the events of a message, and the problems of a step as it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from webhookrx.diagnostics import Diagnostic, Path, diagnose
from webhookrx.errors import WebhookrxError
from webhookrx.work import Work

if TYPE_CHECKING:
    from webhookrx.intake.provenance import Provenance
    from webhookrx.senders.classifier import Classifier, Match
    from webhookrx.senders.evidence import Evidence

#: What happened to a message at a step: a kind, and a name for the label of its counter.
StepEvent: TypeAlias = tuple[str, str]

# The kinds. The name is that of the step; for PROBE that of the probe; for CLASSIFIED the id of the sender's
# definition, empty for an unknown sender.
DROPPED: Final = "dropped"
PROBE: Final = "probe"
CLASSIFIED: Final = "classified"
STEP_ERROR: Final = "step_error"

UNKNOWN_SENDER: Final[StepEvent] = (CLASSIFIED, "")


class StepContext(msgspec.Struct, gc=False):
    """
    One message on its way through the steps.

    @ivar record: the message; steps change it in place.
    @ivar evidence: the request, as Classify and Parse see it.
    @ivar host_is_set: C{meta.host.name} is from the path: no sender's definition replaces it.
    @ivar classifier: None where no step classifies.
    @ivar work: the budget of the current step.
    @ivar match: the sender, once a Classify has found it.
    @ivar provenance: what is known of the sender beforehand; None if that is nothing.
    @ivar stale: C{log.body} may have changed since C{evidence} was made.
    """

    record: dict[str, Any]
    evidence: Evidence
    host_is_set: bool
    classifier: Classifier | None
    work: Work
    match: Match | None = None
    provenance: Provenance | None = None
    stale: bool = False


#: Tells whether a step applies to a message. If it raises, the step has failed.
Condition: TypeAlias = Callable[[StepContext], bool]

#: Applies a step to a message. An event of the kind L{DROPPED} drops the message. If it raises, the step has failed and
#: left the message as it was.
Action: TypeAlias = Callable[[StepContext], "StepEvent | None"]


class StepError(WebhookrxError):
    """
    A step can't be used.

    @ivar diagnostic: the first thing that is wrong with it.
    """

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.sentence)
        self.diagnostic = diagnostic


class StepProblems(list[Diagnostic]):
    """
    What is wrong with one step, in the order in which it was found. Paths begin at the step.

    @ivar hides: the step removes or masks something of a message.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hides = False

    def add(self, code: str, sentence: str, path: Path = (), line: int = 0, column: int = 0) -> None:
        """Note one more; the arguments are those of L{Diagnostic}."""
        self.append(diagnose(code, path, sentence, line, column))
