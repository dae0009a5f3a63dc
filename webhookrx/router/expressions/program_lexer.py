"""
Splits a program into tokens: words, numbers, texts, patterns and signs, each with its position.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NamedTuple

from webhookrx.diagnostics import Position
from webhookrx.router.expressions.run import MAX_SOURCE, START, ExpressionError

WORD: Final = "word"
INTEGER: Final = "integer"
FLOAT: Final = "float"
TEXT: Final = "text"
TEMPLATE: Final = "template"
PATTERN: Final = "pattern"
MACRO: Final = "macro"
SIGN: Final = "sign"
END: Final = "end"


class ProgramToken(NamedTuple):
    """
    A token.

    @ivar kind: one of the words above.
    @ivar text: a text without quotes and escapes, a macro without C{$} and braces, any other token as it stands.
    """

    kind: str
    text: str
    position: Position

    def __str__(self) -> str:
        if self.kind == END:
            return "the end"
        return "a text" if self.kind in (TEXT, TEMPLATE, PATTERN) else f"'{self.text[:40]}'"


# Possessive, so that no part is read twice, and a text that is not closed is found in one pass.
_TOKEN: Final = re.compile(
    r"""
    (?P<space>   (?: [ \t\r\n\f\ufeff]++ | \#[^\n]*+ | \\\r?\n )++ )
    | (?P<float>   [0-9]++ \.[0-9]++ )
    | (?P<integer> 0x[0-9a-fA-F]++ | [0-9]++ [KkMmGg]?+ [Ii]?+ [Bb]?+ )
    | (?P<word>    [A-Za-z_][A-Za-z0-9_]*+ )
    | (?P<text>    " (?: [^"\\] | \\. )*+ " | ' [^']*+ ' )
    | (?P<macro>   \$ (?: [A-Za-z_][A-Za-z0-9_]*+ | \{ [^{}\n]++ \} ) )
    | (?P<sign>    === | !== | =\?\? | :\?\? | \?\? | == | != | <= | >= | =~ | !~ | \+= | \.\.
                   | [-+*/%<>=?:;,.(){}\[\]] )
    """,
    re.VERBOSE | re.DOTALL,
)
_SLASHED: Final = re.compile(r"/((?:[^/\\\n]|\\.)*+)/")
_OPERANDS: Final = frozenset([FLOAT, INTEGER, TEXT, TEMPLATE, PATTERN, MACRO])
_BEFORE_OPERANDS: Final = frozenset(
    ["not", "and", "or", "in", "eq", "ne", "lt", "le", "gt", "ge", "case", "if", "elif", "else"]
)
"""Words behind which a slash begins a pattern; behind all others it divides."""

_FOREIGN_SIGNS: Final = {
    "??=": "Write =?? to assign what is set and not null, or x = x ?? y to keep a value that is there.",
    "&&": "Write and for &&.",
    "||": "Write or for ||.",
    "!": "Write not for !.",
    "`": "Texts stand in single or double quotes.",
}
"""Signs of other languages, the longer first where one begins with the other."""

_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|o([0-7]{1,3})|(\r?\n)|(.))", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"', "'": "'"}
_FILLED_IN: Final = re.compile(r"\\.|\$(?:\$|\(|[A-Za-z_{])", re.DOTALL)
_NUMBER: Final = re.compile(r"([0-9]+)([KkMmGg]?)([Ii]?)[Bb]?")
_FACTORS: Final = {"": 0, "K": 1, "M": 2, "G": 3}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class ProgramText:
    """
    The text of a program, with the position of each character.

    @raise ExpressionError: the text is too long, or holds a lone surrogate.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(found.end() for found in re.finditer(r"\n", text[:MAX_SOURCE]))]
        if len(text) > MAX_SOURCE:
            raise ExpressionError(f"The program is longer than {MAX_SOURCE} characters.", START)
        surrogate = _SURROGATE.search(text)
        if surrogate:
            raise self.error("A lone surrogate is no character.", surrogate.start())

    def position(self, offset: int) -> Position:
        """Return the position of a character."""
        line = bisect_right(self._lines, offset)
        return Position(line, offset - self._lines[line - 1] + 1)

    def error(self, problem: str, offset: int) -> ExpressionError:
        """Return an error at a character."""
        position = self.position(offset)
        return ExpressionError(problem, position)


