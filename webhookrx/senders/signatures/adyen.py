"""
Signatures of Adyen's standard notifications, of which each in a body has its own: HMAC-SHA256, in
C{additionalData.hmacSignature}, of eight of its members with colons between them.

U{https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/}. All must hold: else one genuine
notification would carry any number of forged ones with it. Nothing but these members is signed; and since Adyen escapes
no colon, C{merchantReference} and what stands beside it are one text to it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Final

from webhookrx.errors import BAD_SIGNATURE, SIGNATURE_MISSING
from webhookrx.senders.signatures.code_verifiers import CodeOptions
from webhookrx.senders.signatures.key_forms import key_bytes
from webhookrx.senders.signatures.named_secrets import SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.pieces import hmac_of
from webhookrx.senders.signatures.repeated_members import REPEATED, is_ambiguous
from webhookrx.senders.signatures.signed_request import SignedRequest, text_of
from webhookrx.senders.signatures.strict_encodings import from_base64
from webhookrx.yield_point import yield_point

MAX_NOTIFICATIONS: Final = 1_000
"""Notifications of a body whose signatures are checked; a body with more is refused. Adyen sends a few."""

_SIGNED: Final = (
    ("pspReference",),
    ("originalReference",),
    ("merchantAccountCode",),
    ("merchantReference",),
    ("amount", "value"),
    ("amount", "currency"),
    ("eventCode",),
    ("success",),
)


class AdyenVerifier:
    """
    Checks what Adyen signs.

    @raise SecretError: a secret is not written in hexadecimal digits.
    """

    def __init__(self, options: CodeOptions) -> None:
        if not options.secrets:
            raise SecretError("There is no secret to check requests with.")
        self._keys = [(secret.name, key_bytes(secret, "hex")) for secret in options.secrets]
        self.names = tuple(name for name, _ in self._keys)

    def check(self, request: SignedRequest, now: int) -> Verified | Unverified:
        """See L{CodeVerifier.check}. The secret is that of the first notification."""
        notifications = _notifications(request.document)
        if not notifications:
            return Unverified(SIGNATURE_MISSING, SIGNATURE_MISSING.detail)
        first = ""
        for notification in notifications:
            yield_point()
            name = self._signer(notification)
            if name is None:
                return Unverified(BAD_SIGNATURE, "Not every notification in the body is signed by one of our secrets.")
            first = first or name
        return REPEATED if is_ambiguous(request) else Verified(first)

    def sign(self, name: str, request: SignedRequest, now: int) -> Mapping[bytes, bytes]:
        """See L{CodeVerifier.sign}. No header can hold these signatures."""
        raise SecretError("The signatures of this sender stand in the body, one for each notification.")

    def _signer(self, notification: Any) -> str | None:
        """Return the name of the secret that a notification is signed with; None when there is none."""
        written = _text(notification, ("additionalData", "hmacSignature"))
        signature = from_base64(written) if written else None
        parts = [_text(notification, steps) for steps in _SIGNED]
        if signature is None or None in parts:
            return None
        signed = b":".join(part for part in parts if part is not None)
        for name, key in self._keys:
            if hmac.compare_digest(hmac_of(key, "sha256", signed), signature):
                return name
        return None


make = AdyenVerifier


def _notifications(document: Any) -> list[Any]:
    """Return the notifications of a body; none when it is not one of Adyen's, or has too many."""
    items = document.get("notificationItems") if type(document) is dict else None
    if type(items) is not list or len(items) > MAX_NOTIFICATIONS:
        return []
    return [item.get("NotificationRequestItem") if type(item) is dict else None for item in items]


def _text(value: Any, steps: tuple[str, ...]) -> bytes | None:
    """Return the text of a member, empty when there is none; None for what is no text, so that nothing passes as it."""
    for step in steps:
        if value is None:
            return b""
        if type(value) is not dict:
            return None
        value = value.get(step)
    return b"" if value is None else text_of(value)
