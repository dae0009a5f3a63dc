"""
The query of a request, C{a=1&b=2}, as names and texts.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from webhookrx.errors import BAD_ENCODING, BAD_REQUEST, RequestRefused

MAX_PARAMETERS: Final = 1000
"""The most that a query may hold: each becomes a name-value pair."""


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
    pairs = [pair for pair in query.split(b"&") if pair]
    if len(pairs) > MAX_PARAMETERS:
        raise RequestRefused(BAD_REQUEST, f"The query holds more than {MAX_PARAMETERS} parameters.")
    for pair in pairs:
        raw_name, _, raw_value = pair.partition(b"=")
        name, value = _decode(raw_name), _decode(raw_value)
        earlier = values.get(name)
        if earlier is None:
            values[name] = value
        elif isinstance(earlier, list):
            earlier.append(value)
        else:
            values[name] = [earlier, value]
    return values


def _decode(raw: bytes) -> str:
    if b"+" in raw:
        raw = raw.replace(b"+", b" ")
    if b"%" in raw:
        raw = unquote_to_bytes(raw)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestRefused(BAD_ENCODING) from None
