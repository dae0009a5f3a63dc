"""
What an HTTP request with messages holds, and what its answer means for them.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple

from webhookrx.settings import MiB

#: A header field: its name and its value.
Header = tuple[bytes, bytes]

FORMATS = ("ndjson", "json", "each", "lines")

_GZIP_LEVEL = 6

#: Statuses about the messages themselves: malformed, too large, unprocessable.
_REFUSALS = frozenset({400, 413, 422})

#: What an operator can check.
_HINTS = {
    401: "look at token_file= and headers_file=",
    403: "look at token_file=, headers_file= and cert_file=",
    404: "look at the URL",
    405: "look at the URL and method=",
    406: "look at headers_file=",
    410: "look at the URL",
    411: "something between the two ends needs a length where one was sent",
    415: "look at format=, content_type= and gzip=",
}
_REDIRECTION_HINT = "redirections are not followed; write the URL that they lead to"

EXCERPT = 200
"""The most characters of a body that an error quotes."""


class RequestBody(NamedTuple):
    """
    The body of one request.

    @ivar content: its bytes, packed if the format says so.
    @ivar key: identifies its messages; None when equal bodies may hold different messages.
    """

    content: bytes
    key: str | None


@dataclass(frozen=True, slots=True)
class BodyFormat:
    """
    How bodies are made of lines.

    @ivar name: one of L{FORMATS}.
    @ivar messages: the most messages in one body.
    @ivar size: the most bytes in one body before packing; a larger message goes alone.
    @ivar distinct: no two messages make the same line.
    """

    name: str = "ndjson"
    messages: int = 500
    size: int = MiB
    gzip: bool = False
    distinct: bool = True

    def cut(self, lines: Sequence[bytes]) -> Iterator[tuple[int, int]]:
        """
        Yield where each request begins and ends. This depends only on the lines from there on, so that messages that
        are retried in a later batch are cut as before and keep their key.
        """
        begin = size = 0
        for place, line in enumerate(lines):
            if place - begin >= self.messages or (place > begin and size + len(line) > self.size):
                yield begin, place
                begin, size = place, 0
            size += len(line)
        if begin < len(lines):
            yield begin, len(lines)

    def make(self, lines: Sequence[bytes]) -> RequestBody:
        """
        Join lines, each with its line end, to a body; for C{each}, a single one.

        The key depends on nothing but the messages and their order.
        """
        content = self._join(lines)
        key = hashlib.sha256(content).hexdigest() if self.distinct else None
        if self.gzip:
            # Without a time: a body that is sent again is the same to the last byte.
            content = gzip.compress(content, _GZIP_LEVEL, mtime=0)
        return RequestBody(content, key)

    def _join(self, lines: Sequence[bytes]) -> bytes:
        if self.name == "json":
            return b"[" + b",".join(line[:-1] for line in lines) + b"]"
        if self.name == "each":
            return lines[0][:-1]
        return b"".join(lines)


class NoAnswer(Exception):
    """No whole answer came; whether the server has the messages is unknown. The text says why, in one line."""


class Verdict(Enum):
    """What an answer means for the messages of its request."""

    STORED = "stored"
    """The server has all of them."""
    REFUSED = "refused"
    """At least one of them is refused for good."""
    LATER = "later"
    """The server, or a person, may remove the cause: the same request is retried."""


@dataclass(frozen=True, slots=True)
class HTTPAnswer:
    """
    An answer of a server.

    @ivar retry_after: the C{Retry-After} as received, if the request is to be retried.
    @ivar body: the beginning of the body.
    """

    status: int
    retry_after: str | None = None
    body: bytes = b""

    @property
    def verdict(self) -> Verdict:
        """What it means for the messages."""
        if 200 <= self.status < 300:
            return Verdict.STORED
        return Verdict.REFUSED if self.status in _REFUSALS else Verdict.LATER

    def describe(self, *, excerpt: bool = True) -> str:
        """
        Return one line without control characters.

        @param excerpt: quote the beginning of the body. Not after a secret was sent: some servers repeat requests, in
            any encoding.
        """
        text = f"it answers {self.status} {_phrase(self.status)}".rstrip()
        hint = _REDIRECTION_HINT if 300 <= self.status < 400 else _HINTS.get(self.status)
        if hint is not None:
            text += f" ({hint})"
        words = _excerpt(self.body) if excerpt else ""
        return f"{text}: {words}" if words else text


def _phrase(status: int) -> str:
    """Return the standard phrase; the one on the wire may be any text."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _excerpt(body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "backslashreplace").split())
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:EXCERPT])
    return f"{shown}…" if len(text) > EXCERPT else shown
