"""The causes of each refusal, read from the code: which function refuses with which reason, and with which sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from webhookrx import errors
from webhookrx.errors import REASONS, Reason

PACKAGE = Path(__file__).resolve().parent.parent / "webhookrx"

#: Rooms that refuse requests.
ROOMS = ("guard", "http", "intake", "senders", "service")

_BY_NAME = {name: value for name, value in vars(errors).items() if isinstance(value, Reason)}


Helpers = dict[str, ast.FunctionDef]


class Cause(NamedTuple):
    """One place in the code that refuses: the reason, its sentence ("" for the reason's own), module and function."""

    reason: Reason
    detail: str
    module: str
    function: str


def causes() -> list[Cause]:
    """Return every cause, by the order of the reasons."""
    found = {
        cause
        for room in ROOMS
        for path in (PACKAGE / room).rglob("*.py")
        for cause in _causes_in(ast.parse(path.read_text(encoding="utf-8")), path.relative_to(PACKAGE).as_posix(), "")
    }
    order = {reason: number for number, reason in enumerate(sorted(REASONS, key=lambda each: (each.status, each.word)))}
    return sorted(found, key=lambda cause: (order[cause.reason], cause.module, cause.function, cause.detail))


def cause_table() -> str:
    """Return the causes as a table, one row for each function that refuses with a reason."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for cause in causes():
        sentences = rows.setdefault((cause.reason.word, cause.module, cause.function), [])
        if cause.detail.strip("… "):
            sentences.append(cause.detail)
    lines = ["| reason | decided in | function | sentences other than the reason's own |", "|---|---|---|---|"]
    for (word, module, function), sentences in rows.items():
        lines.append(f"| `{word}` | `webhookrx/{module}` | `{function}` | {' '.join(sentences)} |")
    return "".join(f"{line}\n" for line in lines)


def _causes_in(node: ast.AST, module: str, function: str, helpers: Helpers | None = None) -> Iterator[Cause]:
    if helpers is None:
        helpers = {each.name: each for each in ast.walk(node) if isinstance(each, ast.FunctionDef)}
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(child, ast.Call) and inside:
            for argument in child.args:
                if isinstance(argument, ast.Name) and argument.id in _BY_NAME:
                    texts = [texts for other in child.args if (texts := _sentences(other, helpers))]
                    for text in texts[0] if texts else [""]:
                        yield Cause(_BY_NAME[argument.id], text, module, inside)
        yield from _causes_in(child, module, inside, helpers)


def _sentences(node: ast.expr, helpers: Helpers) -> list[str]:
    """
    Return the texts that an expression may be, with an ellipsis for what the code fills in; none for anything else.

    @param helpers: the functions of the module, whose results are followed.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)]
    if isinstance(node, ast.IfExp):
        return [*_sentences(node.body, helpers), *_sentences(node.orelse, helpers)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in helpers:
        results = [each.value for each in ast.walk(helpers[node.func.id]) if isinstance(each, ast.Return)]
        return [text for value in results if value is not None for text in _sentences(value, helpers)]
    return []
