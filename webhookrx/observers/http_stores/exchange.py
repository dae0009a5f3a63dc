"""
What goes over HTTP: a request with messages, and an answer with how much of it is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from webhookrx.observers.excerpts import excerpt_of

#: A header field: its name and its value.
Header = tuple[bytes, bytes]


class StoreRequest(NamedTuple):
    """
    One request.

    @ivar content: its body, packed if its header fields say so.
    @ivar headers: its own header fields, beside those of every request.
    @ivar path: path and query; empty for those of the URL.
    """

    content: bytes
    headers: Sequence[Header] = ()
    path: str = ""


class NoAnswer(Exception):
    """No whole answer came; whether the server has the messages is unknown. The text says why, in one line."""


class CutAnswer(Exception):
    """The body of an answer decides, and is longer than what is kept of it: fewer messages make a shorter one."""


class UnreadableAnswer(Exception):
    """The body of an answer decides, and is not what that store answers. The text says so, and quotes nothing."""


class Extent(Enum):
    """How much of the body of an answer is there."""

    WHOLE = "whole"
    LONG = "long"
    """It is longer than what is kept."""
    BROKEN = "broken"
    """The connection or the time ended before it."""


@dataclass(frozen=True, slots=True)
class HTTPAnswer:
    """
    An answer of a server.

    @ivar retry_after: the C{Retry-After} as received, if the request was not successful.
    @ivar beginning: the beginning of the body, for people. What decides by a body takes L{body}.
    @ivar fields: the header fields that the store looks at, by their names in lower case.
    """

    status: int
    retry_after: str | None = None
    beginning: bytes = b""
    extent: Extent = Extent.WHOLE
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        """Whether its status says that the request was successful (2xx)."""
        return 200 <= self.status < 300

    @property
    def body(self) -> bytes:
        """
        The whole body.

        @raise CutAnswer: only its beginning was kept.
        @raise UnreadableAnswer: it did not come to its end.
        """
        if self.extent is Extent.LONG:
            raise CutAnswer(f"its answer is longer than {len(self.beginning)} bytes")
        if self.extent is Extent.BROKEN:
            raise UnreadableAnswer(f"{self.describe()}, but the answer is cut off")
        return self.beginning

    def json(self) -> Any:
        """
        Return the whole body as JSON.

        @raise CutAnswer: only its beginning was kept.
        @raise UnreadableAnswer: it did not come to its end, or is no JSON.
        """
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise UnreadableAnswer(f"{self.describe()}, but not in JSON") from None

    def describe(self, hint: str = "", words: bytes | str = b"") -> str:
        """
        Return one line without control characters.

        @param hint: what an operator can check, or the store's code.
        @param words: what the server says, such as its body; its beginning is quoted. Nothing after a secret was
            sent: some servers repeat requests, in any encoding.
        """
        text = f"it answers {self.status} {_phrase(self.status)}".rstrip()
        if hint:
            text += f" ({hint})"
        quoted = excerpt_of(words)
        return f"{text}: {quoted}" if quoted else text


def _phrase(status: int) -> str:
    """Return the standard phrase; the one on the wire may be any text."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
