"""
Compiles processing steps as they are written into actions on messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

from webhookrx.diagnostics import ERROR, Diagnostic, Path, has_errors, nearest, quoted_short
from webhookrx.query import Query, QueryError, line_and_column
from webhookrx.query import parse as parse_query
from webhookrx.router.expressions import ExpressionError, Files, compile_expression, is_mask, no_files
from webhookrx.router.steps.context import (
    DROPPED,
    PROBE,
    UNKNOWN_SENDER,
    Action,
    Condition,
    StepContext,
    StepError,
    StepEvent,
    StepProblems,
)
from webhookrx.router.steps.field_steps import compile_regex, compile_set, compile_unset
from webhookrx.router.steps.sender_steps import classify, classify_known, parse
from webhookrx.router.steps.step import DROP, KEEP, KINDS, ON_ERROR, Probe, SetField, Step

_PROBE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LABEL: Final = re.compile(r"(?! )[A-Za-z0-9._ -]{1,64}(?<! )")


class CompiledStep(NamedTuple):
    """
    A step that is ready to run.

    @ivar kind: one of L{KINDS}.
    @ivar name: its L{step_name}, for people, counters and log lines.
    @ivar event: the event that it leaves, if any; Classify also leaves those of senders that it knows.
    @ivar matches: its condition; None when it has none.
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
    Compile a step.

    @param number: its place in the list of steps, from 1.
    @param files: the source of the JSON files that an expression names.
    @raise StepError: the step is wrong; the error says the first thing.
    """
    problems = StepProblems()
    compiled = _compile(step, number, files, problems)
    if compiled is None:
        raise StepError(next(each for each in problems if each.severity == ERROR))
    return compiled


def step_problems(step: Step, number: int) -> list[Diagnostic]:
    """Return the errors and warnings of a step; the arguments are those of L{compile_step}."""
    problems = StepProblems()
    _compile(step, number, no_files, problems)
    return problems


def query_problems(text: str) -> list[Diagnostic]:
    """Return the errors and warnings of a query on messages; their paths are empty."""
    problems = StepProblems()
    _compile_condition(text, (), problems)
    return problems


def changes_below(step: Step, fields: tuple[str, ...]) -> bool:
    """
    Tell whether a step may change some fields or their members, Classify and Parse apart.

    @param fields: paths of two names, the first of which is the same.
    """
    root = fields[0].partition(".")[0]
    changes = step.set if isinstance(step.set, tuple) else (step.set,)
    unset = step.unset if isinstance(step.unset, tuple) else (step.unset,)
    texts = (*(each.field for each in changes if each), *unset, step.regex and step.regex.into)
    # A program can't come to a field without the name of its root, or that of a macro.
    program = step.expression or ""
    return root in program or "$" in program or any(text.startswith(fields) for text in texts if text)


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
    """Return the name of a step: its label, or its number and kind, such as C{3 regex}."""
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
    matches = None if step.condition is None else _compile_condition(step.condition, ("condition",), problems)
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
    assert action is not None, "a step without errors compiles"
    return CompiledStep(kinds[0], name, event, matches, action, step.on_error or KEEP)


def _check_on_error(step: Step, problems: StepProblems) -> None:
    """Check C{on_error}, and warn of a step that should hide something but keeps the messages on which it fails."""
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
    """Tell whether a Set Field replaces a field of the sender's by a mask."""
    fields = (wanted,) if isinstance(wanted, SetField) else wanted or ()
    return any(each.field.startswith("log.") and is_mask(each.value) for each in fields)


def _compile_kind(
    kind: str, wanted: Any, name: str, files: Files, problems: StepProblems
) -> tuple[Action | None, StepEvent | None]:
    """
    Return the action of a step and the event that it leaves, if any.

    @param wanted: the value of the key C{kind}.
    """
    dropped = (DROPPED, name)
    match kind:
        case "select":
            return _compile_select(wanted, dropped, problems), dropped
        case "set":
            return compile_set(wanted, problems), None
        case "unset":
            return compile_unset(wanted, problems), None
        case "regex":
            return compile_regex(wanted, problems), None
        case "probe":
            return _compile_probe(wanted, problems)
        case "expression":
            return _compile_expression(wanted, dropped, files, problems), dropped
    assert kind in ("classify", "parse"), f"no such kind of step: {kind}"
    if not wanted:
        problems.add("step-kind", f"Write {kind}: yes; a step that is not wanted is left out.", (kind,))
    return (classify, UNKNOWN_SENDER) if kind == "classify" else (parse, None)


