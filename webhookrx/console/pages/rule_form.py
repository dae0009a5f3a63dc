"""
A rule as the fields of a form and as YAML: each is made of the other, and what the form does not have is kept.

The form carries what it was made of: C{base}, the rule that its fields show, and C{shown}, a digest of the YAML beside
them. So it is known which of the two somebody has changed, with a script or without one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec
import yaml

from webhookrx.console.pages.form import Form
from webhookrx.console.pages.rule_nodes import (
    block,
    composed,
    flag,
    is_yes,
    items_of,
    key_of,
    mapping,
    members_of,
    scalar,
    sequence,
    text_of,
    with_members,
    written,
)
from webhookrx.management.rule_documents import Document, document_of, document_yaml
from webhookrx.router.rules.rule import DEFAULT_PATHS, Rule
from webhookrx.router.rules.rules_file import read_rule
from webhookrx.router.steps.step import KINDS, Preprocessing, Step
from webhookrx.typed_yaml import read_typed

_LONGEST_REMEMBERED: Final = 8192

Side: TypeAlias = Literal["form", "yaml"]

#: What a step of a kind begins with.
SKELETONS: Final = {
    "select": "select: log.severity_number >= 9",
    "set": "set:\n  field: meta.team\n  value: web",
    "unset": "unset: log.attributes",
    "regex": "regex:\n  pattern: 'user=(?P<user>\\S+)'",
    "probe": "probe: seen",
    "classify": "classify: yes",
    "parse": "parse: yes",
    "expression": 'expression: |\n  meta.team = "web";',
}

_LINES: Final = ("name", "protocol", "port", "suffix", "key_file", "cert_file")
_TEXTS: Final = ("description", "selector")
_IN_FORM: Final = frozenset((*_LINES, *_TEXTS, "labels", "paths", "preprocessing"))


class StepText(msgspec.Struct, frozen=True):
    """
    A processing step in a form.

    @ivar kind: one of L{KINDS}; empty for none.
    @ivar condition: the query for messages that do not skip it.
    @ivar yaml: the rest of it.
    """

    kind: str = ""
    condition: str = ""
    yaml: str = ""


class RuleValues(msgspec.Struct, frozen=True):
    """The fields of the form: those of table 2.2 of the specification, as texts."""

    name: str = ""
    protocol: str = ""
    port: str = ""
    suffix: str = ""
    key_file: str = ""
    cert_file: str = ""
    description: str = ""
    selector: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    paths: tuple[str, ...] = DEFAULT_PATHS
    classify: bool = False
    parse: bool = False
    steps: tuple[StepText, ...] = ()


class RuleDraft(msgspec.Struct, frozen=True):
    """
    A rule that is being edited.

    @ivar text: it in YAML, which is what counts.
    @ivar shown: the digest of its YAML, by which it is known later whether somebody has changed it.
    @ivar side: where it was written last.
    @ivar base: what the fields of the form show, in YAML: C{text}, or what it was when it could be read.
    @ivar values: the fields of the form.
    @ivar others: the fields that are in YAML only, in YAML.
    @ivar is_readable: the form shows C{text}.
    @ivar both: form and YAML were both changed, and nothing says which of them counts.
    @ivar loses: comments and layout that somebody has written are lost, as the form was used.
    """

    text: str
    shown: str
    side: Side = "yaml"
    base: str = ""
    values: RuleValues = RuleValues()
    others: str = ""
    is_readable: bool = True
    both: bool = False
    loses: bool = False


class ReadText(msgspec.Struct, frozen=True):
    """
    What the form has of a text in YAML.

    @ivar canonical: the one text that we write for the same rule; the text itself while something is wrong with it.
    """

    values: RuleValues
    others: str
    canonical: str


def draft_of(text: str, *, side: Side = "yaml", base: str = "", loses: bool = False) -> RuleDraft:
    """
    Return a draft of a text.

    @param base: what the form shows if the text can't be read.
    """
    read = read_text(text)
    if read is not None:
        return RuleDraft(text, digest(text), side, text, read.values, read.others, loses=loses)
    shown = read_text(base)
    if shown is None:
        return RuleDraft(text, digest(text), side, "", is_readable=not text, loses=loses)
    return RuleDraft(text, digest(text), side, base, shown.values, shown.others, is_readable=False, loses=loses)


def draft_in(form: Form, keep: Side | None = None) -> RuleDraft:
    """
    Return the rule that a form has: of its fields or of its YAML, whichever was changed.

    @param keep: which counts if both were; by default what a script has noted. Else the draft has all as it was sent.
    """
    text, base = raw_text(form, "yaml"), raw_text(form, "base")
    before = read_text(base)
    old = RuleValues() if before is None else before.values
    values = old if form.flag("form_off") else values_in(form)
    form_changed, yaml_changed = _compared(values) != _compared(old), digest(text) != form.text("shown")
    side: Side = "form" if form.text("mode") == "form" else "yaml"
    if form_changed and yaml_changed:
        noted = keep or form.text("edited")
        if noted not in ("form", "yaml"):
            others = "" if before is None else before.others
            return RuleDraft(text, form.text("shown"), side, base, values, others, both=True, loses=form.flag("loses"))
        side = "form" if noted == "form" else "yaml"
    elif form_changed or yaml_changed:
        side = "form" if form_changed else "yaml"
    loses = form.flag("loses")
    if side == "form" and form_changed:
        return with_values(draft_of(base, side="form", loses=loses), values)
    return draft_of(text, side=side, base=base, loses=loses and side == "form")


def shows(draft: RuleDraft, values: RuleValues) -> bool:
    """Return whether the fields of a draft are these."""
    return _compared(values) == _compared(draft.values)


def with_values(draft: RuleDraft, values: RuleValues) -> RuleDraft:
    """Return a draft with other values in the form, which counts from then on."""
    if shows(draft, values):
        return draft
    before = read_text(draft.base)
    loses = draft.loses or (before is not None and before.canonical != draft.base)
    return draft_of(changed_text(draft.base, values), side="form", base=draft.base, loses=loses)


def rule_document(text: str) -> Document | None:
    """Return the document of a rule in YAML; None while something is wrong with it."""
    rule = read_rule(text.encode(errors="replace"), "").value
    return None if rule is None else document_of(rule)


def read_text(text: str) -> ReadText | None:
    """Return what the form has of a text; None for one that is no mapping in YAML."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _read(text)


