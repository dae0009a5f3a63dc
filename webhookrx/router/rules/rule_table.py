"""
The fields of a rules file and all mistakes as Markdown tables: C{python -m webhookrx.router.rules.rule_table}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import NODEFAULT, inspect

from webhookrx.diagnostics import FILE_CODES, ROUTER_CODES, RULE_CODES, Code
from webhookrx.router.rules.rule import Host, Preprocessing, Probe, Regex, Rule, SetField, Step
from webhookrx.text import table


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
    print("\n".join((rule_table(), step_table(), host_table(), code_table())), end="")
