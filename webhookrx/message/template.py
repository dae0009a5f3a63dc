"""
Text with macros: parsed once, rendered for each message.

  - C{$NAME} or C{${NAME}}: the value of a macro or pair; the short form takes ASCII letters, digits and underscores
  - C{${NAME:-default}}: the same, or the default when the value is missing or empty
  - C{$(format-json)}: all pairs as one flat JSON object, as in a JSON line
  - C{$$}: a dollar sign
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from webhookrx.message.encoders import encode_object
from webhookrx.message.escapes import escape
from webhookrx.message.macros import canonical, macro_value, value_text
from webhookrx.message.message import Message
from webhookrx.yield_point import encode_utf_8


class _MacroUse(NamedTuple):
    name: str
    default: str


#: Literal text, a macro, or a function of the message.
_Piece: TypeAlias = "str | _MacroUse | Callable[[Message], str]"


def _format_json(message: Message) -> str:
    return encode_object(message).decode()


FUNCTIONS: Final[dict[str, Callable[[Message], str]]] = {"format-json": _format_json}
"""Template functions by name; each returns one line."""

#: What follows a dollar sign. A name may hold anything that a JSON key may, save a colon and braces.
_AFTER_DOLLAR = re.compile(
    r"(?P<dollar>\$)|(?P<bare>\w+)|\{(?P<name>[^{}:]*)(?P<rest>[^{}]*)\}|\((?P<call>[^()]*)\)", re.ASCII
)

_LINE_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def _as_is(text: str) -> str:
    return text


def _parse_macro(name: str, rest: str) -> _MacroUse:
    """@param rest: what stands between the name and the brace: nothing, or C{:-} and a default."""
    if not name:
        raise ValueError("a macro name is missing between ${ and }")
    if rest and not rest.startswith(":-"):
        raise ValueError("only :- and a default may follow the name, such as ${NAME:-default}")
    if "$" in rest:
        raise ValueError("a default is plain text, without macros")
    return _MacroUse(name, rest[2:])


def _parse_call(call: str) -> Callable[[Message], str]:
    name, *arguments = call.split() or [""]
    if name not in FUNCTIONS:
        raise ValueError(f"there is no template function {name!r}; there is {', '.join(FUNCTIONS)}")
    if arguments:
        raise ValueError(f"{name} takes no arguments")
    return FUNCTIONS[name]


def _parse_piece(text: str, after: int) -> tuple[_Piece, int]:
    """
    Parse what begins with a dollar sign.

    @param after: where the dollar sign ends.
    @return: the piece, and where it ends.
    """
    match = _AFTER_DOLLAR.match(text, after)
    if match is None:
        opening = text[after : after + 1]
        if opening == "{":
            raise ValueError("${ is not closed by }, or holds another brace")
        if opening == "(":
            raise ValueError("$( is not closed by ), or holds another parenthesis")
        raise ValueError("after $ comes a name, {, ( or another $; write $$ for a dollar sign")
    if match["dollar"]:
        return "$", match.end()
    if match["bare"]:
        return _MacroUse(match["bare"], ""), match.end()
    if match["call"] is not None:
        return _parse_call(match["call"]), match.end()
    return _parse_macro(match["name"], match["rest"]), match.end()


class Template:
    """
    A parsed template. It is immutable and renders in any thread.

    @ivar text: as the user wrote it.
    """

    __slots__ = ("_only", "_pieces", "text")

    def __init__(self, text: str, pieces: tuple[_Piece, ...]) -> None:
        """Use L{parse}."""
        self.text = text
        self._pieces = pieces
        # The usual key or label is one macro.
        only = pieces[0] if len(pieces) == 1 else None
        self._only = canonical(only.name) if isinstance(only, _MacroUse) else None

    @classmethod
    def parse(cls, text: str) -> Template:
        """
        @raise ValueError: one sentence that begins with the column, counted from 1, and says what is wrong there.
        """
        if line_break := _LINE_BREAK.search(text):
            raise ValueError(f"column {line_break.start() + 1}: a template is one line; its line end is added for it")
        pieces: list[_Piece] = []
        position = 0
        while (dollar := text.find("$", position)) >= 0:
            pieces.append(text[position:dollar])
            try:
                piece, position = _parse_piece(text, dollar + 1)
            except ValueError as error:
                raise ValueError(f"column {dollar + 1}: {error}") from None
            pieces.append(piece)
        pieces.append(text[position:])
        return cls(text, tuple(piece for piece in pieces if piece))

    @property
    def has_macros(self) -> bool:
        """Whether its text depends on the message."""
        return any(not isinstance(piece, str) for piece in self._pieces)

    def render(self, message: Message) -> str:
        """Return the text with each value as it is, line ends and all."""
        if self._only is not None and (text := message.text_of(self._only)):
            return text
        return "".join(self._parts(message, _as_is))

    def render_by(self, message: Message, clean: Callable[[str], str]) -> str:
        """
        Return the text with each value as C{clean} makes it.

        @param clean: is not applied to defaults, nor to what template functions return.
        """
        return "".join(self._parts(message, clean))

    def render_line(self, message: Message) -> bytes:
        """
        Return the text in UTF-8 as exactly one line, line feed included, whatever bytes a sender chose.

        In values, control characters, line and paragraph separators, bidi controls and lone surrogates come out as
        escapes: C{\\n}, C{\\x1b}, C{\\u2028}. A backslash is left alone. C{$(format-json)} has JSON's own escapes.
        """
        return encode_utf_8(*self._parts(message, escape), "\n")

    def _parts(self, message: Message, clean: Callable[[str], str]) -> list[str]:
        parts = []
        for piece in self._pieces:
            if isinstance(piece, str):
                parts.append(piece)
            elif isinstance(piece, _MacroUse):
                parts.append(clean(value_text(macro_value(piece.name, message))) or piece.default)
            else:
                parts.append(piece(message))
        return parts
