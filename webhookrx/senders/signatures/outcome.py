"""
What the check of a request comes to: proved by a secret, by name; or not, and why.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, final

import msgspec

from webhookrx.errors import Reason, WebhookrxError

ProofKind: TypeAlias = Literal["signature", "token"]


@final
class Verified(msgspec.Struct, frozen=True, gc=False):
    """
    A request that its sender has proved to be its own.

    @ivar secret: the name of the secret that has proved it.
    @ivar kind: C{"token"} when the request showed the secret itself.
    @ivar signed_at: the moment of signing, in nanoseconds since the epoch; None when the scheme has none.
    @ivar skew: seconds from then until now, negative when it is in the future; None as before.
    """

    secret: str
    kind: ProofKind = "signature"
    signed_at: int | None = None
    skew: float | None = None


@final
class Unverified(msgspec.Struct, frozen=True, gc=False):
    """
    A request that proves nothing.

    @ivar reason: C{SIGNATURE_MISSING}, C{BAD_SIGNATURE}, C{STALE_SIGNATURE}, C{KEY_UNAVAILABLE}, or C{BODY_TOO_LARGE}
        where a signature can't be verified in pieces.
    @ivar detail: one sentence that quotes neither the request nor a secret, and does not say which secret was near.
    @ivar skew: of a stale signature, as in L{Verified}; None for any other, or when its time can't be read.
    """

    reason: Reason
    detail: str
    skew: float | None = None


class KeyUnavailable(WebhookrxError):
    """The key that a request must be checked with is not there now; the sender should try again."""
