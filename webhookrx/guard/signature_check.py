"""
Decides whether requests to a source are verified: by a secret that they show, or by their signature; and takes secrets
out of bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webhookrx.errors import BAD_PAYLOAD
from webhookrx.guard.passage import NO_QUERY, Passage, query_of
from webhookrx.intake.judge import Refused
from webhookrx.senders.signatures.body_mask import BodyMask, CantMask
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.verification import Verification
from webhookrx.senders.signatures.verifier import Verifier
from webhookrx.yield_point import LONG_CALL, run_unlocked

#: Bytes of a body that all secrets of a source are tried on at once, without a look at the time.
_SOME: Final = 8 * 1024

_DIGEST: Final = 4
"""How many times as long a digest takes as what L{LONG_CALL} is meant for."""

MOST_AS_IT_COMES: Final = 8
"""Secrets that a body is tried on as it comes, 64 KiB at a time; with more of them that is done when it is there."""


class SignatureCheck:
    """
    The check of one source.

    @param source: its name.
    @param secrets: by how many secrets, each of which takes its own time.
    @param must_verify: what is not verified is refused; else messages say so.
    @param wall_clock: nanoseconds since the epoch.
    @ivar body_mask: masks the secrets that bodies show; None where they show none.
    @ivar shows_secret: requests show a secret itself.
    @ivar takes_pieces: bodies that are not encoded are worth taking in as they come.
    """

    def __init__(
        self,
        source: str,
        verifier: Verifier,
        secrets: int,
        must_verify: bool,
        wall_clock: Callable[[], int],
        body_mask: BodyMask | None = None,
    ) -> None:
        self._source = source
        self._verifier = verifier
        self._secrets = secrets
        self._must_verify = must_verify
        self._wall_clock = wall_clock
        self.body_mask = body_mask
        self.shows_secret = verifier.shows_secret
        self.takes_pieces = verifier.takes_pieces and secrets <= MOST_AS_IT_COMES

    def secret(self, passage: Passage) -> Refused | None:
        """
        Decide on a secret itself that its head has to show. What is no POST is a question by its head alone, which
        shows none.
        """
        if passage.head.method != b"POST":
            return None
        verification = self._begin(passage)
        if isinstance(verification, Refused):
            return verification
        unverified = verification.before_body()
        return None if unverified is None else self._not_verified(passage, unverified)

    def _begin(self, passage: Passage) -> Verification | Refused:
        verification = passage.verification
        if verification is None:
            query = query_of(passage.head, self._source)
            if isinstance(query, Refused):
                return query
            verification = passage.verification = self._verifier.begin(passage.head, query)
        return verification

    def take_piece(self, passage: Passage, data: bytes) -> None:
        """Take in a piece of its body as it comes, where L{takes_pieces}."""
        verification = self._begin(passage)
        if isinstance(verification, Verification) and verification.takes_pieces:
            verification.update(data)
            passage.is_hashed = True

    def signature(self, passage: Passage) -> Refused | None:
        """Decide on its signature, with yield points."""
        if passage.unverified is not None:
            return None
        verification, body = passage.verification, passage.body
        if verification is None and len(body) <= _SOME:
            head = passage.head
            query = query_of(head, self._source) if head.query else NO_QUERY
            if isinstance(query, Refused):
                return query
            outcome = self._verifier.check(head, query, body, self._wall_clock(), passage.wire)
        else:
            begun = self._begin(passage)
            if isinstance(begun, Refused):
                return begun
            if len(body) > _SOME and not passage.is_hashed and begun.takes_pieces:
                run_unlocked(digest_cost(len(body)) * self._secrets, begun.update, body)
            outcome = begun.finish(body, self._wall_clock(), passage.wire)
        if type(outcome) is Verified:
            passage.verified = outcome
            return None
        assert type(outcome) is Unverified
        return self._not_verified(passage, outcome)

    def mask(self, passage: Passage) -> Refused | None:
        """Take the secrets out of a body that shows them, with yield points: from here on, nobody needs them."""
        assert self.body_mask is not None
        try:
            masked = self.body_mask.masked(passage.body)
        except CantMask as error:
            return Refused(BAD_PAYLOAD, str(error), self._source)
        if masked is not passage.body:
            passage.body = masked
            passage.known_evidence = None
        return None

    def _not_verified(self, passage: Passage, unverified: Unverified) -> Refused | None:
        passage.unverified = unverified
        if self._must_verify:
            return Refused(unverified.reason, unverified.detail or unverified.reason.detail, self._source)
        return None


def digest_cost(size: int) -> int:
    """Return what a digest of so many bytes costs, in the bytes that L{run_unlocked} counts in."""
    return _DIGEST * size


def takes_long(size: int, secrets: int) -> bool:
    """Tell whether it takes more than a moment to make the digests of so many bytes that so many secrets need."""
    return digest_cost(size) * secrets > LONG_CALL
