"""
What the steps of a connector have done to a message, for people.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from webhookrx.commands.terminal import print_json, safe
from webhookrx.router.steps.traced import TracedProcessing, TracedStep
from webhookrx.trials.differences import differences


def print_steps(processing: TracedProcessing, before: dict[str, Any], out: TextIO) -> None:
    """Print the message before the first step, and each step with what it has changed."""
    print(f"\n{'before the first step' if processing.names else 'the message; there are no steps'}", file=out)
    print_json(out, before)
    last = before
    for step in processing.trace:
        print(f"\n{safe(step.name)}", file=out)
        for line in _lines(last, step):
            print(f"  {safe(line)}", file=out)
        if not step.dropped and any(differences(last, step.record)):
            print_json(out, step.record)
        last = step.record
    for name in processing.names[len(processing.trace) :]:
        print(f"\n{safe(name)}\n  not begun", file=out)


def _lines(last: dict[str, Any], step: TracedStep) -> Iterator[str]:
    changes = [str(each) for each in differences(last, step.record)]
    yield from changes
    if step.problem:
        yield step.problem
    if step.skipped:
        yield "skipped: its condition does not match"
    elif step.dropped:
        yield "the message is dropped"
    elif not (changes or step.problem):
        yield "nothing changed"
