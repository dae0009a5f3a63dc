"""
The differences between a message before a step and after it, field by field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from webhookrx.message.fields import MISSING

_PLAIN: Final = re.compile(r"[A-Za-z0-9_@-]+")
_LONGEST: Final = 200
"""Characters of a value that are shown."""

_encode: Final = msgspec.json.Encoder().encode


class Difference(NamedTuple):
    """
    One field that is not as it was.

    @ivar field: its path, as expressions write it, such as C{log.attributes["webhook.headers"]}.
    @ivar before: its value before; L{MISSING} when it was not there.
    @ivar after: its value now; L{MISSING} when it is not there any more.
    """

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.before is MISSING:
            return f"+ {self.field} = {_shown(self.after)}"
        if self.after is MISSING:
            return f"- {self.field} (was {_shown(self.before)})"
        return f"~ {self.field} = {_shown(self.after)} (was {_shown(self.before)})"


def differences(before: Any, after: Any, field: str = "") -> Iterator[Difference]:
    """Yield the differences in the order of the fields; a new object, or an array, is shown as a whole."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if before is MISSING or after is MISSING or _encode(before) != _encode(after):
            yield Difference(field, before, after)
        return
    for name in dict.fromkeys((*before, *after)):
        yield from differences(before.get(name, MISSING), after.get(name, MISSING), _joined(field, name))


def _joined(field: str, name: str) -> str:
    if _PLAIN.fullmatch(name):
        return f"{field}.{name}" if field else name
    return f"{field}[{_encode(name).decode()}]"


def _shown(value: Any) -> str:
    text = _encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
