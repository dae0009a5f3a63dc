"""
All mutants that there can be of some files, and a sample of them that a seed picks.

A mutant is named by where it is and what stands there, not by the number of its line: names last, and so do samples,
while the code around them changes. What no test ought to look at gets none: annotations, docstrings, C{assert}, what
classes and decorators are called with, code for type checkers, and the inside of formatted texts.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tests.mutants.mutant import Mutant
from tests.mutants.operators import OPERATORS

_UNSEEN = frozenset({"assert_stmt", "decorator", "fstring", "import_from", "import_name"})
_ARITHMETIC = frozenset({"arith_expr", "term", "shift_expr", "expr", "and_expr", "xor_expr", "power", "expr_stmt"})
_FOR_CHECKERS = frozenset({"@final", "@overload", "@override", "@runtime_checkable"})
#: An integer above this at the top of a module or class is a measure that somebody has chosen; one more is no fault.
_CHOSEN = 16


class Candidate(NamedTuple):
    """
    A mutant that has not been made.

    @ivar name: the same as long as what stands there is the same, see L{Mutant.name}.
    @ivar place: operator and position. One place has one mutant at most in a sample.
    @ivar occurrence: how many the operator makes before it in this file.
    """

    name: str
    path: str
    line: int
    operator: str
    place: tuple[str, str, Any]
    occurrence: int


def candidates_of(path: str, source: str) -> Iterator[Candidate]:
    """Return all mutants of a file."""
    tree = get_ast(source)
    lines = source.splitlines()
    nodes = list(ast_nodes(tree))
    seen: Counter[str] = Counter()
    for word, operator in OPERATORS.items():
        occurrence = 0
        for node in nodes:
            for index, position in enumerate(operator.mutation_positions(node)):
                if _counts(node, word):
                    line = position[0][0]
                    label = f"{path}: {_qualified_name(node)}: {lines[line - 1].strip()}: {word}"
                    if word == "NumberReplacer":
                        label += "+-"[index]
                    seen[label] += 1
                    name = label if seen[label] == 1 else f"{label} ({seen[label]})"
                    yield Candidate(name, path, line, word, (path, word, position), occurrence)
                occurrence += 1


def make(candidate: Candidate, source: str) -> Mutant | None:
    """Return the mutant; None when it is no program, or the same one."""
    mutated = mutate_code(source, OPERATORS[candidate.operator], candidate.occurrence)
    try:
        changed = mutated is not None and ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return None
    return Mutant(candidate.name, candidate.path, candidate.line, source, mutated) if changed else None


def sample(candidates: Iterable[Candidate], seed: int, count: int | None, root: Path) -> list[Mutant]:
    """
    Return as many mutants, in an order that depends on their names and the seed alone.

    @param count: None for all.
    """
    chosen: list[Mutant] = []
    places: set[tuple[str, str, Any]] = set()
    for candidate in sorted(candidates, key=lambda candidate: _lot(seed, candidate.name)):
        if count is not None and len(chosen) == count:
            break
        if count is None or candidate.place not in places:
            mutant = make(candidate, (root / candidate.path).read_text(encoding="utf-8"))
            if mutant is not None:
                places.add(candidate.place)
                chosen.append(mutant)
    return chosen


def _lot(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


def _counts(node: Any, word: str) -> bool:
    if word == "RemoveDecorator":
        return node.get_code().strip().split("(")[0] not in _FOR_CHECKERS
    if word == "NumberReplacer" and _is_chosen(node):
        return False
    if word.startswith("ReplaceBinaryOperator") and not _is_arithmetic(node):
        return False
    child = node
    while child is not None:
        parent = child.parent
        if child.type in _UNSEEN or (parent is not None and _is_for_checkers(child, parent)):
            return False
        child = parent
    return True


def _is_for_checkers(child: Any, parent: Any) -> bool:
    if parent.type == "annassign":
        return child is parent.children[1]
    if parent.type == "tfpdef":
        return child is parent.children[2]
    if parent.type == "funcdef":
        return child is parent.annotation
    if parent.type == "classdef":
        return child is not parent.children[-1]
    if parent.type == "expr_stmt" and parent.children[1].type == "annassign":
        return "TypeAlias" in parent.children[1].children[1].get_code()
    return child.type == "if_stmt" and child.children[1].get_code().strip() == "TYPE_CHECKING"


def _is_chosen(node: Any) -> bool:
    if parso.tree.search_ancestor(node, "funcdef", "lambdef") is not None:
        return False
    value = ast.literal_eval(node.value)
    return isinstance(value, int) and value > _CHOSEN


def _is_arithmetic(node: Any) -> bool:
    """Tell whether it is a sign between numbers or sets, as far as that can be seen; not between texts or types."""
    if node.parent.type not in _ARITHMETIC:
        return False
    return not any(
        operand.type in ("string", "strings", "fstring") or operand.get_code().strip() == "None"
        for operand in node.parent.children
    )


def _qualified_name(node: Any) -> str:
    names = []
    scope = parso.tree.search_ancestor(node, "funcdef", "classdef")
    while scope is not None:
        names.append(scope.name.value)
        scope = parso.tree.search_ancestor(scope, "funcdef", "classdef")
    return ".".join(reversed(names)) or "-"
