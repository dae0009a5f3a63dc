"""
Bodies in which a name stands twice in an object: what is verified of one may not be what is stored of it.

Who reads JSON takes the last of two members of one name, or the first, or both (RFC 8259 section 4). Where a signature
covers a body as a whole, its sender has written both. Where it covers some members alone, anyone can put others of
their names before them.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.errors import BAD_SIGNATURE
from webhookrx.senders.signatures.outcome import Unverified
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.yield_point import PIECE, yield_point

_MANY: Final = 1_000
"""Objects and arrays that are counted at once."""


REPEATED: Final = Unverified(BAD_SIGNATURE, "A name stands twice in the body, of which only some members are signed.")


def is_ambiguous(request: SignedRequest) -> bool:
    """Tell the same of the body of a request, which is JSON."""
    return has_repeated_members(request.document, request.body)


def has_repeated_members(document: Any, body: bytes) -> bool:
    """
    Tell whether an object in a body has two members of one name, with yield points.

    @param document: the value of the body.
    @param body: strict JSON. Outside of its strings, a colon stands for each member, which the value has once.
    """
    return _colons(body) != _members(document)


def _members(document: Any) -> int:
    found = seen = 0
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            found += len(value)
            waiting += [each for each in value.values() if type(each) is dict or type(each) is list]
        elif type(value) is list:
            waiting += [each for each in value if type(each) is dict or type(each) is list]
        seen += 1
        if not seen % _MANY:
            yield_point()
    return found


def _colons(body: bytes) -> int:
    found = inside = start = 0
    while start < len(body):
        piece = body[start : start + PIECE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # it ends within an escape
            piece = body[start : start + PIECE + 1]
        start += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        found += b"".join(parts[inside::2]).count(b":")
        inside ^= (len(parts) - 1) & 1
        yield_point()
    return found
