"""
The key of a delivery in the idempotency window.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhookrx.senders.compiled import CompiledSender
    from webhookrx.senders.signatures.verifier import Verifier

KEY_SIZE: Final = 16
"""Bytes of a key."""


def delivery_key(source: str, delivery_id: str, proof: str, body_digest: bytes = b"") -> bytes:
    """
    Return the key of a delivery.

    @param source: the name of the source; the same delivery at another source is another one.
    @param delivery_id: what the sender calls the delivery, whole.
    @param proof: how it was verified, as messages say it; so that what a stranger sends, where that is taken, is never
        the same as what the sender proves.
    @param body_digest: the SHA-256 of the body, unpacked; empty for a delivery whose id is covered by the signature
        that was verified. Else whoever guesses the id of another's delivery, and sends it with a body that he has
        captured or made, would have that one taken for known.
    """
    name, kind = source.encode(), proof.encode()
    # The lengths divide name, proof and id; the digest at the end has one length or none.
    head = b"%d %d %d " % (len(name), len(kind), len(body_digest))
    return blake2b(
        head + name + kind + delivery_id.encode("utf-8", "surrogatepass") + body_digest, digest_size=KEY_SIZE
    ).digest()


def signs_id(sender: CompiledSender, verifier: Verifier | None) -> bool:
    """Tell whether the id of a delivery is one that its signature covers, whatever else a request has."""
    if verifier is None:
        return False
    for place in sender.deliveries:
        if not verifier.covers(place.text):
            return False
        if place.header:  # without which nothing verifies, so that no later place counts
            return True
    return True
