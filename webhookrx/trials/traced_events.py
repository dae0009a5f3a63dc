"""
Processing that records the steps of each event of a body, not of the last alone.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from webhookrx.intake.provenance import Provenance
from webhookrx.router.expressions import Files, no_files
from webhookrx.router.steps.processing import ProcessingResult
from webhookrx.router.steps.step import Preprocessing
from webhookrx.router.steps.traced import TracedProcessing, TracedStep
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.evidence import Evidence

MOST_EVENTS: Final = 10
"""Events of a body that are put through the steps; the others stay as they are."""


class TracedEvent(NamedTuple):
    """
    One event on its way through the steps.

    @ivar before: the message before the first step.
    @ivar trace: the steps that it reached, in order.
    """

    before: dict[str, Any]
    trace: list[TracedStep]


class TracedEvents(TracedProcessing):
    """
    Processing with a record of its first runs.

    @ivar events: of each run, in order.
    """

    __slots__ = ("events",)

    def __init__(self, preprocessing: Preprocessing, classifier: Classifier | None, files: Files = no_files) -> None:
        """See L{TracedProcessing.__init__}."""
        super().__init__(preprocessing, classifier, files)
        self.events: list[TracedEvent] = []

    def run(
        self,
        record: dict[str, Any],
        evidence: Evidence,
        host_is_set: bool = False,
        provenance: Provenance | None = None,
    ) -> ProcessingResult:
        """See L{TracedProcessing.run}."""
        if len(self.events) >= MOST_EVENTS:
            return ProcessingResult(True)
        result = super().run(record, evidence, host_is_set, provenance)
        self.events.append(TracedEvent(self.before or {}, self.trace))
        return result
