"""
The query of a request, C{a=1&b=2}, as names and texts.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from webhookrx.errors import BAD_ENCODING, BAD_REQUEST, RequestRefused
from webhookrx.yield_point import PIECE, yield_point

MAX_PARAMETERS: Final = 1000
"""The most that a query may hold: each becomes a name-value pair."""

_PERCENT: Final = ord("%")


def parse_query(query: bytes) -> dict[str, str | list[str]]:
    """
    Read a query as HTML forms write it: pairs apart by C{&} only, C{+} for a blank, percent-encoded UTF-8.

    A percent sign that two hexadecimal digits do not follow stands for itself. A pair without C{=} has an empty value.

    @param query: raw, without the question mark.
    @return: name to value, in the order of first appearance; a name that is repeated has the list of its values.
    @raise RequestRefused: C{BAD_ENCODING} when a name or value is not UTF-8 once decoded, C{BAD_REQUEST} when there
        are more than L{MAX_PARAMETERS}.
    """
    values: dict[str, str | list[str]] = {}
    if not query:
        return values
    pairs = query.replace(b"+", b" ").split(b"&")
    if len(pairs) > MAX_PARAMETERS and len(pairs) - pairs.count(b"") > MAX_PARAMETERS:
        raise RequestRefused(BAD_REQUEST, f"The query holds more than {MAX_PARAMETERS} parameters.")
    for pair in pairs:
        if not pair:
            continue
        raw_name, _, raw_value = pair.partition(b"=")
        try:
            name = (_unquoted(raw_name) if _PERCENT in raw_name else raw_name).decode()
            value = (_unquoted(raw_value) if _PERCENT in raw_value else raw_value).decode()
        except UnicodeDecodeError:
            raise RequestRefused(BAD_ENCODING) from None
        earlier = values.get(name)
        if earlier is None:
            values[name] = value
        elif isinstance(earlier, list):
            earlier.append(value)
        else:
            values[name] = [earlier, value]
    return values


def _unquoted(raw: bytes) -> bytes:
    """Undo percent-encoding, with a yield point after each piece of a long text: that of a form."""
    if len(raw) <= PIECE:
        return unquote_to_bytes(raw)
    pieces = []
    start = 0
    while start < len(raw):
        end = start + PIECE
        begun = raw.rfind(b"%", end - 2, end)  # an escape that the end would cut in two
        end = end if begun < 0 else begun
        pieces.append(unquote_to_bytes(raw[start:end]))
        start = end
        yield_point()
    return b"".join(pieces)
