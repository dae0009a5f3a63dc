"""
A message: name-value pairs in the order in which they were set, and the moment it was received.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

#: What a pair holds. C{msgspec.Raw} is the exact JSON text of a number, or of an array, in UTF-8 on one line. Lists
#: and dicts are JSON that was not flattened and may hold numbers as C{Raw} too. Strings never hold lone surrogates, so
#: that they always encode.
Value: TypeAlias = "str | int | bool | msgspec.Raw | list[Value] | dict[str, Value] | None"


class Message(msgspec.Struct, gc=False):
    """
    One log message.

    @ivar values: name to value. Hard macros that the receiver set (C{SOURCEIP}, C{RCPTID}, …) are among them; those
        that follow from others (C{DATE}, C{PRI}, …) are not: L{webhookrx.message.macros} computes them.
    @ivar received: nanoseconds since the epoch, wall clock.
    @ivar line: what L{webhookrx.message.encoders.encode_line} returns for it, if it was made with that; then its values
        don't change.
    """

    values: dict[str, Value]
    received: int
    line: bytes | None = None

    def text_of(self, macro: str) -> str | None:
        """
        Return what a macro stands for, if that is a text which is known without a look at everything else; None where
        L{webhookrx.message.macros.macro_value} has to decide.

        @param macro: no alias.
        """
        value = self.values.get(macro)
        return value if type(value) is str else None
