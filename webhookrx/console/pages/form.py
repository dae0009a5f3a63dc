"""
Forms: what people send by pages, and the query of a page, with bounds.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from webhookrx.console.api.problems import BAD_CALL, ApiProblem

FORM_TYPE: Final = "application/x-www-form-urlencoded"
_MOST_FIELDS: Final = 2000


class Form:
    """
    The fields of a form, in their order. One that is missing is as one that is empty.

    @param raw: as C{application/x-www-form-urlencoded} (URL standard, section 5.1).
    @raise ApiProblem: it is not UTF-8, or has too many fields.
    """

    def __init__(self, raw: bytes = b"") -> None:
        try:
            self.pairs = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
        except ValueError as error:
            raise ApiProblem(BAD_CALL, "The form is not one of names and values in UTF-8.") from error

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a field without spaces around it; line breaks are C{\\n}."""
        values = self.all(name)
        return values[-1] if values else default

    def raw(self, name: str) -> str:
        """Return the last value of a field as it came: a password may begin or end with a space."""
        return next((value for key, value in reversed(self.pairs) if key == name), "")

    def all(self, name: str) -> list[str]:
        """Return all values of a field, each as L{text} returns it."""
        return [_plain(value) for key, value in self.pairs if key == name]

    def flag(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return any(key == name for key, _ in self.pairs)

    def number(self, name: str, default: int = 0) -> int:
        """
        Return a whole number from 0 on.

        @raise ApiProblem: it is not one.
        """
        text = self.text(name)
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise ApiProblem(BAD_CALL, f"{name} is to be a number.")
        return int(text)


def _plain(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n").strip()
