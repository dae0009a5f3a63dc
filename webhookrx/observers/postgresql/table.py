"""
The table that the postgresql observer fills: its columns, the row of a message in them, and the table's DDL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from webhookrx.message.encoders import encode_line
from webhookrx.message.macros import isodate, macro_value, value_text
from webhookrx.message.message import Message
from webhookrx.message.template import Template
from webhookrx.yield_point import PIECE, encode_utf_8, yield_point

#: Returns what a column holds of a message, as the text format of COPY has it.
RenderColumn: TypeAlias = Callable[[Message], bytes]

_TEXTS: Final = frozenset({"text", "character varying", "character", "name", "citext"})

STANDARD_COLUMNS: Final = ("id", "received", "source", "host", "message")
"""What a column may hold without a template; one of the same name holds it by itself."""

LONGEST_NAME: Final = 63
"""Bytes of an identifier: C{NAMEDATALEN - 1}. PostgreSQL cuts longer ones, so that two could become one."""

_NULL: Final = rb"\N"
#: What the text format of COPY does not take as it is; NUL, which a text can't hold at all, is among it.
_UNSAFE: Final = re.compile(rb"[\\\t\n\r\0]")
_ESCAPES: Final = {b"\\": rb"\\", b"\t": rb"\t", b"\n": rb"\n", b"\r": rb"\r", b"\0": rb"\\x00"}


class MessageColumn(NamedTuple):
    """
    A column that the observer fills.

    @ivar holds: one of L{STANDARD_COLUMNS}, or a template.
    @ivar type: as our DDL has it.
    @ivar fits: names of types that take any message, without their length; None where that is the operator's matter.
    """

    name: str
    holds: str
    type: str
    fits: frozenset[str] | None
    render: RenderColumn


@dataclass(frozen=True, slots=True)
class MessageTable:
    """
    A table.

    @ivar schema: None to have the server look for the name along its C{search_path}.
    @ivar unique: the columns by which a row is known: no second one with the same values is stored. None to store rows
        whatever is there.
    """

    schema: str | None
    name: str
    columns: tuple[MessageColumn, ...]
    unique: tuple[str, ...] | None

    @property
    def identifier(self) -> str:
        """The name as SQL has it, in quotes."""
        own = quote_name(self.name)
        return own if self.schema is None else f"{quote_name(self.schema)}.{own}"

    @property
    def names(self) -> str:
        """The columns as SQL lists them."""
        return ", ".join(quote_name(column.name) for column in self.columns)

    def encode(self, message: Message) -> bytes:
        """
        Return a message as a row of C{COPY … FROM STDIN} in text format, with its line end.

        Every text is taken: a NUL becomes C{\\x00}, and what is missing or empty NULL.
        """
        return b"\t".join([column.render(message) for column in self.columns]) + b"\n"

    def ddl(self) -> str:
        """Return the statement that makes the table where there is none."""
        width = max(len(quote_name(column.name)) for column in self.columns)
        lines = [f"    {quote_name(column.name):{width}} {column.type}" for column in self.columns]
        if self.unique:
            lines.append(f"    PRIMARY KEY ({', '.join(map(quote_name, self.unique))})")
        return f"CREATE TABLE IF NOT EXISTS {self.identifier} (\n" + ",\n".join(lines) + "\n)"

    def misfit(self, types: Mapping[str, str]) -> str | None:
        """
        Tell why no message fits into the table, as a clause; None when that is not known.

        @param types: the names of its columns, and of their types.
        """
        for column in self.columns:
            found = types.get(column.name)
            if found is None:
                return f"the table has no column {column.name!r}; add it, or leave it out of columns="
            if column.fits is not None and found.partition("(")[0] not in column.fits:
                return f"column {column.name!r} is of a type that does not take every message; {column.type} does"
        return None


def quote_name(name: str) -> str:
    """Return an identifier as SQL has it, in quotes."""
    return '"' + name.replace('"', '""') + '"'


def parse_columns(text: str, identify: Callable[[Message], str], *, own_id: bool) -> tuple[MessageColumn, ...]:
    """
    Read a list of columns with commas: C{id,received,…} for those that have their name from what they hold,
    C{NAME=id} and the like for others, and C{NAME=TEMPLATE}.

    @param identify: returns the id of a message.
    @param own_id: C{identify} is the operator's, who may want another type than text.
    @raise ValueError: it is none; the text says what is allowed.
    """
    columns: list[MessageColumn] = []
    for item in text.split(","):
        name, sign, what = item.strip().partition("=")
        if not name or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
            raise ValueError(f"{item!r} begins with no column name, of 1 to {LONGEST_NAME} bytes")
        if any(column.name == name for column in columns):
            raise ValueError(f"column {name!r} is there twice")
        columns.append(_column(name, what if sign else name, identify, own_id=own_id))
    return tuple(columns)


def _column(name: str, what: str, identify: Callable[[Message], str], *, own_id: bool) -> MessageColumn:
    if what == "id":
        return MessageColumn(name, what, "text", None if own_id else _TEXTS, lambda message: _field(identify(message)))
    if what in _STANDARD:
        return MessageColumn(name, what, *_STANDARD[what])
    if "$" not in what:
        raise ValueError(
            f"{what!r} is neither one of {', '.join(STANDARD_COLUMNS)} nor a template; another column is "
            "NAME=TEMPLATE, such as program=${PROGRAM}"
        )
    template = Template.parse(what)
    return MessageColumn(name, what, "text", None, lambda message: _field(template.render(message)))


def _field(text: str) -> bytes:
    """Return a text as a field of COPY."""
    if not text:
        return _NULL
    raw = encode_utf_8(text)
    return raw if _UNSAFE.search(raw) is None else _in_pieces(raw, _escaped)


def _escaped(piece: bytes) -> bytes:
    return _UNSAFE.sub(lambda found: _ESCAPES[found[0]], piece)


def _line(message: Message) -> bytes:
    # JSON on one line: of all that COPY minds it holds backslashes only.
    return _in_pieces(encode_line(message)[:-1], lambda piece: piece.replace(b"\\", rb"\\"))


def _in_pieces(raw: bytes, function: Callable[[bytes], bytes]) -> bytes:
    if len(raw) <= PIECE:
        return function(raw)
    pieces: list[bytes] = []
    for start in range(0, len(raw), PIECE):
        pieces.append(function(raw[start : start + PIECE]))
        yield_point()
    return b"".join(pieces)


def _macro(name: str) -> RenderColumn:
    return lambda message: _field(value_text(macro_value(name, message)))


#: Type in our DDL, types that take every message, and how it is rendered.
_STANDARD: Final[Mapping[str, tuple[str, frozenset[str], RenderColumn]]] = {
    "received": (
        "timestamptz",
        frozenset({"timestamp with time zone"}),
        lambda message: isodate(message.received).encode(),
    ),
    "source": ("text", _TEXTS, _macro("SOURCE")),
    "host": ("text", _TEXTS, _macro("HOST")),
    "message": ("json", frozenset({"json", "jsonb", *_TEXTS}), _line),
}


def parse_unique(text: str, columns: Sequence[MessageColumn]) -> tuple[str, ...] | None:
    """
    Read C{dedup}: C{yes} for the column that holds the id, C{no}, or the columns by which a row is known.

    @raise ValueError: a column is unknown, or none holds the id; the text says what is allowed.
    """
    if text == "no":
        return None
    own = next((column.name for column in columns if column.holds == "id"), None)
    if own is None:
        raise ValueError("no column holds the id, by which a message that comes twice is known; it takes no then")
    if text == "yes":
        return (own,)
    names = [name.strip() for name in text.split(",")]
    known = [column.name for column in columns]
    if not all(name in known for name in names) or len({*names}) != len(names) or own not in names:
        raise ValueError(f"it takes yes, no, or with commas {own} and others of the columns {', '.join(known)}")
    return tuple(names)
