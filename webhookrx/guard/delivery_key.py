"""
The key of a delivery in the idempotency window.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

KEY_SIZE: Final = 16
"""Bytes of a key."""


def delivery_key(source: str, delivery_id: str, body_digest: bytes = b"") -> bytes:
    """
    Return the key of a delivery.

    @param source: the name of the source; the same delivery at another source is another one.
    @param delivery_id: what the sender calls the delivery, whole.
    @param body_digest: the SHA-256 of the body, unpacked, unless a signature was verified: then whoever guesses the id
        of another's delivery can't have that one taken for known. Empty for a delivery that was verified.
    """
    name = source.encode()
    # The length of the name divides it from the id, and the digest at the end has one length or none.
    head = b"%d %d " % (len(name), len(body_digest))
    return blake2b(
        head + name + delivery_id.encode("utf-8", "surrogatepass") + body_digest, digest_size=KEY_SIZE
    ).digest()
