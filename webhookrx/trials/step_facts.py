"""
What the steps of a connector have done to a message, as values of JSON.
"""

from __future__ import annotations

from typing import Any

from webhookrx.management.field_changes import MISSING
from webhookrx.router.steps.traced import TracedProcessing, TracedStep
from webhookrx.trials.differences import differences


def step_facts(processing: TracedProcessing, before: dict[str, Any]) -> dict[str, Any]:
    """
    Return each step, with what it has changed and the message after it.

    @param before: the message before the first step.
    """
    steps: list[dict[str, Any]] = []
    last = before
    for step in processing.trace:
        changes = [{"field": each.field, **_values(each.before, each.after)} for each in differences(last, step.record)]
        steps.append(
            {
                "step": step.name,
                "outcome": _outcome(step),
                "problem": step.problem,
                "changes": changes,
                "record": step.record,
            }
        )
        last = step.record
    return {"before": before, "steps": steps, "not_begun": processing.names[len(processing.trace) :]}


def _values(before: Any, after: Any) -> dict[str, Any]:
    known = {"before": before, "after": after}
    return {name: value for name, value in known.items() if value is not MISSING}


def _outcome(step: TracedStep) -> str:
    if step.dropped:
        return "dropped"
    if step.problem:
        return "failed"
    return "skipped" if step.skipped else "done"
