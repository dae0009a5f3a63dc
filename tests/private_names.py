"""
Which private names of Twisted, pyOpenSSL and other libraries the package uses: imports, attributes, and names that our
classes share with theirs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

OWNERS = ("twisted", "OpenSSL", "treq", "re2", "nats", "redis")
ROOT = Path(__file__).parent.parent

#: A leading underscore, but neither a dunder nor what named tuples and C{os} document.
_PRIVATE = re.compile(r"_(?!asdict$|exit$|fields$|make$|replace$)[a-zA-Z]\w*")


def used_private_names() -> dict[str, set[str]]:
    """Return the private names that each module of ours uses, by its name without C{webhookrx.}."""
    used = {}
    for path in sorted((ROOT / "webhookrx").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text())
        names = {*_imported(tree), *_attributes(tree), *_shared_with_bases(tree, module)}
        if names:
            used[module.removeprefix("webhookrx.")] = names
    return used


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if module.partition(".")[0] in OWNERS:
                for alias in node.names:
                    name = f"{module}.{alias.name}"
                    if any(map(_is_private, name.split("."))):
                        yield module if _is_private(module.rpartition(".")[2]) else name
            case ast.Import():
                for alias in node.names:
                    if alias.name.partition(".")[0] in OWNERS and any(map(_is_private, alias.name.split("."))):
                        yield alias.name


def _attributes(tree: ast.AST) -> Iterator[str]:
    """Yield private attributes of other objects that this module has not made itself."""
    own = {*_own_names(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls" | "other" | "copy" | "new")):
                pass
            case ast.Attribute(attr=name) if _is_private(name) and name not in own:
                yield name
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]):
                if _is_private(name) and name not in own:
                    yield name


def _own_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name


def _shared_with_bases(tree: ast.AST, module: str) -> Iterator[str]:
    """Yield private names of our classes that their bases of Twisted have as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.bases:
            names = set(filter(_is_private, {*_own_names(node), *_read_from_self(node)}))
            if names:
                bases = _foreign_bases(module, node.name)
                yield from (name for name in names if any(name in vars(base) for base in bases))


def _read_from_self(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self") | ast.Call(func=ast.Name(id="super")), attr=name):
                yield name


def _foreign_bases(module: str, name: str) -> list[type]:
    found = getattr(import_module(module), name, None)
    mro = found.__mro__ if isinstance(found, type) else ()
    return [base for base in mro if base.__module__.partition(".")[0] in OWNERS]


def _is_private(name: str) -> bool:
    return _PRIVATE.fullmatch(name) is not None
