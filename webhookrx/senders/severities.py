"""
Severities in the words of senders, mapped to those of the OpenTelemetry log data model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from webhookrx.regex import LinearRegex
from webhookrx.senders.definition import SEVERITIES
from webhookrx.senders.locator import scalar_text

Known: TypeAlias = tuple[int, str]
"""C{severity_number} and C{severity_text}."""

_MAX_LENGTH: Final = 256
"""Characters of a text that are looked at; words and globs are compared with these alone."""

_SYNONYMS: Final = {
    "verbose": "trace",
    "information": "info",
    "informational": "info",
    "ok": "info",
    "none": "info",
    "warning": "warn",
    "err": "error",
    "crit": "critical",
    "fatal": "critical",
    "emerg": "emergency",
    "panic": "emergency",
    "low": "notice",
    "medium": "warn",
    "moderate": "warn",
    "high": "error",
    "major": "error",
    "minor": "warn",
}

USUAL_WORDS: Final[Mapping[str, Known]] = SEVERITIES | {word: SEVERITIES[name] for word, name in _SYNONYMS.items()}
"""What words usually mean, in lower case."""


class SeverityMap:
    """
    What the words of a sender mean.

    @param words: word or glob to the name of a severity, first match wins; what is not in it means what it usually
        does.
    """

    __slots__ = ("_globs", "_words")

    def __init__(self, words: Mapping[str, str]) -> None:
        """@raise KeyError: no severity is called that."""
        self._words: dict[str, tuple[int, Known]] = {}
        self._globs: list[tuple[int, Callable[[str], bool], Known]] = []
        for order, (word, name) in enumerate(words.items()):
            if "*" in word or "?" in word:
                self._globs.append((order, _glob(word), SEVERITIES[name]))
            else:
                self._words.setdefault(word.lower(), (order, SEVERITIES[name]))

    def __call__(self, value: Any) -> Known | None:
        """Return the severity of a value; None when it is unknown."""
        text = scalar_text(value)
        if text is None:
            return None
        word = text[:_MAX_LENGTH].lower()
        order, known = self._words.get(word, _UNKNOWN)
        for place, matches, meaning in self._globs:
            if place > order:
                break
            if matches(word):
                return meaning
        return USUAL_WORDS.get(word) if known is None else known


_UNKNOWN: Final[tuple[float, None]] = (float("inf"), None)


def _glob(text: str) -> Callable[[str], bool]:
    """Return what tells whether a text in lower case matches a glob. The usual ones need no expression."""
    text = text.lower()
    first, *others = text.split("*")
    if "?" not in text and len(others) == 1:
        last = others[0]
        if not last:
            return lambda word: word.startswith(first)
        if not first:
            return lambda word: word.endswith(last)
    if "?" not in text and len(others) == 2 and not first and not others[1]:
        middle = others[0]
        return lambda word: middle in word
    parts = (".*" if each == "*" else "." if each == "?" else re.escape(each) for each in text)
    return LinearRegex(rf"(?s)\A{''.join(parts)}\z").search
