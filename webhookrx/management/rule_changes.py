"""
Changes of rules: the differences of two documents field by field, a merge of two changes of one document, and what a
push of a whole file does to the rules that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from webhookrx.diagnostics import Path, path_text
from webhookrx.management.field_changes import MISSING, FieldChange
from webhookrx.management.rule_documents import Document

_encode: Final = msgspec.json.Encoder(order="deterministic").encode

UI: Final = "ui"
"""The manager of rules that people and programs save one at a time."""

PUSH: Final = "push:"
"""Before the name of what pushes whole files."""


class FieldConflict(msgspec.Struct, frozen=True):
    """
    A field that two people have changed in different ways.

    @ivar base: before both changes.
    @ivar theirs: what is there now.
    @ivar yours: what was to be saved.
    """

    field: str
    base: Any = MISSING
    theirs: Any = MISSING
    yours: Any = MISSING


class ThreeWay(msgspec.Struct, frozen=True):
    """
    Two changes of one document.

    @ivar theirs: the fields that the other change has changed.
    @ivar yours: those of one's own change.
    @ivar conflicts: the fields in both.
    @ivar merged: the document with both changes; null when there are conflicts, or one of them deletes the rule.
    """

    theirs: tuple[FieldChange, ...]
    yours: tuple[FieldChange, ...]
    conflicts: tuple[FieldConflict, ...]
    merged: Document | None


class ManagedRule(msgspec.Struct, frozen=True):
    """
    A rule that is there, for a push.

    @ivar manager: L{UI}, or L{PUSH} and a name.
    """

    document: Document
    manager: str


class RuleUpdate(msgspec.Struct, frozen=True):
    """
    A rule that a push changes.

    @ivar taken_from: its manager until now, if that is another; it changes with the rule.
    """

    name: str
    changes: tuple[FieldChange, ...]
    taken_from: str = ""


class PushPlan(msgspec.Struct, frozen=True):
    """
    What a push does, by the names of rules.

    @ivar deletes: rules of the same manager that the file lacks, with C{prune}.
    @ivar left: the same without C{prune}: they stay.
    @ivar refused: rules of other managers that the file would change, and their managers; nothing is done while there
        are any.
    @ivar unchanged: how many rules of the file are as they were.
    """

    creates: tuple[str, ...]
    updates: tuple[RuleUpdate, ...]
    deletes: tuple[str, ...]
    left: tuple[str, ...]
    refused: dict[str, str]
    unchanged: int

    @property
    def changes_nothing(self) -> bool:
        """Whether all is as the file says; a rule that only gets another manager is a change."""
        return not (self.creates or self.updates or self.deletes or self.refused)


class PushOutcome(msgspec.Struct, frozen=True):
    """
    What a console answers to a push.

    @ivar revision: that of the console after it; the one before when nothing is changed.
    @ivar findings: what is wrong with the file and does not hinder its use, as C{rules check --json} has it.
    """

    revision: int
    plan: PushPlan
    findings: tuple[dict[str, Any], ...] = ()
    dry_run: bool = False


class ListedRule(msgspec.Struct, frozen=True):
    """
    A rule of a console.

    @ivar generation: how often it was changed; it only grows, also when a rule of this name is made again.
    @ivar as_written: it has a text of its own, comments and all.
    """

    name: str
    generation: int
    manager: str
    document: Document
    as_written: bool = False


class RuleList(msgspec.Struct, frozen=True):
    """
    The rules of a console.

    @ivar revision: that of the console when it listed them.
    """

    revision: int
    rules: tuple[ListedRule, ...]


def field_changes(before: Document | None, after: Document | None) -> tuple[FieldChange, ...]:
    """
    Return the differences between two documents, in the order of their fields. A list is one value.

    @param before: None for a rule that is new.
    @param after: None for one that is deleted.
    """
    old, new = _fields(before), _fields(after)
    return tuple(
        FieldChange(path_text(path), old.get(path, MISSING), new.get(path, MISSING))
        for path in dict.fromkeys((*old, *new))
        if not _same(old.get(path, MISSING), new.get(path, MISSING))
    )


def three_way(base: Document | None, theirs: Document | None, yours: Document | None) -> ThreeWay:
    """
    Return what two changes of one document come to.

    @param base: what both have begun with.
    @param theirs: what is there now.
    @param yours: what was to be saved.
    """
    before, there, own = _fields(base), _fields(theirs), _fields(yours)
    conflicts = []
    merged: dict[Path, Any] = {}
    for path in dict.fromkeys((*before, *there, *own)):
        was, other, mine = (fields.get(path, MISSING) for fields in (before, there, own))
        value = other if _same(mine, was) else mine
        if not (_same(was, other) or _same(was, mine) or _same(other, mine)):
            conflicts.append(FieldConflict(path_text(path), was, other, mine))
        elif value is not MISSING:
            merged[path] = value
    # A field that has become a mapping, and a field inside of it, can't both be there.
    whole = [path for path in merged if any(path[:length] in merged for length in range(1, len(path)))]
    conflicts += [FieldConflict(path_text(path), yours=merged[path]) for path in whole]
    is_document = not conflicts and theirs is not None and yours is not None
    return ThreeWay(
        field_changes(base, theirs),
        field_changes(base, yours),
        tuple(conflicts),
        _document(merged) if is_document else None,
    )


def plan_push(
    current: Mapping[str, ManagedRule],
    wanted: Mapping[str, Document],
    manager: str,
    *,
    prune: bool = False,
    take_over: bool = False,
) -> PushPlan:
    """
    Return what a push of a whole file does.

    @param current: the rules that are there, by name.
    @param wanted: those of the file, by name.
    @param manager: of whom pushes; it becomes that of the rules that the push creates or changes.
    @param prune: delete the rules of this manager that the file lacks. Those of others stay in any case.
    @param take_over: change rules of other managers, too, and be the manager of all rules of the file.
    """
    creates, updates, refused = [], [], {}
    for name, document in wanted.items():
        there = current.get(name)
        if there is None:
            creates.append(name)
            continue
        is_foreign = there.manager != manager
        changes = field_changes(there.document, document)
        if changes and is_foreign and not take_over:
            refused[name] = there.manager
        elif changes or (is_foreign and take_over):
            updates.append(RuleUpdate(name, changes, there.manager if is_foreign else ""))
    own = tuple(name for name, rule in current.items() if rule.manager == manager and name not in wanted)
    return PushPlan(
        tuple(creates),
        tuple(updates),
        own if prune else (),
        () if prune else own,
        refused,
        len(wanted) - len(creates) - len(updates) - len(refused),
    )


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same in JSON, where 1 is neither true nor 1.0."""
    if one is MISSING or other is MISSING:
        return one is other
    return _encode(one) == _encode(other)


def _fields(document: Document | None) -> dict[Path, Any]:
    """Return the values of a document by their paths: those that are no mappings, or empty ones."""
    return {} if document is None else dict(_values(document, ()))


def _values(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and (value or not path):
        for key, member in value.items():
            yield from _values(member, (*path, key))
    else:
        yield path, value


def _document(fields: Mapping[Path, Any]) -> Document:
    document: Document = {}
    for path, value in fields.items():
        holder = document
        for key in path[:-1]:
            holder = holder.setdefault(str(key), {})
        holder[str(path[-1])] = value
    return document
