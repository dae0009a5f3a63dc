"""
The Regex step: named groups become fields.
"""

from __future__ import annotations

import re

import msgspec

from webhookrx.message.fields import MISSING, FieldError, get_field, set_field
from webhookrx.query import spend_json
from webhookrx.regex import LONGEST_PATTERN, LinearRegex
from webhookrx.router.rules.rule import Regex
from webhookrx.router.steps.context import Action, StepContext, StepEvent
from webhookrx.router.steps.field_steps import changed_path, field_path
from webhookrx.router.steps.step_problem import StepProblems

_encode = msgspec.json.Encoder().encode


def compile_regex(wanted: Regex, problems: StepProblems) -> Action | None:
    """
    Return what looks for an expression in a field and gives a member to another for each named group that took part.
    Without a match, and without the field, nothing happens.
    """
    regex = _expression(wanted, problems)
    source = field_path(wanted.field, ("regex", "field"), problems)
    target = changed_path(wanted.into, ("regex", "into"), problems, members=True)
    if regex is None or source is None or target is None:
        return None
    groups_in = regex.groups

    def match(context: StepContext) -> StepEvent | None:
        record = context.record
        value = get_field(record, source)
        if value is MISSING:
            return None
        if not isinstance(value, str):
            spend_json(value, context.work.spend)
            value = _encode(value).decode()
        groups = groups_in(value, context.work)
        if not groups:
            return None
        context.stale = True
        parent = get_field(record, target)
        if isinstance(parent, dict):
            parent.update(groups)
        elif parent is MISSING:
            set_field(record, target, groups)
        else:
            raise FieldError(f"{wanted.into} is no object, so that it can't get members.")
        return None

    return match


def _expression(wanted: Regex, problems: StepProblems) -> LinearRegex | None:
    member = ("regex", "pattern")
    try:
        regex = LinearRegex(wanted.pattern, ignore_case=wanted.ignore_case)
    except ValueError as error:
        problems.add("bad-regex", str(error), member, *_place(wanted.pattern))
        return None
    if not regex.names:
        problems.add(
            "no-groups", "The expression has no named group, such as (?P<user>[a-z]+), to make a field of.", member
        )
    return regex


def _place(pattern: str) -> tuple[int, int]:
    """Return the line and column where an expression goes wrong, if Python's reading of it tells."""
    if len(pattern) > LONGEST_PATTERN:
        return 1, 1
    try:
        re.compile(pattern)
    except re.error as error:
        return error.lineno or 1, error.colno or 1
    except (OverflowError, RecursionError):
        pass
    return 1, 1
