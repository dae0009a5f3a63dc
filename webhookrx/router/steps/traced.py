"""
Processing that records the message after each step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from webhookrx.intake.provenance import Provenance
from webhookrx.router.expressions import Files, no_files
from webhookrx.router.steps.context import DROPPED, Action, Condition, StepContext, StepEvent
from webhookrx.router.steps.field_steps import own_copy
from webhookrx.router.steps.processing import NotBegun, Processing, ProcessingResult, problem_of, tag
from webhookrx.router.steps.step import DROP, TAG, Preprocessing
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.evidence import Evidence


class TracedStep(NamedTuple):
    """
    One step on one message.

    @ivar name: of the step.
    @ivar record: a copy of the message after it.
    @ivar skipped: its condition does not match.
    @ivar problem: why it failed, or did not begin; empty otherwise.
    @ivar dropped: the step, or its C{on_error}, has dropped the message.
    @ivar seconds: how long it took, without what it takes to record that.
    """

    name: str
    record: dict[str, Any]
    skipped: bool = False
    problem: str = ""
    dropped: bool = False
    seconds: float = 0.0


class TracedProcessing(Processing):
    """
    Processing with a record of its last run.

    @ivar names: of all steps, in order.
    @ivar before: the message before the first step; None before the first run.
    @ivar trace: the steps that the message reached, in order.
    """

    __slots__ = ("before", "names", "trace")

    def __init__(self, preprocessing: Preprocessing, classifier: Classifier | None, files: Files = no_files) -> None:
        """See L{Processing.__init__}."""
        super().__init__(preprocessing, classifier, files=files)
        self.names = tuple(name for name, *_ in self._steps)
        self.before: dict[str, Any] | None = None
        self.trace: list[TracedStep] = []
        self._steps = tuple(
            (name, None, self._traced(name, matches, act, on_error), on_error)
            for name, matches, act, on_error in self._steps
        )

    def run(
        self,
        record: dict[str, Any],
        evidence: Evidence,
        host_is_set: bool = False,
        provenance: Provenance | None = None,
    ) -> ProcessingResult:
        """See L{Processing.run}."""
        self.before = own_copy(record)
        self.trace = []
        outcome = super().run(record, evidence, host_is_set, provenance)
        # When no work is left to begin a step, none is left for the steps after it.
        for name, _, _, on_error in self._steps[len(self.trace) :]:
            if self.trace and self.trace[-1].dropped:
                break
            self._failed(name, on_error, self._last, NotBegun())
        return outcome

    @property
    def _last(self) -> dict[str, Any]:
        return self.trace[-1].record if self.trace else self.before or {}

    def _failed(self, name: str, on_error: str, record: dict[str, Any], error: Exception, seconds: float = 0.0) -> None:
        """Record a failure and what C{on_error} does about it."""
        record = own_copy(record)
        if on_error == TAG:
            tag(record, name)
        problem = problem_of(name, error)
        self.trace.append(TracedStep(name, record, problem=problem, dropped=on_error == DROP, seconds=seconds))

    def _traced(self, name: str, matches: Condition | None, act: Action, on_error: str) -> Action:
        """Return an action that does a step, if its condition matches, and adds it to the trace."""

        def traced(context: StepContext) -> StepEvent | None:
            begun = self._clock()
            try:
                if matches is not None and not matches(context):
                    took = self._clock() - begun
                    self.trace.append(TracedStep(name, self._last, skipped=True, seconds=took))
                    return None
                event = act(context)
            except Exception as error:
                self._failed(name, on_error, context.record, error, self._clock() - begun)
                raise
            took = self._clock() - begun
            dropped = event is not None and event[0] == DROPPED
            self.trace.append(TracedStep(name, own_copy(context.record), dropped=dropped, seconds=took))
            return event

        return traced
