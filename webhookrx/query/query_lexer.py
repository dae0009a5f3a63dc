"""
Splits a query into tokens: words, quoted texts, operators and signs, each with its column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from webhookrx.errors import WebhookrxError
from webhookrx.message.escapes import escape
from webhookrx.message.fields import Path
from webhookrx.query.predicates import OPERATORS


class QueryError(WebhookrxError):
    """
    A text is not a query.

    @ivar problem: sentences for its author: the mistake, and what is allowed. They may quote the text.
    @ivar column: the place of the mistake in characters, from 1; a line end counts as one, see L{line_and_column}.
    """

    def __init__(self, problem: str, column: int) -> None:
        super().__init__(f"column {column}: {problem}")
        self.problem = problem
        self.column = column


def line_and_column(text: str, column: int) -> tuple[int, int]:
    """Return the line of a column of a text with several lines, and the column in that line, both from 1."""
    before = text[: column - 1]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


MAX_LENGTH: Final = 16 * 1024
"""Characters of a query."""

KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "EXISTS"})

_TOKEN: Final = re.compile(
    r"""
    (?P<blank> \s+ )
    | (?P<word> [\w@.:/+%?$^#-] [\w@.:/+%?$^#*-]* )
    | (?P<operator> [=!~<>*]+ )
    | (?P<sign> [(),] )
    | (?P<quote> ['"`] )
    """,
    re.VERBOSE,
)
_PLAIN: Final = re.compile(r"[A-Za-z0-9@._:/-]+")
"""What never needs quotes. A word may hold more, where nothing else could be meant."""

_NOT_IN_QUOTES: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL: Final = (
    "Line ends and control characters can't stand in quotes; a regular expression may say them, such as =~ 'a\\nb'."
)
_SLIPS: Final = {"&": "AND", "|": "OR"}
_QUOTED: Final = 60
_ALL_OPERATORS: Final = " ".join(OPERATORS)


class QueryToken(NamedTuple):
    """
    A piece of a query.

    @ivar kind: C{word}, C{text} (in quotes), C{operator}, C{end}, a sign such as C{(}, or a keyword such as C{AND}, in
        upper case.
    @ivar text: without quotes and escapes.
    @ivar start: the index of its first character.
    @ivar end: the index after its last one.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def column(self) -> int:
        """The place of its first character, from 1."""
        return self.start + 1


def tokens(query: str) -> Iterator[QueryToken]:
    """
    Yield the tokens of a query; the last is C{end}.

    @raise QueryError: the next characters are not a token.
    """
    at = end = 0
    while at < len(query):
        found = _TOKEN.match(query, at)
        if found is None:
            raise QueryError(_no_token(query[at]), at + 1)
        kind, text = str(found.lastgroup), found[0]
        at = found.end()
        if kind == "blank":
            continue
        if kind == "quote":
            token = _quoted(query, found.start())
        elif kind == "operator" and text not in OPERATORS:
            raise QueryError(_no_operator(text), found.start() + 1)
        else:
            if kind == "sign" or text.upper() in KEYWORDS:
                kind = text.upper()
            token = QueryToken(kind, text, found.start(), at)
        at = end = token.end
        yield token
    yield QueryToken("end", "", end, end)


def written(text: str) -> str:
    """Return a name or a value as a query has it: in quotes where it needs them."""
    if _PLAIN.fullmatch(text) and text.upper() not in KEYWORDS and text.upper() != "@ANY":
        return text
    return _in_quotes(text)


def _in_quotes(text: str) -> str:
    quote = next((quote for quote in "'\"`" if quote not in text), "'")
    return quote + re.sub(rf"{quote}|\\(?=[\\{quote}]|\Z)", r"\\\g<0>", text) + quote


def written_field(path: Path) -> str:
    """Return a field as a query has it: a name with dots in it has quotes of its own."""
    if not any("." in name for name in path):
        return written(".".join(path))
    return ".".join(name if _PLAIN.fullmatch(name) and "." not in name else _in_quotes(name) for name in path)


def shortened(text: str) -> str:
    """Return a text for an error: cut short, and with nothing that misleads a reader."""
    return escape(text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…")


def _quoted(query: str, start: int) -> QueryToken:
    quote, text, at = query[start], [], start + 1
    stop = re.compile(rf"[\\{quote}]")
    while found := stop.search(query, at):
        text.append(query[at : found.start()])
        at = found.end()
        if found[0] == quote:
            if bad := _NOT_IN_QUOTES.search(query, start, at):
                raise QueryError(_CONTROL, bad.start() + 1)
            return QueryToken("text", "".join(text), start, at)
        if query[at : at + 1] in ("\\", quote):
            text.append(query[at])
            at += 1
        else:
            text.append("\\")
    raise QueryError(f"This quote is never closed: a second {quote} is missing.", start + 1)


def _no_token(char: str) -> str:
    if char in _SLIPS:
        return f'There is no operator "{char}": write {_SLIPS[char]}, or put a value that holds it in quotes.'
    if not char.isprintable():
        return f"The character U+{ord(char):04X} can't stand in a query."
    return f"The character {char} needs quotes around the name or value that holds it; quotes are ' \" and `."


def _no_operator(run: str) -> str:
    if run == "!":
        return 'There is no operator "!" alone: write NOT, or one of ' + _ALL_OPERATORS + "."
    if run.startswith("*"):
        return 'A value that begins with "*" needs quotes; "contains" is written =* value.'
    return (
        f'There is no operator "{shortened(run)}", only {_ALL_OPERATORS}; '
        "a value that begins with a character of these needs quotes."
    )
