"""
Processing steps as they are written, made into what is done to each message.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from webhookrx.connectors.expression_step import compile_statements
from webhookrx.connectors.field_steps import compile_set, compile_unset
from webhookrx.connectors.passage import DROPPED, PROBE, UNKNOWN_SENDER, Action, Mark, Passage
from webhookrx.connectors.query_steps import Matches, compile_query, compile_select
from webhookrx.connectors.regex_step import compile_regex
from webhookrx.connectors.rule import KINDS, Probe, Step
from webhookrx.connectors.sender_steps import classify, classify_known, parse
from webhookrx.connectors.step_problem import StepProblem, StepProblems

#: Returns seconds; from where on makes no difference.
Clock: TypeAlias = Callable[[], float]

_PROBE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LABEL: Final = re.compile(r"(?! )[A-Za-z0-9._ -]{1,64}(?<! )")


class CompiledStep(NamedTuple):
    """
    A step that is ready to run.

    @ivar kind: one of L{KINDS}.
    @ivar name: what people, counters and log lines call it: its label, or its number and kind such as C{3 regex}.
    @ivar mark: the mark that it leaves, if it leaves any; Classify also leaves those of senders that it knows.
    @ivar matches: its condition; None when it is done to all messages.
    @ivar act: does it to one message.
    """

    kind: str
    name: str
    mark: Mark | None
    matches: Matches | None
    act: Action


def compile_step(step: Step, number: int, clock: Clock = time.perf_counter) -> CompiledStep:
    """
    Make a step ready to run.

    @param number: its place among its neighbours, from 1.
    @param clock: what bounds the time of an expression.
    @raise StepProblem: the first thing that is wrong with it.
    """
    problems = StepProblems()
    compiled = _compile(step, number, clock, problems)
    if problems:
        raise problems[0]
    assert compiled is not None, "what has no problems compiles"
    return compiled


def step_problems(step: Step, number: int) -> list[StepProblem]:
    """
    Return all that is wrong with a step, and what is probably not meant; the arguments are those of L{compile_step}.
    """
    problems = StepProblems()
    _compile(step, number, time.perf_counter, problems)
    return [*problems, *problems.doubts]


def step_name(step: Step, number: int) -> str:
    """Return what a step is called: its label, or its number and kind."""
    return step.label or f"{number} {next(iter(_kinds(step)), 'step')}"


def _kinds(step: Step) -> list[str]:
    return [kind for kind in KINDS if getattr(step, kind) is not None]


def _compile(step: Step, number: int, clock: Clock, problems: StepProblems) -> CompiledStep | None:
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
    made = [_compile_kind(kind, getattr(step, kind), name, clock, problems) for kind in kinds]
    if step.classify_fallback is not None and not step.classify:
        problems.add("step-kind", "classify_fallback stands beside classify: yes.", ("classify_fallback",))
    if step.classify and step.classify_fallback is False:
        made = [(classify_known, UNKNOWN_SENDER)]
    if problems:
        return None
    action, mark = made[0]
    assert action is not None, "what has no problems can be done"
    return CompiledStep(kinds[0], name, mark, matches, action)


def _compile_kind(
    kind: str, wanted: Any, name: str, clock: Clock, problems: StepProblems
) -> tuple[Action | None, Mark | None]:
    """
    Return what a step does and the mark that it leaves, if any.

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
            return compile_statements(wanted, dropped, clock, problems), dropped
    assert kind in ("classify", "parse"), f"no such kind of step: {kind}"
    if not wanted:
        problems.add("step-kind", f"Write {kind}: yes; a step that is not wanted is left out.", (kind,))
    return (classify, UNKNOWN_SENDER) if kind == "classify" else (parse, None)


def _compile_probe(wanted: Probe | str, problems: StepProblems) -> tuple[Action, Mark]:
    written, member = (wanted, ("probe",)) if isinstance(wanted, str) else (wanted.name, ("probe", "name"))
    if not _PROBE_NAME.fullmatch(written):
        problems.add("bad-name", "The name of a probe has 1 to 64 ASCII letters, digits and . _ -.", member)
    mark = (PROBE, written)

    def probe(passage: Passage) -> Mark | None:
        return mark

    return probe, mark
