"""
The differences between a message before a step and after it, field by field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from webhookrx.management.field_changes import MISSING, FieldChange

_PLAIN: Final = re.compile(r"[A-Za-z0-9_@-]+")
_encode: Final = msgspec.json.Encoder().encode


def differences(before: Any, after: Any, field: str = "") -> Iterator[FieldChange]:
    """Yield the differences in the order of the fields; a new object, or an array, is shown as a whole."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if before is MISSING or after is MISSING or _encode(before) != _encode(after):
            yield FieldChange(field, before, after)
        return
    for name in dict.fromkeys((*before, *after)):
        yield from differences(before.get(name, MISSING), after.get(name, MISSING), _joined(field, name))


def _joined(field: str, name: str) -> str:
    if _PLAIN.fullmatch(name):
        return f"{field}.{name}" if field else name
    return f"{field}[{_encode(name).decode()}]"
