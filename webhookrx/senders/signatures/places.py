"""
Places of signatures: headers, a query parameter, or members of the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from webhookrx.intake.head import Head
from webhookrx.senders.locator import HEADER_NAME, LocatorError, element, parse_pointer
from webhookrx.senders.signatures.signed_request import SignedRequest, text_of
from webhookrx.yield_point import yield_point

#: Elements of an array that are looked at in one go.
_SOME: Final = 1_000

MAX_SIGNATURES: Final = 16
"""Signatures of a request that are tried; a request with more has none."""


class SignaturePlace:
    """
    Where signatures are.

    @ivar text: as it is written in the definition.
    @ivar header: the name of the header in lower case, or its beginning; empty for any other place.
    @ivar in_body: whether it is a JSON pointer.
    @ivar has_star: whether it stands for every element of an array.
    """

    __slots__ = ("_beginning", "_parameter", "_steps", "has_star", "header", "in_body", "text")

    def __init__(self, text: str) -> None:
        """@raise LocatorError: it is not such a place."""
        self.text = text
        self.header = b""
        self._beginning = False
        self._parameter = ""
        self._steps: tuple[str, ...] = ()
        self.in_body = text.startswith("/")
        kind, _, name = text.partition(":")
        if self.in_body:
            self._steps = parse_pointer(text)
        elif kind == "header":
            self._beginning = name.endswith("-*")
            plain = name.removesuffix("*") if self._beginning else name
            if not HEADER_NAME.fullmatch(plain) or "*" in plain:
                raise LocatorError(
                    "header: is followed by the name of a header, or a beginning and -*.",
                    len("header:") + 1,
                )
            self.header = plain.lower().encode("ascii")
        elif kind == "query" and name:
            self._parameter = name
        else:
            raise LocatorError(
                "The place of a signature is header:NAME, header:BEGINNING-*, query:NAME or /A/JSON/POINTER."
            )
        self.has_star = "*" in self._steps

    @property
    def only_header(self) -> bytes:
        """The name of the one header that it is, in lower case; empty for any other place."""
        return b"" if self._beginning else self.header

    def is_there(self, request: SignedRequest) -> bool:
        """Tell whether the request has anything at this place, even if that is no signature."""
        if self.in_body:
            return any(value is not None for value in _each(request.document, self._steps))
        if self._parameter:
            return self._parameter in request.query
        return any(self._lines(request.head)) if self._beginning else bool(request.head.values(self.header))

    def values(self, request: SignedRequest) -> list[bytes]:
        """
        Return all texts there, each once: none for a header or parameter that is repeated, or when one of the elements
        that a star stands for has none.
        """
        if self.in_body:
            texts: dict[bytes, None] = {}
            for number, value in enumerate(_each(request.document, self._steps)):
                text = text_of(value)
                if text is None:
                    return []
                texts[text] = None
                if not number % _SOME:
                    yield_point()
            return list(texts)
        if self._beginning:
            return [value for _, value in self._lines(request.head)]
        value = request.parameter(self._parameter) if self._parameter else request.header(self.header)
        return [] if value is None else [value]

    def _lines(self, head: Head) -> Iterator[tuple[bytes, bytes]]:
        return ((name, value) for name, value in head.headers if name.startswith(self.header))


def pointed_text(document: Any, steps: tuple[str, ...]) -> bytes | None:
    """Return the exact text that a pointer without stars leads to; None when there is none."""
    (value,) = _each(document, steps)
    return text_of(value)


def _each(value: Any, steps: tuple[str, ...]) -> Iterator[Any]:
    """Yield what a pointer leads to, for each element on the way; None where that is nothing."""
    for number, step in enumerate(steps):
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is not list:
            value = None
        elif step == "*":
            for each in value:
                yield from _each(each, steps[number + 1 :])
            return
        else:
            value = element(value, step)
    yield value
