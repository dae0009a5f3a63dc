"""
The JSON Schema of a rules file, C{python -m webhookrx.router.rules.schema}, and the tables of its fields and mistakes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, inspect

from webhookrx.diagnostics import FILE_CODES, ROUTER_CODES, RULE_CODES, Code
from webhookrx.router.rules.rule import Host, Rule, RulesFile
from webhookrx.router.steps.step import KINDS, Preprocessing, Probe, Regex, SetField, Step
from webhookrx.text import table

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_YES: Final = [True, "yes", "on"]
_NO: Final = [False, "no", "off"]
"""What YAML 1.2 has as texts, and the reader takes for yes and no."""

_PLAIN: Final = ["string", "number", "boolean"]
"""What YAML makes of a text without quotes; the reader takes what is written."""

_TLS_FILES: Final = ["key_file", "cert_file"]


def rules_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12). What JSON Schema can't say, such as that ports clash, is not in it."""
    (root,), definitions = msgspec.json.schema_components([RulesFile], ref_template="#/$defs/{name}")
    schema = {
        "$schema": _DIALECT,
        "title": "Connector rules of webhookrx",
        **root,
        "$defs": {name: _as_read(each) for name, each in sorted(definitions.items())},
    }
    step, rule, host = (schema["$defs"][name] for name in ("Step", "Rule", "Host"))
    step["oneOf"] = [{"required": [kind]} for kind in KINDS]
    for switch in ("classify", "parse"):
        step["properties"][switch]["enum"] = _YES
    step["dependentRequired"] = {"classify_fallback": ["classify"]}
    schema["$defs"]["Preprocessing"] |= {
        "if": {"properties": {"parse": {"enum": _YES}}, "required": ["parse"]},
        "then": {"properties": {"classify": {"enum": _YES}}, "required": ["classify"]},
    }
    for labelled in (rule, host):
        labelled["properties"]["labels"]["additionalProperties"] = {"type": _PLAIN}
    rule["properties"]["sender_settings"]["additionalProperties"] = {"type": [*_PLAIN, "array"]}
    for word in ("verify", "split", "idempotency"):
        rule["properties"][word]["type"] = _PLAIN
    rule["if"] = {"properties": {"protocol": {"const": "HTTPS"}}}
    rule["then"] = {"required": _TLS_FILES}
    rule["else"] = {"not": {"anyOf": [{"required": [name]} for name in _TLS_FILES]}}
    return schema


def schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(rules_schema(), indent=2, ensure_ascii=False) + "\n"


def _as_read(schema: Any) -> Any:
    """Return a part of the schema as the reader understands it: null is no value, and yes and no have more words."""
    if isinstance(schema, list):
        return [_as_read(each) for each in schema if each != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    read = {key: _as_read(value) for key, value in schema.items() if (key, value) != ("default", None)}
    if read.get("type") == "boolean":
        del read["type"]
        read["enum"] = [*_YES, *_NO]
    if len(read.get("anyOf", ())) == 1:
        read |= read.pop("anyOf")[0]
    return read


def rule_table() -> str:
    """Return the table of the fields of a rule, those of C{preprocessing} among them."""
    return table(_HEAD, [*_fields(Rule), *_fields(Preprocessing, "preprocessing.")])


def step_table() -> str:
    """Return the table of steps, and what is written in them."""
    inner = [*_fields(SetField, "set."), *_fields(Regex, "regex."), *_fields(Probe, "probe.")]
    return table(_HEAD, [*_fields(Step), *inner])


def host_table() -> str:
    """Return the table of the fields of a host of the inventory."""
    return table(_HEAD, _fields(Host))


def code_table() -> str:
    """Return the table of mistakes: those of any such file, of rules, and of a router."""
    return table(("code", "severity", "meaning"), map(_code_row, (*FILE_CODES, *RULE_CODES, *ROUTER_CODES)))


_HEAD = ("field", "required", "default", "meaning")


def _fields(cls: type[msgspec.Struct], prefix: str = "") -> Iterable[tuple[str, ...]]:
    shape = inspect.type_info(cls)
    assert isinstance(shape, inspect.StructType)
    for field in shape.fields:
        yield (
            f"`{prefix}{field.encode_name}`",
            "yes" if field.required else "",
            _default(field),
            _meaning(field.type),
        )


def _default(field: inspect.Field) -> str:
    value: Any = field.default if field.default_factory is NODEFAULT else field.default_factory()
    if isinstance(value, bool):
        return "`yes`" if value else "`no`"
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    return f"`{value}`" if isinstance(value, (str, int)) and value else ""


def _meaning(shape: inspect.Type) -> str:
    said = shape.extra_json_schema if isinstance(shape, inspect.Metadata) else None
    return str(said["description"]) if said else ""


def _code_row(code: Code) -> tuple[str, ...]:
    return f"`{code.word}`", code.severity, code.meaning


if __name__ == "__main__":
    print(schema_text(), end="")
