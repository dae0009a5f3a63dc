"""
Processing that records the message after each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from webhookrx.router.expressions import Files, no_files
from webhookrx.router.steps.context import DROPPED, Action, StepContext, StepEvent
from webhookrx.router.steps.field_steps import own_copy
from webhookrx.router.steps.processing import NotBegun, Processing, ProcessingResult, problem_of, tag
from webhookrx.router.steps.step import DROP, TAG, Preprocessing
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.evidence import Evidence


class Done(NamedTuple):
    """
    One step on one message.

    @ivar step: the name of the step.
    @ivar record: a copy of the message after it.
    @ivar skipped: its condition does not match.
    @ivar problem: why it failed, or did not begin; empty otherwise.
    @ivar dropped: the step, or its C{on_error}, has dropped the message.
    """

    step: str
    record: dict[str, Any]
    skipped: bool = False
    problem: str = ""
    dropped: bool = False


class TracedProcessing(Processing):
    """
    Processing with a record of its last run.

    @ivar names: of all steps, in order.
    @ivar before: the message before the first step; None before the first run.
    @ivar done: the steps that the message reached, in order.
    """

    __slots__ = ("before", "done", "names")

    def __init__(self, preprocessing: Preprocessing, classifier: Classifier | None, files: Files = no_files) -> None:
        """See L{Processing.__init__}."""
        super().__init__(preprocessing, classifier, files=files)
        self.names = tuple(name for name, *_ in self._steps)
        self.before: dict[str, Any] | None = None
        self.done: list[Done] = []
        self._steps = tuple(
            (
                name,
                None if matches is None else self._recorded_condition(name, matches, on_error),
                self._recorded_action(name, act, on_error),
                on_error,
            )
            for name, matches, act, on_error in self._steps
        )

    def run(self, record: dict[str, Any], evidence: Evidence, host_is_set: bool = False) -> ProcessingResult:
        """See L{Processing.run}."""
        self.before = own_copy(record)
        self.done = []
        outcome = super().run(record, evidence, host_is_set)
        # When no work is left to begin a step, none is left for the steps after it.
        for name, _, _, on_error in self._steps[len(self.done) :]:
            if self.done and self.done[-1].dropped:
                break
            self._failed(name, on_error, self._last, NotBegun())
        return outcome

    @property
    def _last(self) -> dict[str, Any]:
        return self.done[-1].record if self.done else self.before or {}

    def _failed(self, name: str, on_error: str, record: dict[str, Any], error: Exception) -> None:
        """Record a failure and what C{on_error} does about it."""
        record = own_copy(record)
        if on_error == TAG:
            tag(record, name)
        self.done.append(Done(name, record, problem=problem_of(name, error), dropped=on_error == DROP))

    def _recorded_condition(self, name: str, matches: Callable[[Any], bool], on_error: str) -> Callable[[Any], bool]:
        """Return a condition that records a step that it skips."""

        def asked(given: Any) -> bool:
            try:
                matched = matches(given)
            except Exception as error:
                self._failed(name, on_error, self._last, error)
                raise
            if not matched:
                self.done.append(Done(name, self._last, skipped=True))
            return matched

        return asked

    def _recorded_action(self, name: str, act: Action, on_error: str) -> Action:
        """Return an action that records the message after it."""

        def watched(context: StepContext) -> StepEvent | None:
            try:
                event = act(context)
            except Exception as error:
                self._failed(name, on_error, context.record, error)
                raise
            dropped = event is not None and event[0] == DROPPED
            self.done.append(Done(name, own_copy(context.record), dropped=dropped))
            return event

        return watched
