"""
What the command prints: text that a terminal shows and does not obey, aligned tables, JSON.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final, TextIO

import msgspec

from webhookrx.diagnostics import ERROR, Finding
from webhookrx.message.escapes import escape, without_misleading

DONE: Final = 0
FAILED: Final = 1

_BESIDE: Final = 60
"""Columns of a long text that are shown on either side of a caret."""


def safe(text: str) -> str:
    """Return a text that a terminal shows and does not obey."""
    return escape(text).encode("utf-8", "backslashreplace").decode()


def print_json(out: TextIO, facts: Any, indent: int = 0) -> None:
    """Print a value as JSON, on one line unless it is indented."""
    # The encoder escapes C0; what is left stands in strings, where an escape means the same.
    encoded = msgspec.json.encode(facts)
    if indent:
        encoded = msgspec.json.format(encoded, indent=indent)
    out.write(without_misleading(encoded).decode() + "\n")


def print_table(out: TextIO, rows: Sequence[Sequence[str]], indent: str = "  ") -> None:
    """Print rows with their columns below each other; the texts are made safe."""
    for line in table(rows, indent):
        print(line, file=out)


def print_findings(out: TextIO, findings: Iterable[Finding]) -> None:
    """Print findings, each on a line."""
    for finding in findings:
        print(safe(str(finding)), file=out)


def findings_facts(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings for JSON."""
    return [msgspec.structs.asdict(finding) for finding in findings]


def tally(findings: Sequence[Finding]) -> str:
    """Return how many there are, such as C{1 error, 2 warnings}."""
    errors = sum(finding.severity == ERROR for finding in findings)
    return f"{counted(errors, 'error')}, {counted(len(findings) - errors, 'warning')}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as C{1 rule} and C{1,000 hosts}."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shortened(text: str, longest: int) -> str:
    """Return a text without what is behind so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def table(rows: Sequence[Sequence[str]], indent: str = "  ") -> Iterator[str]:
    """Yield lines with the columns of the rows below each other. The texts are made safe."""
    shown = [[safe(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip_longest(*shown, fillvalue="")]
    for row in shown:
        cells = [cell + " " * (column - width(cell)) for cell, column in zip(row, widths, strict=False)]
        yield (indent + "  ".join(cells)).rstrip()


def pointed_at(text: str, column: int) -> tuple[str, str]:
    """
    Return a text, made safe, and the line that goes below it, with a caret under one of its columns. Of a long text it
    is the part around the caret.

    @param column: counted from 1.
    """
    before, after = safe(text[: column - 1]), safe(text[column - 1 :])
    if len(before) > _BESIDE:
        before = f"…{before[-_BESIDE:]}"
    if len(after) > _BESIDE:
        after = f"{after[:_BESIDE]}…"
    return before + after, " " * width(before) + "^"


def width(text: str) -> int:
    """Return how many columns a printable text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)
