"""
Conditions of steps, and Select Messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Final

from webhookrx.diagnostics import Path, quoted_short
from webhookrx.query import Query, QueryError, line_and_column, parse
from webhookrx.router.steps.context import Action, Condition, StepContext, StepEvent
from webhookrx.router.steps.step_problem import StepProblems

_TOPMOST: Final = ("log", "meta", "connector")

_MOST_DOUBTS: Final = 3
"""Fields of one query that are told of: a file may have very many."""

# What other places call them: labels of analytics, selectors, templates, and guesses.
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


def compile_query(text: str, member: Path, problems: StepProblems) -> Condition | None:
    """Return what tells whether a query matches; None for an empty one, which matches all, and for a wrong one."""
    try:
        query = parse(text)
    except QueryError as error:
        problems.add("bad-query", error.problem, member, *line_and_column(text, error.column))
        return None
    for sentence, column in doubtful_fields(query):
        problems.add("step-unknown-field", sentence, member, *line_and_column(text, column))
    if not text.strip():
        return None
    decide = query.decide
    return lambda context: decide(context.record, context.work)


def compile_select(text: str, dropped: StepEvent, problems: StepProblems) -> Action:
    """
    Return what drops the messages that a query does not match.

    @param dropped: what it leaves behind of them.
    """
    matches = compile_query(text, ("select",), problems)
    if matches is None:
        return lambda context: None

    def select(context: StepContext) -> StepEvent | None:
        return None if matches(context) else dropped

    return select


def doubtful_fields(query: Query) -> Iterator[tuple[str, int]]:
    """
    Yield the fields of a query on messages that no message can have: why, with what may be meant, and the column.

    What is below C{log} and C{meta} is never doubtful, since senders and steps put there what they like.
    """
    columns = {use.field: use.column for use in reversed(query.fields) if use.field.partition(".")[0] not in _TOPMOST}
    for field, column in islice(sorted(columns.items(), key=itemgetter(1)), _MOST_DOUBTS):
        meant = next((found.expand(to) for pattern, to in _MEANT if (found := pattern.fullmatch(field))), "")
        near = f" Did you mean {quoted_short(meant)}?" if meant else ""
        yield f"A message has no field {quoted_short(field)}: all are below log or meta.{near}", column
