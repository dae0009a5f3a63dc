"""
A rule as the fields of a form and as YAML: each is made of the other, and what the form does not have is kept.

The form carries what it was made of: C{base}, the rule that its fields show, and C{shown}, a digest of the YAML beside
them. So it is known which of the two somebody has changed, with a script or without one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
import yaml

from webhookrx.console.pages.form import Form
from webhookrx.management.rule_documents import document_of as document_of_rule
from webhookrx.management.rule_documents import document_yaml
from webhookrx.router.rules.rule import DEFAULT_PATHS, Rule
from webhookrx.router.rules.rules_file import read_rule
from webhookrx.router.steps.step import KINDS, Preprocessing, Step
from webhookrx.typed_yaml import read_typed

Side: TypeAlias = Literal["form", "yaml"]

#: What a step of a kind begins with.
SKELETONS: Final = {
    "select": "select: severity.number >= 9",
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
_YES: Final = ("yes", "on", "true")
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WIDTH: Final = 1 << 30

_STRING: Final = "tag:yaml.org,2002:str"
_INTEGER: Final = "tag:yaml.org,2002:int"
_FLAG: Final = "tag:yaml.org,2002:bool"
_NULL: Final = "tag:yaml.org,2002:null"
_MAPPING: Final = "tag:yaml.org,2002:map"
_SEQUENCE: Final = "tag:yaml.org,2002:seq"


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


def document_of(form: Form, keep: Side | None = None) -> RuleDraft:
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
        loses = loses or (before is not None and before.canonical != base)
        text = changed_text(base, values)
    return draft_of(text, side=side, base=base, loses=loses and side == "form")


def read_text(text: str) -> ReadText | None:
    """Return what the form has of a text; None for one that is no mapping in YAML."""
    reading = read_rule(text.encode(errors="replace"), "")
    if reading.partial is None:
        return None
    canonical = text if reading.value is None else document_yaml(document_of_rule(reading.value))
    # What the reader takes is not too deep for a composer that recurses.
    root = yaml.compose(canonical, Loader=_LOADER)
    members = _members(root)
    preparation = _members(members.get("preprocessing"))
    labels, paths, steps = members.get("labels"), members.get("paths"), preparation.get("steps")
    values = RuleValues(
        **{name: _line(_text_of(members[name])) for name in _LINES if name in members},
        **{name: _text_of(members[name]).strip() for name in _TEXTS if name in members},
        labels=tuple((key, _line(_text_of(value))) for key, value in _members(labels, as_written=True).items()),
        paths=DEFAULT_PATHS if paths is None else tuple(_line(_text_of(each)) for each in _items(paths)),
        classify=_is_yes(preparation.get("classify")),
        parse=_is_yes(preparation.get("parse")),
        steps=tuple(map(_step_text, _items(steps))),
    )
    return ReadText(values, _others(root), canonical)


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
    root: Any = None if before is None else yaml.compose(before.canonical, Loader=_LOADER)
    changes: dict[str, Any] = {}
    for name in (*_LINES, *_TEXTS):
        if getattr(values, name) != getattr(old, name):
            changes[name] = _scalar(getattr(values, name)) if getattr(values, name) else None
    if values.labels != old.labels:
        changes["labels"] = _mapping([(_scalar(key), _scalar(value)) for key, value in values.labels])
    if values.paths != old.paths:
        changes["paths"] = _sequence(map(_scalar, values.paths))
    flags = [name for name in ("classify", "parse") if getattr(values, name) != getattr(old, name)]
    if flags or values.steps != old.steps:
        inside = _members(root).get("preprocessing")
        prepared: dict[str, Any] = {name: _flag(getattr(values, name)) for name in flags}
        if values.steps != old.steps:
            known = list(zip(old.steps, _items(_members(inside).get("steps")), strict=True))
            prepared["steps"] = _sequence(_step_node(step, known) for step in values.steps)
        changes["preprocessing"] = _with(inside, prepared, Preprocessing)
    text = _written(_with(root, changes, Rule) or _mapping([], keep=True))
    read = read_text(text)
    return text if read is None else read.canonical


def of_kind(text: str, was: str, kind: str) -> str:
    """Return a step in YAML as one of another kind, with what all kinds have."""
    root = _step_root(text)
    skeleton = SKELETONS.get(kind, "")
    if root is None or not skeleton:
        return skeleton or text
    kept = [(key, value) for key, value in root.value if _key(key) not in (was, "classify_fallback")]
    return f"{skeleton}\n{_written(_mapping(kept))}".strip() if kept else skeleton


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


# -- nodes of YAML ---------------------------------------------------------------------------------------------------


def _ended(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip()


def _raw(form: Form) -> list[str]:
    return [_ended(value) for key, value in form.pairs if key == "step_yaml"]


def _line(text: str) -> str:
    """Return a text as a browser has it in a field of one line."""
    return text.replace("\n", "").replace("\r", "").strip()


def _members(node: Any, *, as_written: bool = False) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value if as_written else _key(key): value for key, value in node.value if _key(key)}


def _key(node: Any) -> str:
    return str(node.value).replace("-", "_") if isinstance(node, yaml.ScalarNode) else ""


def _items(node: Any) -> list[Any]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _text_of(node: Any) -> str:
    """Return a scalar as text, and what should be none in YAML."""
    if not isinstance(node, yaml.ScalarNode):
        return _written(node).strip()
    return "" if node.tag == _NULL and not node.style else str(node.value)


def _is_yes(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and str(node.value).lower() in _YES


def _scalar(text: str) -> Any:
    tag = _INTEGER if text.isascii() and text.isdigit() and (text == "0" or text[0] != "0") else _STRING
    return yaml.ScalarNode(tag, text, style="|" if "\n" in text else None)


def _flag(is_set: bool) -> Any:
    return yaml.ScalarNode(_FLAG, "true") if is_set else None


def _mapping(pairs: Sequence[tuple[Any, Any]], *, keep: bool = False) -> Any:
    """Return a mapping; None for an empty one, unless it is to be kept."""
    return yaml.MappingNode(_MAPPING, list(pairs), flow_style=not pairs) if pairs or keep else None


def _sequence(items: Iterable[Any]) -> Any:
    kept = list(items)
    return yaml.SequenceNode(_SEQUENCE, kept, flow_style=False) if kept else None


def _with(node: Any, changes: Mapping[str, Any], type: type[msgspec.Struct]) -> Any:
    """Return a copy of a mapping with some members changed, None being one that is not there any more."""
    pairs = list(node.value) if isinstance(node, yaml.MappingNode) else []
    there = [_key(key) for key, _ in pairs]
    pairs = [(key, changes.get(_key(key), value)) for key, value in pairs]
    pairs += [(_scalar(name), value) for name, value in changes.items() if name not in there]
    order = {field.name: number for number, field in enumerate(msgspec.structs.fields(type))}
    pairs.sort(key=lambda pair: order.get(_key(pair[0]), len(order)))
    return _mapping([pair for pair in pairs if pair[1] is not None])


def _written(node: Any) -> str:
    text: str = yaml.serialize(node, Dumper=_DUMPER, allow_unicode=True, width=_WIDTH)
    # A scalar by itself ends with the mark of the end of a document.
    return text.removesuffix("...\n")


def _others(root: Any) -> str:
    """Return the members that are in YAML only."""
    pairs = []
    for key, value in root.value:
        if _key(key) == "preprocessing" and isinstance(value, yaml.MappingNode):
            value = _mapping([pair for pair in value.value if _key(pair[0]) not in ("classify", "parse", "steps")])
        elif _key(key) in _IN_FORM:
            continue
        if value is not None:
            pairs.append((key, value))
    return _written(_mapping(pairs)) if pairs else ""


def _step_text(node: Any) -> StepText:
    members = _members(node)
    kind = next((kind for kind in KINDS if kind in members), "")
    if not isinstance(node, yaml.MappingNode):
        return StepText("", "", _text_of(node).rstrip())
    kept = _mapping([(key, value) for key, value in node.value if _key(key) != "condition"])
    condition = _text_of(members["condition"]).strip() if "condition" in members else ""
    return StepText(kind, condition, "" if kept is None else _written(kept).rstrip())


def _step_node(step: StepText, known: Sequence[tuple[StepText, Any]]) -> Any:
    for text, node in known:
        if (text.condition, text.yaml) == (step.condition, step.yaml):
            return node
    root = _step_root(step.yaml)
    if root is None:
        # A text in place of a step: the reader says what is wrong with it, and nothing of it is lost.
        condition = _written(_mapping([(_scalar("condition"), _scalar(step.condition))])) if step.condition else ""
        return yaml.ScalarNode(_STRING, condition + step.yaml, style="|")
    pairs = [(key, value) for key, value in root.value if _key(key) != "condition" or not step.condition]
    if step.condition:
        pairs.append((_scalar("condition"), _scalar(step.condition)))
    return _mapping(pairs, keep=True)


def _step_root(text: str) -> Any:
    """Return the mapping that a step is; None when it is none, or can't be read."""
    if not text.strip() or read_typed(text.encode(errors="replace"), "", Step).partial is None:
        return None
    return yaml.compose(text, Loader=_LOADER)
