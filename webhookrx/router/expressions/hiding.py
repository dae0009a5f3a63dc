"""
Whether a program removes or masks part of a message, so that its failure may let a secret through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from webhookrx.router.expressions.program_tree import Assign, Block, Call, Literal, MemberAccess, Name, Node

_FUNCTIONS: Final = frozenset(["unset", "regexp_subst", "md5", "sha1", "sha256", "sha512", "digest"])
_MASK: Final = re.compile(r"[\W_]*|.*(?:redact|mask|hidden|remove|filter|secret|conceal|anonym|x{3}).*", re.IGNORECASE)
_LONGEST: Final = 64
_COVER: Final = re.compile(r"([*#•xX])\1\1")
"""Signs that cover part of a text."""


def is_mask(value: Any) -> bool:
    """Tell whether a value is a mask: C{null}, empty, signs only, or a word such as C{redacted}."""
    if value is None:
        return True
    return isinstance(value, str) and len(value) <= _LONGEST and _MASK.fullmatch(value) is not None


def hides(block: Block) -> bool:
    """Tell whether statements remove fields, or replace texts by masks or digests."""
    return any(
        _call_hides(node) if isinstance(node, Call) else isinstance(node, Assign) and _assignment_hides(node)
        for node in _nodes((block,))
    )


def _call_hides(call: Call) -> bool:
    if call.name == "str_replace":
        return any(isinstance(each, Literal) and is_mask(each.value) for each in call.arguments[2:3])
    return call.name in _FUNCTIONS


def _assignment_hides(assign: Assign) -> bool:
    root: Any = assign.target
    while isinstance(root, MemberAccess):
        root = root.of
    if not isinstance(root, Name) or root.name != "log":
        return False
    value = assign.value
    if isinstance(value, Literal):
        return is_mask(value.value)
    texts = (node.value for node in _nodes((value,)) if isinstance(node, Literal))
    return any(isinstance(text, str) and _COVER.search(text) is not None for text in texts)


def _nodes(pending: tuple[Any, ...]) -> Iterator[Node]:
    """Yield the nodes of trees, in no order."""
    waiting = [*pending]
    while waiting:
        each = waiting.pop()
        if isinstance(each, tuple):
            waiting.extend(each)
        elif isinstance(each, Node):
            yield each
            waiting.extend(getattr(each, name) for name in each.__struct_fields__)
