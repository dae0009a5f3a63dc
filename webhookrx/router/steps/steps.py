"""
Processing steps as they are written, made into what is done to each message.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from webhookrx.diagnostics import ERROR, Diagnostic, has_errors, nearest, quoted_short
from webhookrx.router.expressions import ExpressionError, Files, compile_expression, is_mask, no_files
from webhookrx.router.rules.rule import DROP, KEEP, KINDS, ON_ERROR, Probe, SetField, Step
from webhookrx.router.steps.context import DROPPED, PROBE, UNKNOWN_SENDER, Action, Condition, StepContext, StepEvent
from webhookrx.router.steps.expression_step import compile_statements
from webhookrx.router.steps.field_steps import compile_set, compile_unset
from webhookrx.router.steps.query_steps import compile_query, compile_select
from webhookrx.router.steps.regex_step import compile_regex
from webhookrx.router.steps.sender_steps import classify, classify_known, parse
from webhookrx.router.steps.step_problem import StepError, StepProblems

_PROBE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LABEL: Final = re.compile(r"(?! )[A-Za-z0-9._ -]{1,64}(?<! )")


class CompiledStep(NamedTuple):
    """
    A step that is ready to run.

    @ivar kind: one of L{KINDS}.
    @ivar name: what people, counters and log lines call it: its label, or its number and kind such as C{3 regex}.
    @ivar event: the event that it leaves, if it leaves any; Classify also leaves those of senders that it knows.
    @ivar matches: its condition; None when it is done to all messages.
    @ivar act: does it to one message.
    @ivar on_error: what happens to a message on which it fails: one of L{ON_ERROR}.
    """

    kind: str
    name: str
    event: StepEvent | None
    matches: Condition | None
    act: Action
    on_error: str = KEEP


def compile_step(step: Step, number: int, files: Files = no_files) -> CompiledStep:
    """
    Make a step ready to run.

    @param number: its place among its neighbours, from 1.
    @param files: gives the JSON files that an expression names.
    @raise StepError: the first thing that is wrong with it.
    """
    problems = StepProblems()
    compiled = _compile(step, number, files, problems)
    if compiled is None:
        raise StepError(next(each for each in problems if each.severity == ERROR))
    return compiled


def step_problems(step: Step, number: int) -> list[Diagnostic]:
    """
    Return all that is wrong with a step, and what is probably not meant; the arguments are those of L{compile_step}.
    """
    problems = StepProblems()
    _compile(step, number, no_files, problems)
    return problems


def json_files(step: Step) -> list[str]:
    """Return the paths of the JSON files that a step names."""
    if step.expression is None:
        return []
    paths: list[str] = []

    def note(path: str) -> Any:
        paths.append(path)
        return no_files(path)

    try:
        compile_expression(step.expression, files=note)
    except ExpressionError:  # found already
        return []
    return paths


def step_name(step: Step, number: int) -> str:
    """Return what a step is called: its label, or its number and kind."""
    return step.label or f"{number} {next(iter(_kinds(step)), 'step')}"


def _kinds(step: Step) -> list[str]:
    return [kind for kind in KINDS if getattr(step, kind) is not None]


def _compile(step: Step, number: int, files: Files, problems: StepProblems) -> CompiledStep | None:
    if step.label is not None and not _LABEL.fullmatch(step.label):
        problems.add(
            "bad-label",
            "A label has 1 to 64 ASCII letters, digits, blanks and . _ -, with a blank at no end.",
            ("label",),
        )
    matches = None if step.condition is None else compile_query(step.condition, ("condition",), problems)
    name, kinds = step_name(step, number), _kinds(step)
    if len(kinds) != 1:
        found = f"this one has {' and '.join(kinds)}" if kinds else "this one has none"
        problems.add("step-kind", f"A step has exactly one of {', '.join(KINDS)}; {found}.")
    made = [_compile_kind(kind, getattr(step, kind), name, files, problems) for kind in kinds]
    if step.classify_fallback is not None and not step.classify:
        problems.add("step-kind", "classify_fallback stands beside classify: yes.", ("classify_fallback",))
    if step.classify and step.classify_fallback is False:
        made = [(classify_known, UNKNOWN_SENDER)]
    _check_on_error(step, problems)
    if has_errors(problems):
        return None
    action, event = made[0]
    assert action is not None, "what has no problems can be done"
    return CompiledStep(kinds[0], name, event, matches, action, step.on_error or KEEP)


def _check_on_error(step: Step, problems: StepProblems) -> None:
    """Note what is wrong with what happens when a step fails, and that it may let through what it should hide."""
    wanted = KEEP if step.on_error is None else step.on_error
    if wanted not in ON_ERROR:
        near = nearest(wanted, ON_ERROR)
        sentence = f"{quoted_short(wanted)} is not one of {', '.join(ON_ERROR)}. {near}".rstrip()
        problems.add("bad-on-error", sentence, ("on_error",))
    elif not has_errors(problems) and wanted == KEEP and (problems.hides or step.unset is not None or _masks(step.set)):
        problems.add(
            "step-keeps-unhidden",
            "The step removes or masks something, and a message on which it fails goes on as it was: write on_error: "
            f"{DROP}, or on_error: tag to see which ones these are.",
            ("on_error",) if step.on_error else (),
        )


def _masks(wanted: SetField | tuple[SetField, ...] | None) -> bool:
    """Tell whether a Set Field puts something in the place of what a sender has written."""
    fields = (wanted,) if isinstance(wanted, SetField) else wanted or ()
    return any(each.field.startswith("log.") and is_mask(each.value) for each in fields)


def _compile_kind(
    kind: str, wanted: Any, name: str, files: Files, problems: StepProblems
) -> tuple[Action | None, StepEvent | None]:
    """
    Return what a step does and the event that it leaves, if any.

    @param wanted: what is written behind C{kind}.
    """
    dropped = (DROPPED, name)
    match kind:
        case "select":
            return compile_select(wanted, dropped, problems), dropped
        case "set":
            return compile_set(wanted, problems), None
        case "unset":
            return compile_unset(wanted, problems), None
        case "regex":
            return compile_regex(wanted, problems), None
        case "probe":
            return _compile_probe(wanted, problems)
        case "expression":
            return compile_statements(wanted, dropped, files, problems), dropped
    assert kind in ("classify", "parse"), f"no such kind of step: {kind}"
    if not wanted:
        problems.add("step-kind", f"Write {kind}: yes; a step that is not wanted is left out.", (kind,))
    return (classify, UNKNOWN_SENDER) if kind == "classify" else (parse, None)


def _compile_probe(wanted: Probe | str, problems: StepProblems) -> tuple[Action, StepEvent]:
    written, member = (wanted, ("probe",)) if isinstance(wanted, str) else (wanted.name, ("probe", "name"))
    if not _PROBE_NAME.fullmatch(written):
        problems.add("bad-name", "The name of a probe has 1 to 64 ASCII letters, digits and . _ -.", member)
    event = (PROBE, written)

    def probe(context: StepContext) -> StepEvent | None:
        return event

    return probe, event
