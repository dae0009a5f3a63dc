"""
A program as tokens: words, numbers, texts and signs, each with its place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NamedTuple

from webhookrx.expressions.limits import MAX_SOURCE
from webhookrx.expressions.mistakes import ExpressionError
from webhookrx.findings import Position

WORD: Final = "word"
INTEGER: Final = "integer"
FLOAT: Final = "float"
TEXT: Final = "text"
MACRO: Final = "macro"
SIGN: Final = "sign"
END: Final = "end"


class Token(NamedTuple):
    """
    A token.

    @ivar kind: one of the words above.
    @ivar text: what it says: a text without quotes and escapes, a macro without C{$} and braces.
    """

    kind: str
    text: str
    position: Position

    def __str__(self) -> str:
        if self.kind == END:
            return "the end"
        return "a text" if self.kind == TEXT else f"'{self.text[:40]}'"


# Possessive, so that no part is read twice, and what is not closed is found in one pass.
_TOKEN: Final = re.compile(
    r"""
    (?P<space>   (?: [ \t\r\n\f\ufeff]++ | \#[^\n]*+ )++ )
    | (?P<float>   [0-9]++ (?: \.[0-9]++ (?: [eE][+-]?[0-9]++ )?+ | [eE][+-]?[0-9]++ ) )
    | (?P<integer> [0-9]++ )
    | (?P<word>    [A-Za-z_][A-Za-z0-9_]*+ )
    | (?P<text>    " (?: [^"\\] | \\. )*+ " | ' (?: [^'\\] | \\. )*+ ' )
    | (?P<macro>   \$ (?: [A-Za-z_][A-Za-z0-9_]*+ | \{ [^{}\n]*+ \} ) )
    | (?P<sign>    === | !== | =\?\? | \?\? | == | != | <= | >= | =~ | !~ | \+= | [-+*/%<>=?:;,.(){}\[\]] )
    """,
    re.VERBOSE | re.DOTALL,
)

_FOREIGN_SIGNS: Final = {
    "??=": "Write =?? to assign what is set and not null, or x = x ?? y to keep a value that is there.",
    ":??": "Members of an object can't be left out with :??; set the field with =?? after it.",
    "..": "Texts can't be cut with '..'; use regexp_search().",
    "&&": "Write and for &&.",
    "||": "Write or for ||.",
    "!": "Write not for !.",
    "`": "Texts stand in single or double quotes.",
}
"""What people try that is no part of the language, the longer first where one begins with the other."""

_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
_TEMPLATE: Final = re.compile(r"\$[A-Za-z_{(]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Source:
    """
    The text of a program, which knows on which line each character is.

    @raise ExpressionError: it is too long, or holds what is no character.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(found.end() for found in re.finditer(r"\n", text[:MAX_SOURCE]))]
        if len(text) > MAX_SOURCE:
            raise ExpressionError(f"The program is longer than {MAX_SOURCE} characters.", 1, 1)
        surrogate = _SURROGATE.search(text)
        if surrogate:
            raise self.error("A lone surrogate is no character.", surrogate.start())

    def position(self, offset: int) -> Position:
        """Return line and column of a character."""
        line = bisect_right(self._lines, offset)
        return Position(line, offset - self._lines[line - 1] + 1)

    def error(self, problem: str, offset: int) -> ExpressionError:
        """Return an error at a character."""
        position = self.position(offset)
        return ExpressionError(problem, position.line, position.column)


def tokenize(text: str) -> list[Token]:
    """
    Take a program apart; the last token is L{END}.

    @raise ExpressionError: something in it is no token.
    """
    source = Source(text)
    tokens = []
    offset = 0
    while offset < len(text):
        found = _TOKEN.match(text, offset)
        _refuse_foreign(source, offset)
        if found is None:
            raise source.error(_no_token(text, offset), offset)
        kind = found.lastgroup or ""
        if kind != "space":
            tokens.append(Token(kind, _said(source, kind, found), source.position(offset)))
        offset = found.end()
        if kind in (INTEGER, FLOAT) and text[offset : offset + 1].isalnum():
            raise source.error("A number ends with a digit.", offset)
    tokens.append(Token(END, "", source.position(len(text))))
    return tokens


def _refuse_foreign(source: Source, offset: int) -> None:
    for sign, problem in _FOREIGN_SIGNS.items():
        if source.text.startswith(sign, offset) and (sign != "!" or source.text[offset + 1 : offset + 2] not in "=~"):
            raise source.error(problem, offset)


def _no_token(text: str, offset: int) -> str:
    if text[offset] in "\"'":
        return "The text that begins here is not closed."
    if text[offset] == "$":
        return "A macro is written $NAME or ${NAME}."
    return f"{text[offset]!a} has no meaning here."


def _said(source: Source, kind: str, found: re.Match[str]) -> str:
    if kind == MACRO:
        return found[0].strip("${}")
    if kind != TEXT:
        return found[0]
    inner = found[0][1:-1]
    template = _TEMPLATE.search(inner) if found[0][0] == '"' else None
    if template:
        raise source.error(
            'Macros in texts are not filled in: write "a " + $HOST, or use single quotes for a plain $.',
            found.start() + 1 + template.start(),
        )

    def unescape(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2]
        if code is None:
            # An unknown one stays as it is, so that "\d" is what a regular expression needs.
            return _ESCAPES.get(escape[3], escape[0])
        if 0xD800 <= int(code, 16) <= 0xDFFF:
            raise source.error("A lone surrogate is no character.", found.start() + 1 + escape.start())
        return chr(int(code, 16))

    return _ESCAPE.sub(unescape, inner)
