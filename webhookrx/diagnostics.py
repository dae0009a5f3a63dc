"""
What is wrong with a file that people write: a stable code, where, and one sentence.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

ERROR: Final = "error"
WARNING: Final = "warning"

_SHOWN: Final = 80
"""Characters of a text that a sentence quotes at most."""


class Position(msgspec.Struct, frozen=True, order=True):
    """
    A place in a file; both count from 1, as editors do. 0 stands for the file as a whole.
    """

    line: int = 0
    column: int = 0


class Code(NamedTuple):
    """
    A kind of mistake.

    @ivar word: stable, such as C{port-clash}.
    @ivar severity: L{ERROR} or L{WARNING}.
    @ivar meaning: one sentence for the docs.
    """

    word: str
    severity: str
    meaning: str


class Finding(msgspec.Struct, frozen=True):
    """
    One thing that is wrong, or probably not meant.

    @ivar code: a stable word, such as C{port-clash}; all of them are in the docs.
    @ivar severity: L{ERROR} or L{WARNING}.
    @ivar field: what it is about, such as C{connector_rules[0].port}; empty for the file as a whole.
    @ivar sentence: what is wrong and what is allowed; it quotes no secret.
    """

    code: str
    severity: str
    file: str
    line: int
    column: int
    field: str
    sentence: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        about = f"{self.field}: " if self.field else ""
        return f"{place}: {self.severity}: {about}{self.sentence} [{self.code}]"


def has_errors(findings: Iterable[Finding]) -> bool:
    """Tell whether one of them is an error."""
    return any(finding.severity == ERROR for finding in findings)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in the order of the file, each once."""
    return sorted(dict.fromkeys(findings), key=lambda finding: (finding.line, finding.column))


def quoted(text: str, most: int | None = _SHOWN) -> str:
    """
    Return a text in quotes, fit for one line: control characters escaped.

    @param most: of a text that is longer than so many characters the rest is left out; None: it is shown whole.
    """
    shown = text if most is None or len(text) <= most else text[: most - 1] + "…"
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown) + '"'


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question that names the nearest known word; nothing when none is near."""
    folded = {name.lower(): name for name in sorted(known, reverse=True)}
    near = difflib.get_close_matches(word[:_SHOWN].lower(), folded, n=1)
    return f"Did you mean {quoted(folded[near[0]])}?" if near else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a sentence that names the nearest known word, or all of them when none is near."""
    names = sorted(known)
    return nearest(word, names) or f"Known are {', '.join(names)}."
