"""
What is signed, byte for byte: texts with the parts of a request in braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from webhookrx.senders.locator import HEADER_NAME, LocatorError, parse_pointer
from webhookrx.senders.signatures.places import pointed_text
from webhookrx.senders.signatures.signed_request import SignedRequest

_PIECES: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<place>[^{}]*)\}|(?P<plain>[^{}]+)|(?P<lone>[{}])")

#: Returns the bytes of a part; None when the request has none.
Part: TypeAlias = Callable[[SignedRequest], bytes | None]

_INSIDE: Final = ("body", "wire", "form:", "/")
_COVERING: Final = frozenset({"body", "wire", "body:sha256", "body:crc32", "form:sorted"})

_FIXED: Final[dict[str, Part]] = {
    "body": lambda request: request.body,
    "wire": lambda request: request.wire,
    "body:sha256": SignedRequest.sha256,
    "body:crc32": SignedRequest.crc32,
    "url": lambda request: request.url,
    "target": lambda request: request.target,
    "method": lambda request: request.head.method,
    "form:sorted": SignedRequest.sorted_fields,
    "secret": lambda request: request.secret,
}


class SignedText:
    """
    A text with parts of a request.

    @ivar text: as it is written in the definition.
    @ivar places: what stands in braces, in order.
    @ivar binds_body: whether a change of the body changes it.
    @ivar begins_with_body: whether nothing stands before it.
    @ivar ends_with_body: whether nothing stands behind it.
    @ivar streams: whether the unpacked body is part of it once, and nothing else of the body: then it is all known but
        the body before the body comes.
    """

    __slots__ = (
        "_after",
        "_before",
        "begins_with_body",
        "binds_body",
        "ends_with_body",
        "places",
        "streams",
        "text",
    )

    def __init__(self, text: str) -> None:
        """@raise LocatorError: braces, or what stands in them, are not written as they should be."""
        self.text = text
        pieces: list[tuple[str, bytes | Part]] = []
        for found in _PIECES.finditer(text):
            if found["lone"]:
                raise LocatorError("A brace that stands for itself is written twice.", found.start() + 1)
            if found["place"] is None:
                pieces.append(("", (found["plain"] or found["brace"][0]).encode()))
                continue
            try:
                pieces.append((found["place"], part_at(found["place"])))
            except LocatorError as error:
                raise LocatorError(str(error), found.start() + 1 + error.column) from None
        self.places = tuple(place for place, _ in pieces if place)
        inside = [place for place in self.places if place.startswith(_INSIDE)]
        self.binds_body = not _COVERING.isdisjoint(inside)
        self.streams = inside == ["body"]
        parts = [part for _, part in pieces]
        cut = [place for place, _ in pieces].index("body") if self.streams else len(parts)
        self._before = parts[:cut]
        self._after = parts[cut + 1 :]
        self.begins_with_body = not self._before
        self.ends_with_body = not self._after

    def names(self, kind: str) -> list[str]:
        """Return the names of a kind of places, such as C{item}."""
        return [place.removeprefix(f"{kind}:") for place in self.places if place.startswith(f"{kind}:")]

    def before(self, request: SignedRequest) -> bytes | None:
        """Return what stands before the body, or all of it unless it L{streams}; None when the request lacks a part."""
        return _joined(self._before, request)

    def after(self, request: SignedRequest) -> bytes | None:
        """Return what stands behind the body, nothing unless it L{streams}; None when the request lacks a part."""
        return _joined(self._after, request)

    def whole(self, request: SignedRequest) -> bytes | None:
        """Return all of it; None when the request lacks a part."""
        before, after = self.before(request), self.after(request)
        if before is None or after is None:
            return None
        return before + request.body + after if self.streams else before


def _joined(parts: list[bytes | Part], request: SignedRequest) -> bytes | None:
    rendered: list[bytes] = []
    for part in parts:
        piece = part if isinstance(part, bytes) else part(request)
        if piece is None:
            return None
        rendered.append(piece)
    return b"".join(rendered)


def part_at(place: str) -> Part:
    """
    Return what reads a part of a request.

    @raise LocatorError: there is no such part.
    """
    if place in _FIXED:
        return _FIXED[place]
    kind, colon, name = place.partition(":")
    if place.startswith("/"):
        steps = parse_pointer(place)
        if "*" in steps:
            raise LocatorError("What is signed is one value: * can't be in it.")
        return lambda request: pointed_text(request.document, steps)
    if not colon or not name:
        raise LocatorError(_ALLOWED)
    if kind == "header":
        if not HEADER_NAME.fullmatch(name):
            raise LocatorError("header: is followed by the name of a header.", len("header:") + 1)
        header = name.lower().encode("ascii")
        return lambda request: request.header(header)
    if kind == "item":
        item = name.encode()
        return lambda request: request.items.get(item)
    readers: dict[str, Callable[[SignedRequest], bytes | None]] = {
        "query": lambda request: request.parameter(name),
        "form": lambda request: request.field(name),
        "setting": lambda request: request.setting(name),
    }
    if kind not in readers:
        raise LocatorError(_ALLOWED)
    return readers[kind]


_ALLOWED: Final = (
    "Braces hold one of "
    + ", ".join(sorted(_FIXED))
    + ", form:NAME, item:NAME, header:NAME, query:NAME, setting:NAME, /A/JSON/POINTER."
)
