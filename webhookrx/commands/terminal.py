"""
The command line of all subjects: verbs, input from files, and output that a terminal shows but does not obey.
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final, TextIO

import msgspec

from webhookrx.config.files import LARGEST_FILE, read_file
from webhookrx.diagnostics import ERROR, Diagnostic
from webhookrx.errors import ConfigError
from webhookrx.message.escapes import escape, without_misleading
from webhookrx.quantities import counted

Run = Callable[[argparse.Namespace, TextIO, TextIO], int]
"""What does the work: arguments, output and errors to an exit status."""


class Verbs:
    """The verbs of a subject."""

    def __init__(self, subject: argparse.ArgumentParser) -> None:
        self._verbs = subject.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(self, name: str, run: Run, text: str, example: str = "") -> argparse.ArgumentParser:
        """
        Add a verb.

        @param text: what it does, without a capital and a full stop.
        @param example: a command line, for C{--help}.
        @return: the verb's own parser.
        """
        parser: argparse.ArgumentParser = self._verbs.add_parser(name, help=text)
        describe(parser, run, f"{text[0].upper()}{text[1:]}.", example)
        return parser


def describe(parser: argparse.ArgumentParser, run: Run, description: str, example: str) -> None:
    """Say what a verb does, for C{--help}, and what does it."""
    parser.description = description
    if example:
        # A command line that is broken in two can't be copied.
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = f"example:\n  {example}"
    parser.set_defaults(run=run, parser=parser)


STANDARD_INPUT: Final = "-"


def read_input(path: str) -> bytes:
    """
    Return what is in a file, or for C{-} what comes on standard input.

    @raise ConfigError: it can't be read, or is absurdly large; the text names it.
    """
    if path != STANDARD_INPUT:
        return read_file(path)[0]
    content = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ConfigError("Standard input is larger than 16 MiB; that is not the file that was meant.")
    return content


def read_text(path: str) -> str:
    """
    Return the same as text.

    @raise ConfigError: as there, or it is not UTF-8.
    """
    try:
        return read_input(path).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{shown_name(path)} is not UTF-8.") from None


def shown_name(path: str) -> str:
    """Return what a file is called: its path, with escapes for what is no text in it."""
    return "standard input" if path == STANDARD_INPUT else encodable(path)


def encodable(text: str) -> str:
    """Return a word of the command line with escapes for the bytes in it that are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


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


def print_diagnostics(out: TextIO, diagnostics: Iterable[Diagnostic]) -> None:
    """Print what is wrong, each on a line."""
    for each in diagnostics:
        print(safe(str(each)), file=out)


def diagnostic_facts(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Return what is wrong for JSON."""
    return [
        {
            "code": each.code,
            "severity": each.severity,
            "file": each.file,
            "line": each.line,
            "column": each.column,
            "field": each.field,
            "sentence": each.sentence,
        }
        for each in diagnostics
    ]


def tally(diagnostics: Sequence[Diagnostic]) -> str:
    """Return how many there are, such as C{1 error, 2 warnings}."""
    errors = sum(each.severity == ERROR for each in diagnostics)
    return f"{counted(errors, 'error')}, {counted(len(diagnostics) - errors, 'warning')}"


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
