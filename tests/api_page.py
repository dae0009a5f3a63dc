"""The reference for authors of observers: Markdown made from the epytext docstrings of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Module to the names of it that an author of an observer meets, in the order of the page.
PUBLIC = {
    "webhookrx/interfaces.py": (
        "IMessageObserver", "IObserverFactory", "ILocalObserver", "IWaitingObserver", "IStoreObserver", "Wants",
        "IBufferingObserver", "Backlog"
    ),
    "webhookrx/errors.py": ("ConfigError", "NotStored", "Rejected", "Unavailable"),
    "webhookrx/message/message.py": ("Message",),
    "webhookrx/message/encoders.py": ("encode_line",),
    "webhookrx/message/identity.py": ("message_id",),
    "webhookrx/store_counts.py": ("StoreCounts", "TakenCounts"),
    "webhookrx/testing.py": ("make_message", "MemoryObserver"),
    "tests/contracts/observer_contract.py": ("ObserverContract",),
}  # fmt: skip

_Definition = ast.ClassDef | ast.FunctionDef

_MARKUP = re.compile(r"([CL])\{(?:[^{}<]*<)?([^{}<>]*)>?\}")
_KNOWN = {name for names in PUBLIC.values() for name in names}
_TITLES = {"ivar": "attribute", "param": "parameter", "raise": "raises", "return": "returns"}


def observer_api() -> str:
    """Return a section for each public name: its signature, its contract, its attributes and methods."""
    text = "\n".join(text for module, names in PUBLIC.items() for text in _sections(module, names))
    return re.sub(r"\n{3,}", "\n\n", text)


def _sections(module: str, names: tuple[str, ...]) -> Iterator[str]:
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    found = {node.name: node for node in tree.body if isinstance(node, _Definition)}
    for name in names:
        node = found[name]
        source = module.removesuffix(".py").replace("/", ".")
        yield f"## `{name}`\n\n`from {source} import {name}`\n\n{_signature(node)}{_body(_docstring(node))}"
        if isinstance(node, ast.ClassDef):
            yield from _members(node)


def _members(node: ast.ClassDef) -> Iterator[str]:
    attributes = [text for member in node.body if (text := _attribute(member))]
    if attributes:
        yield "".join(attributes)
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith(("_", "test_")):
            text = _docstring(member)
            if text and not text.startswith("See L{"):
                yield f"### `{node.name}.{member.name}`\n\n{_signature(member)}{_body(text)}"


def _attribute(member: ast.stmt) -> str:
    """Return an attribute of an interface as an item of a list."""
    if not (isinstance(member, ast.AnnAssign) and isinstance(member.value, ast.Call)):
        return ""
    text = ast.literal_eval(member.value.args[0])
    return f"- `{ast.unparse(member.target)}: {ast.unparse(member.annotation)}`: {_inline(text)}\n"


def _signature(node: _Definition) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        line = f"class {node.name}({bases})" if bases else f"class {node.name}"
    else:
        line = f"def {node.name}({_arguments(node)})"
        line += f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"```python\n{line}\n```\n\n"


def _arguments(node: ast.FunctionDef) -> str:
    return re.sub(r"^(self|cls)(, )?", "", ast.unparse(node.args))


def _docstring(node: _Definition) -> str:
    return ast.get_docstring(node) or ""


def _body(docstring: str) -> str:
    """Return paragraphs, and the fields as a list."""
    prose, *fields = re.split(r"^(?=@\w+)", docstring, flags=re.MULTILINE)
    paragraphs = [" ".join(paragraph.split()) for paragraph in prose.split("\n\n")]
    text = "".join(f"{_inline(paragraph)}\n\n" for paragraph in paragraphs if paragraph)
    items = "".join(f"- {_field(field)}\n" for field in fields)
    return text + items


def _field(field: str) -> str:
    match = re.match(r"@(\w+)(?: ([\w.]+))?:\s*", field)
    assert match is not None, field
    kind, name = _TITLES[match[1]], match[2]
    lead = f"{kind} {_inline(f'L{{{name}}}')}" if name else kind
    return f"{lead}: {_inline(' '.join(field[match.end() :].split()))}"


def _inline(text: str) -> str:
    """Return epytext with its inline markup as Markdown; a link to a name on this page leads there."""

    def replace(match: re.Match[str]) -> str:
        word = match[2]
        name = word.rpartition(".")[2]
        return f"[`{name}`](#{name.lower()})" if match[1] == "L" and name in _KNOWN else f"`{word}`"

    return _MARKUP.sub(replace, text)