def _read(text: str) -> ReadText | None:
    reading = read_rule(text.encode(errors="replace"), "")
    if reading.partial is None:
        return None
    canonical = text if reading.value is None else document_yaml(document_of(reading.value))

    root = composed(canonical)
    members = members_of(root)
    preparation = members_of(members.get("preprocessing"))
    labels, paths, steps = members.get("labels"), members.get("paths"), preparation.get("steps")
    values = RuleValues(
        **{name: _line(text_of(members[name])) for name in _LINES if name in members},
        **{name: text_of(members[name]).strip() for name in _TEXTS if name in members},
        labels=tuple((key, _line(text_of(value))) for key, value in members_of(labels, as_written=True).items()),
        paths=DEFAULT_PATHS if paths is None else tuple(_line(text_of(each)) for each in items_of(paths)),
        classify=is_yes(preparation.get("classify")),
        parse=is_yes(preparation.get("parse")),
        steps=tuple(map(_step_text, items_of(steps))),
    )
    return ReadText(values, _others(root), canonical)


#: While somebody writes, the same text comes again and again.
_remembered: Final = lru_cache(32)(_read)


def values_in(form: Form, *, all_rows: bool = False) -> RuleValues:
    """
    Return the fields as they were sent.

    @param all_rows: with rows in which nothing is written.
    """
    labels = zip(form.all("label_key"), form.all("label_value"), strict=False)
    rows = zip(form.all("step_kind"), form.all("step_was"), form.all("step_condition"), _raw(form), strict=False)
    return RuleValues(
        **{name: _line(form.text(name)) for name in _LINES},
        **{name: form.text(name) for name in _TEXTS},
        labels=tuple((_line(key), _line(value)) for key, value in labels if all_rows or key or value),
        paths=tuple(_line(path) for path in form.all("path") if all_rows or path),
        classify=form.flag("classify"),
        parse=form.flag("parse"),
        steps=tuple(
            StepText(kind, condition, of_kind(text, was, kind) if kind != was else text)
            for kind, was, condition, text in rows
        ),
    )


