"""
The faults that are put into code: those of cosmic-ray that say something of tests, and four of our own.

A swap of C{+} and C{**}, say, is noticed by any test that reaches it. Those that are left change a boundary, a sign, a
condition, a loop or a handler, and leave a program that runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators import provider
from cosmic_ray.operators.operator import Example, Operator

_WORDS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_AUGMENTED = frozenset({"+=", "-=", "*=", "/=", "//=", "%=", "**=", ">>=", "<<=", "&=", "|=", "^="})
_ACTS = frozenset({"atom_expr", "power", "raise_stmt", "del_stmt"})


class DropStatement(Operator):
    """Leaves out a call, a C{raise}, a C{del}, a bare C{return}, or an assignment to what outlives the function."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and _is_act(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        leaf = node.get_first_leaf()
        node.children[0] = parso.python.tree.Keyword("pass", leaf.start_pos, leaf.prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("close(file)\n", "pass\n"), Example("if a:\n    del b[a]\n", "if a:\n    pass\n"))


class PlainAssignment(Operator):
    """Makes C{=} of C{+=} and its like."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "operator" and node.parent.type == "expr_stmt" and node.value in _AUGMENTED:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = "="
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("a += b", "a = b"),)


class OtherWord(Operator):
    """Calls C{all} for C{any}, C{max} for C{min}, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "name" and node.value in _WORDS and _is_called(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = _WORDS[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("min(a, b)", "max(a, b)"), Example("all(a)", "any(a)"))


class UnhandledError(Operator):
    """Has a handler not catch an error: its only one, or one of several."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "except_clause":
            for each in _errors(node):
                yield each.start_pos, each.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        errors = _errors(node)
        if len(errors) == 1:
            nothing = parso.parse("()").children[0]
            nothing.get_first_leaf().prefix = " "
            node.children[1] = nothing
        else:
            siblings = errors[index].parent.children
            siblings[siblings.index(errors[index])] = errors[index - 1]
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example("try: a()\nexcept b.C as d: pass", "try: a()\nexcept () as d: pass"),
            Example("try: a()\nexcept (B, C): pass", "try: a()\nexcept (B,B): pass", occurrence=1),
        )


def _errors(clause: Any) -> list[Any]:
    error = clause.children[1]
    if error.type == "atom" and error.children[1].type == "testlist_comp":
        return list(error.children[1].children[::2])
    return [error]


def _is_act(node: Any) -> bool:
    if node.type == "keyword":
        return bool(node.value == "return")
    if node.type == "expr_stmt":
        target, sign = node.children[0], node.children[1]
        if sign.type == "annassign":
            return False
        # A local name that is never bound would be noticed by any test.
        return sign.value != "=" or (target.type in ("atom_expr", "power") and _function_name(node) != "__init__")
    return node.type in _ACTS


def _is_called(node: Any) -> bool:
    after = node.get_next_sibling()
    return after is not None and after.type == "trailer" and after.children[0].value == "("


def _function_name(node: Any) -> str:
    function = parso.tree.search_ancestor(node, "funcdef")
    return "" if function is None else str(function.name.value)


_KEPT = (
    *(f"ReplaceBinaryOperator_{swap}" for swap in ("Add_Sub", "Sub_Add", "Mul_FloorDiv", "Div_Mul", "FloorDiv_Mul")),
    *(f"ReplaceBinaryOperator_{swap}" for swap in ("Mod_FloorDiv", "Pow_Mul", "RShift_LShift", "LShift_RShift")),
    *(f"ReplaceBinaryOperator_{swap}" for swap in ("BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitOr")),
    *(f"ReplaceComparisonOperator_{swap}" for swap in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *(f"ReplaceComparisonOperator_{swap}" for swap in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Invert"),
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer"),
    *("RemoveDecorator", "ZeroIterationForLoop"),
)

_PROVIDED = provider.OperatorProvider()

#: Name to operator.
OPERATORS: dict[str, Operator] = {
    **{name: _PROVIDED[name]() for name in _KEPT},
    **{operator.__name__: operator() for operator in (DropStatement, PlainAssignment, OtherWord, UnhandledError)},
}
