"""
Macros of a message of the router form: other names for some of its fields.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, NamedTuple

from webhookrx.expressions.mistakes import ExpressionError
from webhookrx.findings import Position
from webhookrx.message.fields import Path


class Macro(NamedTuple):
    """A macro: whether it may be set, and the field that it stands for."""

    settable: bool
    path: Path


MACROS: Final = {
    "HOST": Macro(True, ("meta", "host", "name")),
    "MESSAGE": Macro(True, ("log", "body")),
    "MSG": Macro(True, ("log", "body")),
    "SOURCEIP": Macro(False, ("meta", "connection", "src_ip")),
    "SOURCEPORT": Macro(False, ("meta", "connection", "src_port")),
    "TRANSPORT": Macro(False, ("meta", "connection", "transport")),
}
"""Hard macros, in the collector's words, can't be set."""


def macro_path(name: str, position: Position) -> Macro:
    """
    Return what a macro stands for.

    @raise ExpressionError: there is no such macro.
    """
    macro = MACROS.get(name)
    if macro is None:
        close = get_close_matches(name[:40].upper(), MACROS, 1)
        hint = f"Did you mean ${close[0]}?" if close else f"There are {', '.join(MACROS)}; other fields have a path."
        raise ExpressionError(f"There is no macro '{name[:40]}' here. {hint}", position.line, position.column)
    return macro
