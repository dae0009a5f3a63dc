"""
Checks requests: the schemes of a sender, with the secrets of one source.
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from webhookrx.errors import BAD_SIGNATURE, KEY_UNAVAILABLE, SIGNATURE_MISSING, STALE_SIGNATURE, Reason
from webhookrx.intake.head import Head
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.outcome import KeyUnavailable, Unverified, Verified

if TYPE_CHECKING:
    from webhookrx.senders.definition import SenderDefinition


class Verifier:
    """
    Checks requests of one source.

    @param definition: its sender, which has C{verify}.
    @param secrets: those of the source; they alone decide which schemes count.
    @param public_url: scheme, host and port as the sender knows them; with a path, the whole URL.
    @param settings: what the operator gives of the settings that the definition names.
    @param keys: where code verifiers look public keys up.
    @raise SecretError: no secret can be used, or one is not written as the scheme wants it.
    @ivar takes_pieces: whether a check wants the body as it comes; else L{Verification.finish} is enough.
    """

    def __init__(
        self,
        definition: SenderDefinition,
        secrets: Sequence[NamedSecret],
        *,
        public_url: str = "",
        settings: Mapping[str, str] = {},
        keys: Any = None,
    ) -> None:
        (self._scheme,) = definition.schemes
        (place,) = self._scheme.places
        self._header = place.removeprefix("header:").encode()
        self._prefix = self._scheme.prefix.encode()
        self._keys = [(each.name, hmac.new(each.value, digestmod="sha256")) for each in secrets]
        self.takes_pieces = True

    def begin(self, head: Head, query: Mapping[str, str | list[str]]) -> Verification:
        """
        Begin the check of a request.

        @param query: as L{webhookrx.intake.urlencoded.parse_query} returns it.
        """
        values = head.values(self._header)
        signature = b""
        if len(values) == 1 and values[0].startswith(self._prefix):
            try:
                signature = binascii.unhexlify(values[0][len(self._prefix) :])
            except ValueError:
                signature = b""
        return Verification(signature, self._keys)

    def __repr__(self) -> str:
        return f"<Verifier with {len(self._keys)} secrets>"


class Verification:
    """
    The check of one request.

    @ivar takes_pieces: whether it wants the body as it comes. Nothing else need then go through L{update} first: a
        body that is there as a whole may be given to L{finish} alone.
    """

    __slots__ = ("_contexts", "_keys", "_signature", "takes_pieces")

    def __init__(self, signature: bytes, keys: list[tuple[str, hmac.HMAC]]) -> None:
        self._signature = signature
        self._keys = keys
        self._contexts: list[hmac.HMAC] | None = None
        self.takes_pieces = True

    def before_body(self) -> Unverified | None:
        """Return why the request is refused before its body has come: a secret that is shown in its head is wrong."""
        return None

    def update(self, data: bytes) -> None:
        """Take in a piece of the unpacked body."""
        if self._contexts is None:
            self._contexts = [key.copy() for _, key in self._keys]
        for context in self._contexts:
            context.update(data)

    def finish(self, body: bytes, now: int, wire: bytes | None = None) -> Verified | Unverified:
        """
        Judge the request. It raises nothing, whatever the sender has written.

        @param body: all of it, unpacked, whether L{update} has had it or not.
        @param now: nanoseconds since the epoch, wall clock.
        @param wire: the body as it came, before C{Content-Encoding} is undone; None: it was not encoded.
        """
        if not self._signature:
            return _refused(SIGNATURE_MISSING)
        if self._contexts is None:
            self.update(body)
        assert self._contexts is not None, "it was updated"
        try:
            for (name, _), context in zip(self._keys, self._contexts, strict=True):
                if hmac.compare_digest(context.digest(), self._signature):
                    return Verified(name)
        except KeyUnavailable:
            return _refused(KEY_UNAVAILABLE)
        return _refused(BAD_SIGNATURE)


def _refused(reason: Reason) -> Unverified:
    return Unverified(reason, reason.detail)


def _stale(skew: float | None) -> Unverified:
    return Unverified(STALE_SIGNATURE, STALE_SIGNATURE.detail, skew)