def tokenize(text: str) -> list[ProgramToken]:
    """
    Return the tokens of a program; the last is L{END}.

    @raise ExpressionError: something in it is not a token.
    """
    source = ProgramText(text)
    tokens: list[ProgramToken] = []
    offset = 0
    while offset < len(text):
        _refuse_foreign(source, offset)
        found = _SLASHED.match(text, offset) if text[offset] == "/" and not _is_behind_operand(tokens) else None
        if found is not None:
            tokens.append(ProgramToken(PATTERN, found[1].replace("\\/", "/"), source.position(offset)))
            offset = found.end()
            continue
        found = _TOKEN.match(text, offset)
        if found is None:
            raise source.error(_no_token(text, offset), offset)
        kind = found.lastgroup or ""
        if kind != "space":
            tokens.append(_token(source, kind, found))
        offset = found.end()
        if kind in (INTEGER, FLOAT) and text[offset : offset + 1].isalnum():
            raise source.error(_no_number(found[0], text[offset]), offset)
    tokens.append(ProgramToken(END, "", source.position(len(text))))
    return tokens


def integer_of(text: str) -> int:
    """Return the value of an integer as it is written: C{10}, C{0x1f}, C{017}, which is octal, or C{10KiB}."""
    if text.startswith("0x"):
        return int(text, 16)
    found = _NUMBER.fullmatch(text)
    assert found is not None, "the tokenizer takes nothing else"
    digits, unit, binary = found.groups()
    base = 8 if len(digits) > 1 and digits[0] == "0" and not digits.strip("01234567") and not unit else 10
    factor: int = (1024 if binary else 1000) ** _FACTORS[unit.upper()]
    return int(digits, base) * factor


def _is_behind_operand(tokens: list[ProgramToken]) -> bool:
    if not tokens:
        return False
    last = tokens[-1]
    if last.kind == WORD:
        return last.text not in _BEFORE_OPERANDS
    return last.kind in _OPERANDS or last.text in (")", "]", "}")


def _refuse_foreign(source: ProgramText, offset: int) -> None:
    for sign, problem in _FOREIGN_SIGNS.items():
        if source.text.startswith(sign, offset) and (sign != "!" or source.text[offset + 1 : offset + 2] not in "=~"):
            raise source.error(problem, offset)


def _no_token(text: str, offset: int) -> str:
    if text[offset] in "\"'":
        return "The text that begins here is not closed."
    if text[offset] == "$":
        return "A macro is written $NAME or ${NAME}."
    return f"{text[offset]!a} has no meaning here."


def _no_number(number: str, follower: str) -> str:
    if follower in "eE":
        return f"Numbers have no exponent: write {number}000 or {number}000.0 for {number}e3."
    return "A number ends with a digit."


def _token(source: ProgramText, kind: str, found: re.Match[str]) -> ProgramToken:
    position = source.position(found.start())
    if kind == MACRO:
        return ProgramToken(kind, found[0].strip("${}"), position)
    if kind != TEXT:
        return ProgramToken(kind, found[0], position)
    inner = found[0][1:-1]
    if found[0][0] == "'":
        return ProgramToken(TEXT, inner, position)
    for special in _FILLED_IN.finditer(inner):
        if special[0][0] == "$":
            # The parser takes it apart, where a template is wanted.
            return ProgramToken(TEMPLATE, inner, position)
    return ProgramToken(TEXT, unescaped(inner, position), position)


def unescaped(inner: str, position: Position) -> str:
    """
    Return a text in double quotes without its escapes. An unknown escape stays as it is, so that regular expressions
    can have C{"\\d"}.

    @param position: of the text, for an error.
    @raise ExpressionError: an escape stands for no character.
    """

    def unescape(escape: re.Match[str]) -> str:
        if escape[4] is not None:
            return ""
        if escape[5] is not None:
            return _ESCAPES.get(escape[5], escape[0])
        code = int(escape[3], 8) if escape[3] else int(escape[1] or escape[2], 16)
        if 0xD800 <= code <= 0xDFFF:
            raise ExpressionError("A lone surrogate is no character.", position)
        return chr(code)

    return _ESCAPE.sub(unescape, inner)
