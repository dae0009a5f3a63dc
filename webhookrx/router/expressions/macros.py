"""
Macros of a message of the router form: other names for some of its fields.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, NamedTuple

from webhookrx.diagnostics import Position
from webhookrx.message.fields import Path
from webhookrx.message.macros import HARD_MACROS
from webhookrx.router.expressions.mistakes import ExpressionError


class Macro(NamedTuple):
    """A macro: whether it may be set, and the field that it stands for."""

    settable: bool
    path: Path


_HOST: Final = Macro(True, ("meta", "host", "name"))
_BODY: Final = Macro(True, ("log", "body"))

MACROS: Final = {
    "HOST": _HOST,
    "FULLHOST": _HOST,
    "MESSAGE": _BODY,
    "MSG": _BODY,
    "MSGONLY": _BODY,
    "SOURCEIP": Macro(False, ("meta", "connection", "src_ip")),
    "SOURCEPORT": Macro(False, ("meta", "connection", "src_port")),
    "TRANSPORT": Macro(False, ("meta", "connection", "transport")),
}
"""Hard macros, in the collector's words, can't be set."""

_ATTRIBUTES: Final = "webhook."
"""What names of pairs begin with that are attributes here."""


def macro_path(name: str, position: Position) -> Path:
    """
    Return what a macro stands for: a field, or for the name of a pair that is none a local variable, whose name begins
    with a dollar.

    @raise ExpressionError: it is a hard macro that messages of the router form don't have.
    """
    if name in MACROS:
        return MACROS[name].path
    if name.startswith(_ATTRIBUTES):
        return ("log", "attributes", name)
    if name in HARD_MACROS:
        close = get_close_matches(name[:40].upper(), MACROS, 1)
        hint = f"Did you mean ${close[0]}?" if close else f"There are {', '.join(MACROS)}; other fields have a path."
        raise ExpressionError(f"There is no macro '{name[:40]}' here. {hint}", position.line, position.column)
    return (f"${name}",)


def macro_settable(name: str) -> bool:
    """Tell whether a program may set a macro."""
    return name not in MACROS or MACROS[name].settable
