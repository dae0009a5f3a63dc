"""
The position in a file of a place in the text of a scalar: past quotes, escapes, indents and folded lines.

The text is made again from the file, character by character. Where it differs from that of the parser, for example with
an indentation indicator, the position is that of the scalar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from webhookrx.diagnostics import Position
from webhookrx.typed_yaml.nodes import ScalarNode

#: A character of the text, and its position in the file.
_PlacedChar: TypeAlias = "tuple[str, Position]"

_LONGEST: Final = 128 * 1024
"""Characters of a text in which positions are found; queries and programs are no longer."""

_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""Line ends of YAML 1.1, by which the parser counts."""

_KEPT: Final = re.compile("[\u2028\u2029]")
"""Those of them that a block keeps."""

_ANCHOR: Final = re.compile(r"&\S+[ \t]*")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_PIECES: Final = {'"': re.compile(_ESCAPE.pattern + "|.", re.DOTALL), "'": re.compile("''|."), "": re.compile(".")}
_NAMED: Final = dict(zip('0abtnvfre"/\\N_LP \t', '\0\a\b\t\n\v\f\r\x1b"/\\\x85\xa0\u2028\u2029 \t', strict=True))


class TextPositions:
    """
    Positions in the texts of one file. Those of the last text are cached: a long text may have very many mistakes.
    """

    def __init__(self, text: str) -> None:
        self._lines = _BREAK.split(text)
        """As the marks of the parser count them."""
        self._scalar: ScalarNode | None = None
        self._placed: list[_PlacedChar] | None = None

    def position(self, scalar: ScalarNode, line: int, column: int) -> Position:
        """Return the position in the file of a line and column, from 1, of the text of a scalar."""
        start = _behind_anchor(self._lines, scalar.position)
        own = scalar.text.split("\n")
        line = min(line, len(own))
        column = min(column, len(own[line - 1]) + 1)
        if scalar.style == "|":
            if _KEPT.search(scalar.text):
                return start
            return _in_literal(self._lines, start.line, own, line, column) or start
        offset = sum(len(each) + 1 for each in own[: line - 1]) + column - 1
        placed = self._characters(start, scalar)
        if placed is None:
            return start
        if offset < len(placed):
            return placed[offset][1]
        if not placed:
            return Position(start.line, start.column + len(scalar.style))
        last = placed[-1][1]
        return Position(last.line, last.column + 1)

    def _characters(self, start: Position, scalar: ScalarNode) -> list[_PlacedChar] | None:
        """Return the characters of a text with their positions; None when these are unknown."""
        if scalar is not self._scalar and len(scalar.text) <= _LONGEST:
            folded, lines = scalar.style == ">", self._lines
            placed = list(_folded(lines, start.line, scalar.end.line) if folded else _flow(lines, start, scalar))
            text = "".join(character for character, _ in placed)
            self._scalar = scalar
            self._placed = placed if text.rstrip("\n") == scalar.text.rstrip("\n") else None
        return self._placed if scalar is self._scalar else None


def _behind_anchor(lines: Sequence[str], position: Position) -> Position:
    """Return the beginning of a scalar, behind its anchor."""
    row, column = position.line - 1, position.column - 1
    anchor = _ANCHOR.match(lines[row], column)
    if anchor is None:
        return position
    column = anchor.end()
    while row + 1 < len(lines) and (not lines[row][column:].strip() or lines[row][column:].lstrip().startswith("#")):
        row += 1
        column = len(lines[row]) - len(lines[row].lstrip())
    return Position(row + 1, column + 1)


def _in_literal(lines: Sequence[str], header: int, own: list[str], line: int, column: int) -> Position | None:
    for raw, text in zip(lines[header:], own, strict=False):
        if text:
            indent = len(raw) - len(text)
            return Position(header + line, column + indent) if raw.endswith(text) else None
    return Position(header + line, column)


def _folded(lines: Sequence[str], header: int, end: int) -> Iterator[_PlacedChar]:
    """Yield the characters of a folded block (YAML 1.1, 9.1.2), indented as its first line with text."""
    rows = [(number, raw) for number, raw in enumerate(lines[header:end], header + 1)]
    indent = next((len(raw) - len(raw.lstrip(" ")) for _, raw in rows if raw.strip()), 0)
    breaks: list[Position] = []
    above: bool | None = None
    for number, raw in rows:
        text = raw[indent:]
        if text and (raw[:indent].strip() or not text):
            return
        if text:
            deeper = text[0] in " \t"
            if above is None or above or deeper:
                yield from (("\n", position) for position in breaks)
            elif len(breaks) == 1:
                yield " ", breaks[0]
            else:
                yield from (("\n", position) for position in breaks[1:])
            yield from ((character, Position(number, indent + at)) for at, character in enumerate(text, 1))
            breaks, above = [], deeper
        breaks.append(Position(number, len(raw) + 1))


def _flow(lines: Sequence[str], start: Position, scalar: ScalarNode) -> Iterator[_PlacedChar]:
    """Yield the characters of plain or quoted text (YAML 1.1, 9.1.1)."""
    quote = len(scalar.style)
    breaks: list[Position] = []
    for number in range(start.line, scalar.end.line + 1):
        raw = lines[number - 1]
        begin = start.column - 1 + quote if number == start.line else len(raw) - len(raw.lstrip(" \t"))
        end = scalar.end.column - 1 - quote if number == scalar.end.line else len(raw.rstrip(" \t"))
        if begin < end or number in (start.line, scalar.end.line):
            if len(breaks) == 1:
                yield " ", breaks[0]
            yield from (("\n", position) for position in breaks[1:])
            breaks = []
        goes_on = scalar.style == '"' and number < scalar.end.line and _ends_escaped(raw[begin:end])
        yield from _line(raw, begin, end - goes_on, number, scalar.style)
        if not goes_on:
            breaks.append(Position(number, end + 1))


def _ends_escaped(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _line(raw: str, begin: int, end: int, number: int, style: str) -> Iterator[_PlacedChar]:
    for piece in _PIECES[style].finditer(raw, begin, end):
        character = piece[0][0]
        if style == '"' and character == "\\" and len(piece[0]) > 1:
            code = piece[1] or piece[2] or piece[3]
            character = chr(int(code, 16)) if code else _NAMED.get(piece[4], piece[4])
        yield character, Position(number, piece.start() + 1)