def _compile_condition(text: str, path: Path, problems: StepProblems) -> Condition | None:
    """Return whether a query matches as a condition; None for an empty one, which matches all, and for a wrong one."""
    try:
        query = parse_query(text)
    except QueryError as error:
        problems.add("bad-query", error.problem, path, *line_and_column(text, error.column))
        return None
    for sentence, column in doubtful_fields(query):
        problems.add("step-unknown-field", sentence, path, *line_and_column(text, column))
    if not text.strip():
        return None
    decide = query.decide
    return lambda context: decide(context.record, context.work)


def _compile_select(text: str, dropped: StepEvent, problems: StepProblems) -> Action:
    """Return the action that drops the messages that a query does not match."""
    matches = _compile_condition(text, ("select",), problems)
    if matches is None:
        return lambda context: None

    def select(context: StepContext) -> StepEvent | None:
        return None if matches(context) else dropped

    return select


_TOPMOST: Final = ("log", "meta", "connector")

_MOST_DOUBTS: Final = 3
"""Fields of one query that are reported: a file may have very many."""

# Other names for fields: those of analytics labels, selectors and templates, and guesses.
_MEANT: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), meant)
    for pattern, meant in (
        (r"log\.(.+)", r"log.\1"),
        (r"meta\.(.+)", r"meta.\1"),
        (r"((?:body|attributes)(?:\..+)?|severity_number|severity_text|(?:observed_)?time_unix_nano)", r"log.\1"),
        (r"(webhook\.(?:query|path)\..+)", r"log.attributes.\1"),
        (r"((?:connection|router|host|classify)\..+|vendor|product|service)", r"meta.\1"),
        (r"(?:labels?\.|label_)(.+)", r"meta.connector.labels.\1"),
        (r"host|host_?name", "meta.host.name"),
        (r"message|msg", "log.body"),
        (r"(?:src|source)_?ip", "meta.connection.src_ip"),
    )
)


def doubtful_fields(query: Query) -> Iterator[tuple[str, int]]:
    """
    Yield a sentence and the column for each field of a query that no message can have.

    Fields below C{log} and C{meta} are never doubtful: senders and steps may set any.
    """
    columns = {use.field: use.column for use in reversed(query.fields) if use.field.partition(".")[0] not in _TOPMOST}
    for field, column in islice(sorted(columns.items(), key=itemgetter(1)), _MOST_DOUBTS):
        meant = next((found.expand(to) for pattern, to in _MEANT if (found := pattern.fullmatch(field))), "")
        near = f" Did you mean {quoted_short(meant)}?" if meant else ""
        yield f"A message has no field {quoted_short(field)}: all are below log or meta.{near}", column


def _compile_probe(wanted: Probe | str, problems: StepProblems) -> tuple[Action, StepEvent]:
    written, member = (wanted, ("probe",)) if isinstance(wanted, str) else (wanted.name, ("probe", "name"))
    if not _PROBE_NAME.fullmatch(written):
        problems.add("bad-name", "The name of a probe has 1 to 64 ASCII letters, digits and . _ -.", member)
    event = (PROBE, written)

    def probe(context: StepContext) -> StepEvent | None:
        return event

    return probe, event


def _compile_expression(text: str, dropped: StepEvent, files: Files, problems: StepProblems) -> Action | None:
    """Return the action that runs an expression. If it raises L{ExpressionError}, the run has changed nothing."""
    try:
        # The line ends behind a block of YAML are no part of it: a mistake at the end is where the last statement ends.
        program = compile_expression(text.rstrip(), files=files)
    except ExpressionError as error:
        line, column = error.position.line, error.position.column
        problems.add("bad-expression", error.problem, ("expression",), line, column)
        return None
    problems.hides = program.hides
    run = program.run

    def express(context: StepContext) -> StepEvent | None:
        context.stale = True
        record = context.record
        identity = record["meta"].get("id")
        kept = run(record, context.work)
        meta = record["meta"]
        if meta.get("id") is not identity:
            # What tells messages apart for a receiver that gets one twice.
            meta["id"] = identity
        return None if kept else dropped

    return express
