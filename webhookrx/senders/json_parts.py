"""
Takes one object or array of JSON apart into its members or elements, each as the bytes that were sent.

Nothing in them is made a value. Reading takes a few nanoseconds a byte where there are few values; where there are
many, each bracket, comma and string costs a fraction of a microsecond, with yield points between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from webhookrx.intake.json_body import MAX_DEPTH, MAX_ELEMENTS, count_separators, json_or_missing
from webhookrx.message.fields import MISSING
from webhookrx.yield_point import PIECE, yield_point

MAX_TOKENS: Final = 2_500_000
"""Brackets, commas and strings in JSON that is looked at one by one: a third of a second for each million."""

MAX_MEMBERS: Final = 10_000
"""Members of an object that is taken apart."""

#: A string, or a bracket or comma outside of strings; a quote alone begins a string that is longer or has no end.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.){0,1000}+"|[\[\]{},"]', re.DOTALL)
_IN_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.){0,1000}+', re.DOTALL)
NAME: Final = re.compile(rb'("(?:[^"\\]++|\\.)*+")[ \t\r\n]*:', re.DOTALL)
_BLANKS: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_QUOTE, _COMMA = b'",'
_OPENING: Final = b"[{"
_CLOSING: Final = b"]}"

#: Tokens between two yield points.
_FEW_TOKENS: Final = 500


class NotOfThisForm(ValueError):
    """Bytes are not the JSON that is looked for."""


class TooManyParts(ValueError):
    """There are more parts than may be, or more than L{MAX_TOKENS}."""


class _MemberName:
    """The name of a member, which is equal to no other, so that none replaces another."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _named(kind: type[Any], text: str) -> Any:
    return kind(text)


_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_object: Final = msgspec.json.Decoder(dict[_MemberName, msgspec.Raw], dec_hook=_named).decode
_text: Final = msgspec.json.Decoder(str).decode
_any: Final = msgspec.json.Decoder(msgspec.Raw).decode


def without_mark(body: bytes) -> bytes:
    """Return JSON without a byte order mark before it (RFC 8259 section 8.1)."""
    return body.removeprefix(_BOM)


def elements(raw: bytes, most: int) -> list[bytes]:
    """
    Return the elements of an array.

    @raise NotOfThisForm: it is not an array of JSON.
    @raise TooManyParts: there are more than C{most}.
    """
    if raw[:1] != b"[":
        raise NotOfThisForm
    light = _decoded(_array, raw) if _is_light(raw) else None
    found = [_element(part) for part in _scanned(raw, most)] if light is None else [bytes(each) for each in light]
    if len(found) > most:
        raise TooManyParts
    return found


def members(raw: bytes) -> list[tuple[str, bytes]]:
    """
    Return the members of an object, in order, of equal names each.

    @raise NotOfThisForm: it is not an object of JSON, or has more than L{MAX_MEMBERS}.
    @raise TooManyParts: there are more than L{MAX_TOKENS}.
    """
    if raw[:1] != b"{":
        raise NotOfThisForm
    light = _decoded(_object, raw) if _is_light(raw) else None
    if light is None:
        found = [_member(part) for part in _scanned(raw, MAX_MEMBERS)]
    else:
        found = [(name.text, bytes(value)) for name, value in light.items()]
    if len(found) > MAX_MEMBERS:
        raise NotOfThisForm
    return found


def text_of(raw: bytes) -> str:
    """
    Return the text that a string of JSON is.

    @raise NotOfThisForm: it is not one.
    """
    text = _decoded(_text, raw)
    if text is None:
        text = json_or_missing(raw)
    if not isinstance(text, str):
        raise NotOfThisForm
    return text


def documents(body: bytes, most: int) -> tuple[list[bytes], bytes]:
    """
    Return objects and arrays that stand one after another, with or without white space between them; and what is left
    once something is neither.

    @raise TooManyParts: there are more than C{most}.
    """
    found: list[bytes] = []
    start = 0
    for end in _ends(body):
        document = body[start:end].strip(_BLANKS)
        try:
            _element(document)
        except NotOfThisForm:
            break
        found.append(document)
        if len(found) > most:
            raise TooManyParts
        start = end
    return found, body[start:].strip(_BLANKS)


def _is_light(raw: bytes) -> bool:
    """Tell whether there are few values in some JSON."""
    return len(raw) <= MAX_ELEMENTS or count_separators(raw, MAX_ELEMENTS) <= MAX_ELEMENTS


def _decoded(decode: Any, raw: bytes) -> Any:
    """
    Return what a decoder makes of JSON; None if that has escapes of half a character, which RFC 8259 allows.

    @raise NotOfThisForm: it is not JSON, or not what is wanted.
    """
    if len(raw) > PIECE:
        yield_point()
    try:
        return decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        if b"\\u" in raw:
            return None
        raise NotOfThisForm from None


def tokens(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield the brackets and commas of JSON, and the first quotes of its strings, each with its place."""
    find = _TOKEN.search
    place = number = 0
    while (token := find(body, place)) is not None:
        number += 1
        if number % _FEW_TOKENS == 0:
            yield_point()
            if number > MAX_TOKENS:
                raise TooManyParts
        start, place = token.span()
        yield body[start], start
        if place == start + 1 and body[start] == _QUOTE:
            place = _end_of_string(body, place)


def _end_of_string(body: bytes, place: int) -> int:
    while (rest := _IN_STRING.match(body, place)) is not None and rest.end() > place:
        place = rest.end()
        yield_point()
    return place + 1


def _scanned(raw: bytes, most: int) -> Iterator[bytes]:
    """
    Yield what stands between the commas of an object or array, at most one more than C{most}.

    @raise NotOfThisForm: it has no end, goes on after it, or nests deeper than L{MAX_DEPTH}.
    """
    depth = 0
    start = 1
    for sign, place in tokens(raw):
        if sign in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                break
        elif sign in _CLOSING:
            depth -= 1
            if not depth:
                last = raw[start:place].strip(_BLANKS)
                if raw[place + 1 :].strip(_BLANKS) or sign != raw[0] + 2:
                    raise NotOfThisForm
                if last or start > 1:
                    yield last
                return
        elif sign == _COMMA and depth == 1:
            yield raw[start:place].strip(_BLANKS)
            start = place + 1
            most -= 1
            if most < 0:
                return
    raise NotOfThisForm


def _ends(body: bytes) -> Iterator[int]:
    """Yield where objects and arrays end that stand one after another."""
    depth = 0
    end = 0
    for sign, place in tokens(body):
        if not depth and (sign not in _OPENING or body[end:place].strip(_BLANKS)):
            return
        if sign in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                break
        elif sign in _CLOSING:
            depth -= 1
            if not depth:
                end = place + 1
                yield end


def _element(part: bytes) -> bytes:
    """
    Return an element.

    @raise NotOfThisForm: it is not JSON. Of one with many values that shows once somebody reads it.
    """
    if _is_light(part) and _decoded(_any, part) is None and json_or_missing(part) is MISSING:
        raise NotOfThisForm
    return part


def _member(part: bytes) -> tuple[str, bytes]:
    found = NAME.match(part)
    if found is None:
        raise NotOfThisForm
    return text_of(found[1]), _element(part[found.end() :].strip(_BLANKS))
