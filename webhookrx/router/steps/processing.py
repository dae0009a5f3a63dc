"""
Runs the preprocessing of a connector on each message.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webhookrx.message.escapes import escape
from webhookrx.message.fields import FieldError
from webhookrx.regex import RegexTooCostly
from webhookrx.router.expressions import ExpressionError, Files, no_files
from webhookrx.router.steps.context import DROPPED, STEP_ERROR, UNKNOWN_SENDER, StepContext, StepEvent
from webhookrx.router.steps.sender_steps import classify, classify_known, parse
from webhookrx.router.steps.step import DROP, TAG, Preprocessing
from webhookrx.router.steps.step_compiler import CompiledStep, changes_below, compile_step
from webhookrx.senders.otlp import OtlpError
from webhookrx.work import MOST_FOR_MESSAGE, MOST_FOR_STEP, TooMuchWork, Work

if TYPE_CHECKING:
    from webhookrx.intake.provenance import Provenance
    from webhookrx.senders.classifier import Classifier
    from webhookrx.senders.evidence import Evidence

__all__ = ["Processing", "ProcessingResult", "StepEvent"]


class ProcessingResult(msgspec.Struct, frozen=True, gc=False):
    """
    The result for one message.

    @ivar kept: False when a step has dropped it.
    @ivar events: in order, for the counters.
    @ivar problem: the first step that failed, and why, in one sentence without anything of the message; empty when no
        step has failed.
    """

    kept: bool
    events: tuple[StepEvent, ...] = ()
    problem: str = ""


_UNTOUCHED: Final = ProcessingResult(True)

_LONGEST: Final = 10.0
"""
Seconds after which no other step begins: far more than the budget of work takes, in case that work is counted wrongly.
"""

_STEP: Final = 500
"""Units of work to begin a step."""

_FIXED: Final = ("meta.connector", "meta.router")
"""The same objects in all messages of a connector, unless a step changes them."""

_ERRORS: Final = "step_errors"
"""C{meta.step_errors}: the names of steps with C{on_error: tag} that failed."""

_LONGEST_PROBLEM: Final = 500
"""Characters."""


class Processing:
    """
    The steps of one connector, ready to run: Classify, Parse, then the others in their order.

    @ivar changes_fixed: a step may change what C{meta.connector} and C{meta.router} hold.
    @ivar keeps_body: no step changes C{log.body} but for Parse, which leaves all in it as it is.
    @ivar classifies: a step finds the sender of a message.
    @ivar idle: there are no steps, so that L{run} need not be called.
    @ivar possible_events: all events that its steps may leave, in order, but for those of known senders.
    @raise webhookrx.router.steps.context.StepError: a step is wrong.
    """

    __slots__ = (
        "_classifier",
        "_clock",
        "_steps",
        "changes_fixed",
        "classifies",
        "idle",
        "keeps_body",
        "possible_events",
    )

    def __init__(
        self,
        preprocessing: Preprocessing,
        classifier: Classifier | None,
        clock: Callable[[], float] = time.perf_counter,
        files: Files = no_files,
    ) -> None:
        """
        @param classifier: None is enough when C{preprocessing.classifies} is false.
        @param clock: seconds, for a bound that no message should ever reach.
        @param files: the JSON files that expressions name.
        """
        steps = []
        if preprocessing.classify:
            act = classify if preprocessing.classify_fallback else classify_known
            steps.append(CompiledStep("classify", "classify", UNKNOWN_SENDER, None, act))
        if preprocessing.parse:
            steps.append(CompiledStep("parse", "parse", None, None, parse))
        for number, step in enumerate(preprocessing.steps, start=1):
            if step.classify and step.classify_fallback is None:
                step = msgspec.structs.replace(step, classify_fallback=preprocessing.classify_fallback)
            steps.append(compile_step(step, number, files))
        self._steps = tuple((step.name, step.matches, step.act, step.on_error) for step in steps)
        self._classifier = classifier
        self._clock = clock
        self.classifies = preprocessing.classifies
        self.idle = not steps
        self.changes_fixed = any(changes_below(step, _FIXED) for step in preprocessing.steps)
        self.keeps_body = not any(changes_below(step, ("log.body",)) for step in preprocessing.steps)
        events = [event for step in steps for event in (step.event, *_failure_events(step)) if event is not None]
        self.possible_events: tuple[StepEvent, ...] = tuple(dict.fromkeys(events))

    def run(
        self,
        record: dict[str, Any],
        evidence: Evidence,
        host_is_set: bool = False,
        provenance: Provenance | None = None,
    ) -> ProcessingResult:
        """
        Run all steps on a message; never raise. A step that fails leaves the message as it was, and its C{on_error}
        drops the message or keeps it for the next step. A step has failed, too, if its condition fails or if the steps
        before it left no work to begin it.

        @param record: the message; it is changed in place, with all objects and arrays in it.
        @param host_is_set: C{meta.host.name} is from the path: no sender's definition replaces it.
        @param provenance: what is known of the sender.
        """
        if not self._steps:
            return _UNTOUCHED
        work, left, most = Work(0), MOST_FOR_MESSAGE, 0
        context = StepContext(record, evidence, host_is_set, self._classifier, work, None, provenance)
        events: list[StepEvent] = []
        problem = ""
        clock = self._clock
        end = 0.0
        for name, matches, act, on_error in self._steps:
            # The work of the step before.
            left -= most - work.left
            work.left = most = left if left < MOST_FOR_STEP else MOST_FOR_STEP
            try:
                if left < _STEP or (end and clock() > end):
                    raise NotBegun
                work.left -= _STEP
                end = end or clock() + _LONGEST
                event = None if matches is not None and not matches(context) else act(context)
            except Exception as error:  # whatever a sender writes, on_error decides about its message
                events.append((STEP_ERROR, name))
                problem = problem or problem_of(name, error)
                if on_error == DROP:
                    return ProcessingResult(False, (*events, (DROPPED, name)), problem)
                if on_error == TAG:
                    tag(record, name)
                continue
            if event is not None:
                events.append(event)
                if event[0] == DROPPED:
                    return ProcessingResult(False, tuple(events), problem)
        return ProcessingResult(True, tuple(events), problem) if events else _UNTOUCHED


def _failure_events(step: CompiledStep) -> tuple[StepEvent, ...]:
    failed = (STEP_ERROR, step.name)
    return (failed, (DROPPED, step.name)) if step.on_error == DROP else (failed,)


class NotBegun(TooMuchWork):
    """There is no work left to begin a step."""

    def __init__(self) -> None:
        super().__init__("It was not begun, since those before it had too much to do.")


def tag(record: dict[str, Any], name: str) -> None:
    """Add the name of a failed step to C{meta.step_errors}, which only steps can write."""
    meta = record["meta"]
    errors = meta.get(_ERRORS)
    meta[_ERRORS] = [*errors, name] if type(errors) is list else [name]


def problem_of(name: str, error: Exception) -> str:
    """
    Return which step failed and why, as one line of the log. It may quote the rules, which may hold anything, and never
    a message: of errors that are not ours only the type counts.
    """
    if isinstance(error, ExpressionError):
        problem = f"Step {name!r} failed at {error.position.line}:{error.position.column}: {error.problem}"
    elif isinstance(error, (FieldError, OtlpError, RegexTooCostly, TooMuchWork)):
        problem = f"Step {name!r} failed: {error}"
    else:
        problem = f"Step {name!r} failed: {type(error).__name__}."
    return escape(problem if len(problem) <= _LONGEST_PROBLEM else problem[: _LONGEST_PROBLEM - 1] + "…")