def changed_text(base: str, values: RuleValues) -> str:
    """
    Return a rule in YAML with what was changed in the form; all else in it stays.

    @param base: what the form has shown; empty for nothing.
    """
    before = read_text(base)
    old = RuleValues() if before is None else before.values
    root: Any = None if before is None else composed(before.canonical)
    changes: dict[str, Any] = {}
    for name in (*_LINES, *_TEXTS):
        if getattr(values, name) != getattr(old, name):
            changes[name] = scalar(getattr(values, name)) if getattr(values, name) else None
    if values.labels != old.labels:
        changes["labels"] = mapping([(scalar(key), scalar(value)) for key, value in values.labels])
    if values.paths != old.paths:
        changes["paths"] = sequence(map(scalar, values.paths))
    flags = [name for name in ("classify", "parse") if getattr(values, name) != getattr(old, name)]
    if flags or values.steps != old.steps:
        inside = members_of(root).get("preprocessing")
        prepared: dict[str, Any] = {name: flag(getattr(values, name)) for name in flags}
        if values.steps != old.steps:
            known = list(zip(old.steps, items_of(members_of(inside).get("steps")), strict=True))
            prepared["steps"] = sequence(_step_node(step, known) for step in values.steps)
        changes["preprocessing"] = with_members(inside, prepared, Preprocessing)
    text = written(with_members(root, changes, Rule) or mapping([], keep=True))
    read = read_text(text)
    return text if read is None else read.canonical


def of_kind(text: str, was: str, kind: str) -> str:
    """Return a step in YAML as one of another kind, with what all kinds have."""
    root = _step_root(text)
    skeleton = SKELETONS.get(kind, "")
    if root is None or not skeleton:
        return skeleton or text
    kept = [(key, value) for key, value in root.value if key_of(key) not in (was, "classify_fallback")]
    return f"{skeleton}\n{written(mapping(kept))}".strip() if kept else skeleton


def _compared(values: RuleValues) -> RuleValues:
    """Return values without what their texts say as well."""
    return msgspec.structs.replace(
        values, steps=tuple(StepText("", step.condition, step.yaml) for step in values.steps)
    )


def digest(text: str) -> str:
    """Return what tells a text from another one."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def raw_text(form: Form, name: str) -> str:
    """Return a field with the spaces before it, since they mean something in YAML; it ends with one line break."""
    values = [value for key, value in form.pairs if key == name]
    text = _ended(values[-1]) if values else ""
    return f"{text}\n" if text else ""


def _ended(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip()


def _raw(form: Form) -> list[str]:
    return [_ended(value) for key, value in form.pairs if key == "step_yaml"]


def _line(text: str) -> str:
    """Return a text as a browser has it in a field of one line."""
    return text.replace("\n", "").replace("\r", "").strip()


def _others(root: Any) -> str:
    """Return the members that are in YAML only."""
    pairs = []
    for key, value in root.value:
        if key_of(key) == "preprocessing" and isinstance(value, yaml.MappingNode):
            value = mapping([pair for pair in value.value if key_of(pair[0]) not in ("classify", "parse", "steps")])
        elif key_of(key) in _IN_FORM:
            continue
        if value is not None:
            pairs.append((key, value))
    return written(mapping(pairs)) if pairs else ""


def _step_text(node: Any) -> StepText:
    members = members_of(node)
    kind = next((kind for kind in KINDS if kind in members), "")
    if not isinstance(node, yaml.MappingNode):
        return StepText("", "", text_of(node).rstrip())
    kept = mapping([(key, value) for key, value in node.value if key_of(key) != "condition"])
    condition = text_of(members["condition"]).strip() if "condition" in members else ""
    return StepText(kind, condition, "" if kept is None else written(kept).rstrip())


def _step_node(step: StepText, known: Sequence[tuple[StepText, Any]]) -> Any:
    for text, node in known:
        if (text.condition, text.yaml) == (step.condition, step.yaml):
            return node
    root = _step_root(step.yaml)
    if root is None:
        # A text in place of a step: the reader says what is wrong with it, and nothing of it is lost.
        condition = written(mapping([(scalar("condition"), scalar(step.condition))])) if step.condition else ""
        return block(condition + step.yaml)
    pairs = [(key, value) for key, value in root.value if key_of(key) != "condition" or not step.condition]
    if step.condition:
        pairs.append((scalar("condition"), scalar(step.condition)))
    return mapping(pairs, keep=True)


def _step_root(text: str) -> Any:
    """Return the mapping that a step is; None when it is none, or can't be read."""
    if not text.strip() or read_typed(text.encode(errors="replace"), "", Step).partial is None:
        return None
    return composed(text)
