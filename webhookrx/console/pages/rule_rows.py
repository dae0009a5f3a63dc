"""
The rows of the form of a rule: added, moved and taken away by its buttons; and what is wrong at each of its fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from webhookrx.console.api.problems import ApiFinding
from webhookrx.console.pages.rule_form import SKELETONS, RuleValues, StepText
from webhookrx.diagnostics import ERROR
from webhookrx.management.volumes import RECOMMENDED, volume_argument

NOT_YET: Final = ("missing-key", "https-without-key", "https-without-certificate")
"""What is wrong with a rule that somebody has only begun to write."""

_ACTION: Final = re.compile(r"(add|remove|up|down|move)-(label|path|step)(?:-(\d{1,4}))?(?:-(\d{1,4}))?")
_ROWS: Final = {"label": "labels", "path": "paths", "step": "steps"}
_NEW: Final = {"label": ("", ""), "path": ""}
_FIELDS: Final = frozenset(
    ("name", "protocol", "port", "suffix", "key_file", "cert_file", "description", "selector", "labels", "paths")
)

T = TypeVar("T")


class FieldNote(msgspec.Struct, frozen=True):
    """
    What is said at a field.

    @ivar at: the field, such as C{port}, C{path-0} or C{others}.
    @ivar kind: C{error}, C{warning} or C{note}.
    """

    at: str
    kind: str
    sentence: str


def is_action(do: str) -> bool:
    """Return whether a button is one of rows."""
    return _ACTION.fullmatch(do) is not None


def acted(values: RuleValues, do: str, kind: str = "") -> RuleValues:
    """
    Return the fields after a button: C{add-label}, C{remove-path-1}, C{up-step-2}, C{move-step-3-0} and so on.

    @param kind: of a step that is added.
    """
    found = _ACTION.fullmatch(do)
    if found is None:
        return values
    verb, what = found[1], found[2]
    at, to = (int(each or 0) for each in (found[3], found[4]))
    name = _ROWS[what]
    rows = list(getattr(values, name))
    if verb == "add":
        rows.append(StepText(kind, "", SKELETONS.get(kind, "")) if what == "step" else _NEW[what])
    elif at < len(rows):
        row = rows.pop(at)
        target = {"up": max(0, at - 1), "down": at + 1, "move": to}.get(verb)
        if target is not None:
            rows.insert(target, row)
    return msgspec.structs.replace(values, **{name: tuple(rows)})


def written_rows(values: RuleValues) -> RuleValues:
    """Return the fields without rows in which nothing is written."""
    labels, paths = tuple(filter(any, values.labels)), tuple(filter(None, values.paths))
    return msgspec.structs.replace(values, labels=labels, paths=paths)


def field_notes(found: Iterable[ApiFinding], rows: RuleValues, *, is_begun: bool = True) -> list[FieldNote]:
    """
    Return what is said at the fields.

    @param rows: those that are shown, with empty ones.
    @param is_begun: whether to tell of fields that are only empty yet.
    """
    notes = [
        FieldNote(_place(each.path, rows), "error" if each.severity == ERROR else "warning", each.sentence)
        for each in found
        if each.path and (is_begun or each.code not in NOT_YET)
    ]
    for name in ("key_file", "cert_file"):
        argument = volume_argument(getattr(rows, name))
        if argument:
            notes.append(FieldNote(name, "note", in_container(argument)))
    return notes


def in_container(argument: str) -> str:
    """Return the sentence on a file that a container has only with an argument (specification, 2.2 rule 8)."""
    return (
        f"This is outside {RECOMMENDED}: a router in a container needs {argument} in the container arguments variable "
        "of its container environment file."
    )


def _place(path: Sequence[Any], rows: RuleValues) -> str:
    """Return the field that a path in the document belongs to."""
    first, rest = str(path[0]), path[1:]
    if first == "labels" and rest:
        return next((f"label-{number}" for number, (key, _) in enumerate(rows.labels) if key == rest[0]), "labels")
    if first == "paths" and rest:
        return _row("path", rest[0], [bool(each) for each in rows.paths])
    if first == "preprocessing" and rest:
        if rest[0] == "steps":
            row = _row("step", rest[1], [True] * len(rows.steps)) if len(rest) > 1 else "steps"
            return row.replace("step-", "condition-") if rest[2:3] == ("condition",) else row
        return str(rest[0]) if rest[0] in ("classify", "parse") else "others"
    return first if first in _FIELDS else "others"


def _row(what: str, index: Any, written: Sequence[bool]) -> str:
    numbers = [number for number, is_written in enumerate(written) if is_written]
    return f"{what}-{numbers[index]}" if isinstance(index, int) and index < len(numbers) else f"{what}s"
