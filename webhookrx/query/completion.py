"""
What may stand at a place of a query that is being written: a field, an operator, a value, or what joins two terms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from webhookrx.query.predicates import IN
from webhookrx.query.query_lexer import MAX_LENGTH, QueryError, QueryToken, tokens

Expects: TypeAlias = Literal["field", "operator", "value", "joint"]

_REST: Final = re.compile(r"[\w@.:/+%?$^#*-]*")
"""The rest of a word behind the cursor."""

_OPERATOR_REST: Final = re.compile(r"[=!~<>*]*")
_QUOTES: Final = "'\"`"


class Expected(NamedTuple):
    """
    What may stand at a place.

    @ivar kind: C{joint}: AND, OR or a closing parenthesis.
    @ivar start: where the word begins that is being written, and that is to be replaced.
    @ivar end: where it ends.
    @ivar begun: what is written of it, without a quote in front.
    @ivar field: the field that the operator or value is about.
    @ivar levels: how many parentheses are open.
    """

    kind: Expects
    start: int
    end: int
    begun: str
    field: str = ""
    levels: int = 0


def expected_at(text: str, at: int) -> Expected | None:
    """
    Return what may stand at a place of a query; None where nothing can be told, as something before it is wrong.

    @param at: characters before it.
    """
    if not 0 <= at <= len(text) <= MAX_LENGTH:
        return None
    before: list[QueryToken] = []
    start, begun, rest = at, "", _REST
    try:
        for token in tokens(text[:at]):
            if token.kind != "end":
                before.append(token)
    except QueryError as error:
        # The rest of the text is in quotes, or begins with an operator of which a part is written.
        start = error.column - 1
        if text[start] in _QUOTES:
            begun, rest = text[start + 1 : at], re.compile(re.escape(text[start]) + "?")
        elif text[start:at] == "!":
            begun, rest = "!", _OPERATOR_REST
        else:
            return None
    else:
        if before and before[-1].end == at and before[-1].kind not in ("text", "(", ")", ","):
            last = before.pop()
            start, begun = last.start, text[last.start : at]
            rest = _OPERATOR_REST if last.kind == "operator" else _REST
    after = rest.match(text, at)
    end = at if after is None else after.end()
    state = _state(before)
    if state is None:
        return None
    kind, field, levels = state
    return Expected(kind, start, end, begun, field, levels)


def _state(before: Sequence[QueryToken]) -> tuple[Expects, str, int] | None:
    """Return what is expected after some tokens, the last field, and how many parentheses are open."""
    state, field, levels = "field", "", 0
    last: QueryToken | None = None
    for token in before:
        kind = token.kind
        is_word = kind in ("word", "text")
        if state == "field" and kind == "(":
            levels += 1
        elif state == "field" and is_word:
            state, field = "operator", token.text
        elif state == "operator" and is_word and last is not None and last.end == token.start:
            field += token.text
        elif state == "operator" and kind == "operator":
            state = "value"
        elif state == "operator" and kind == "EXISTS":
            state = "joint"
        elif state == "operator" and kind == "word" and token.text.upper() == IN:
            state = "in"
        elif state == "in" and kind == "(":
            state = "among"
        elif state == "among" and is_word:
            state = "next"
        elif state == "next" and kind in (",", ")"):
            state = "among" if kind == "," else "joint"
        elif state == "value" and is_word:
            state = "joint"
        elif state == "joint" and kind in ("AND", "OR", ","):
            state = "field"
        elif state == "joint" and kind == ")" and levels:
            levels -= 1
        elif not (kind == "NOT" and state in ("field", "operator")):
            return None
        last = token
    expected: dict[str, Expects] = {
        "field": "field",
        "operator": "operator",
        "value": "value",
        "among": "value",
        "joint": "joint",
    }
    found = expected.get(state)
    return None if found is None else (found, field, levels)
