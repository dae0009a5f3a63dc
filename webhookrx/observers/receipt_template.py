"""
Names made of a template and the date of receipt, such as C{logs-${SOURCE}-%Y.%m.%d}.

The date is that of receipt, in UTC, so that a message that is tried again has the same name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from webhookrx.message.macros import NANOSECONDS
from webhookrx.message.message import Message
from webhookrx.message.template import Template

DATE_CODES: Final = "YmdHjGV"
"""What may follow C{%}, with the meaning that C{strftime} gives it; C{%%} is a percent sign."""

#: What begins with a percent sign, outside of macros.
_SPECIAL: Final = re.compile(r"\$\$|\$\{[^{}]*\}|%(?P<code>.?)", re.DOTALL)


class ReceiptTemplate:
    """
    A parsed name. It is immutable and renders in any thread.

    @ivar text: as the user wrote it.
    @ivar is_constant: whether all messages have the same name.
    """

    __slots__ = ("_pieces", "is_constant", "text")

    def __init__(self, text: str, pieces: tuple[Template | str, ...]) -> None:
        """Use L{parse}."""
        self.text = text
        self._pieces = pieces
        self.is_constant = not any(isinstance(piece, str) or piece.has_macros for piece in pieces)

    @classmethod
    def parse(cls, text: str) -> ReceiptTemplate:
        """
        @raise ValueError: a macro or date is wrong; the text says what is allowed.
        """
        Template.parse(text)  # a problem is told by its column in the whole text
        pieces: list[Template | str] = []
        plain, end = "", 0
        for found in _SPECIAL.finditer(text):
            plain += text[end : found.start()]
            end = found.end()
            code = found["code"]
            if code is None or code == "%":
                plain += "%" if code else found[0]
                continue
            if not code or code not in DATE_CODES:
                codes = ", ".join(f"%{each}" for each in DATE_CODES)
                raise ValueError(
                    f"column {found.start() + 1}: behind % comes a part of the date, {codes}, or another %"
                )
            pieces += (Template.parse(plain), f"%{code}")
            plain = ""
        pieces.append(Template.parse(plain + text[end:]))
        return cls(text, tuple(pieces))

    def render(self, message: Message, clean: Callable[[str], str]) -> str:
        """
        Return the name of a message.

        @param clean: makes the value of a macro fit for the name.
        """
        second = message.received // NANOSECONDS
        return "".join(
            _date(piece, second) if isinstance(piece, str) else piece.render_by(message, clean)
            for piece in self._pieces
        )

    def sample(self) -> str:
        """Return a name with nothing in the place of each macro, for checks."""
        return self.render(Message({}, 0), lambda value: "")


# Messages come many to a second.
@lru_cache(maxsize=64)
def _date(code: str, second: int) -> str:
    return time.strftime(code, time.gmtime(second))
