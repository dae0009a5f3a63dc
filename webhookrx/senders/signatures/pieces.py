"""
Digests of long texts, in pieces, with yield points between them: no text of a request holds others up.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from typing import Protocol

from webhookrx.yield_point import PIECE, yield_point


class Context(Protocol):
    """A digest in the making, as of C{hashlib}."""

    def update(self, data: bytes | memoryview, /) -> object:
        """Take in bytes."""

    def digest(self) -> bytes:
        """Return the digest of all so far."""


def pieces_of(data: bytes) -> Iterator[bytes | memoryview]:
    """Yield bytes in pieces, with a yield point before each but the first."""
    if len(data) <= PIECE:
        yield data
        return
    view = memoryview(data)
    for start in range(0, len(data), PIECE):
        if start:
            yield_point()
        yield view[start : start + PIECE]


def feed(contexts: Sequence[Context], data: bytes) -> None:
    """Give bytes to digests."""
    if len(data) <= PIECE:
        for context in contexts:
            context.update(data)
        return
    for piece in pieces_of(data):
        for context in contexts:
            context.update(piece)


def hmac_of(key: bytes, digest: str, *texts: bytes) -> bytes:
    """
    Return the HMAC of texts, one behind the other.

    @param digest: the name of a hash.
    """
    if sum(map(len, texts)) <= PIECE:
        return hmac.digest(key, b"".join(texts), digest)
    context = hmac.new(key, digestmod=digest)
    for text in texts:
        feed((context,), text)
    yield_point()
    return context.digest()
