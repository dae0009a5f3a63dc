"""
A field of a document or a message that is not as it was.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

MISSING: Final = msgspec.UNSET
"""In place of a value that is not there."""

_LONGEST: Final = 200
"""Characters of a value that are shown."""

_encode: Final = msgspec.json.Encoder().encode


class FieldChange(msgspec.Struct, frozen=True):
    """
    A field that is not as it was.

    @ivar field: as people write it, such as C{labels.team} and C{log.attributes["webhook.headers"]}.
    @ivar before: left out of JSON when the field was not there.
    @ivar after: left out of JSON when it is not there any more.
    """

    field: str
    before: Any = MISSING
    after: Any = MISSING

    def __str__(self) -> str:
        if self.before is MISSING:
            return f"+ {self.field} = {_shown(self.after)}"
        if self.after is MISSING:
            return f"- {self.field} (was {_shown(self.before)})"
        return f"~ {self.field} = {_shown(self.after)} (was {_shown(self.before)})"


def _shown(value: Any) -> str:
    text = _encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
