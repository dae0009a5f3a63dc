"""
Signatures of PayPal: RSA with SHA-256, by the certificate at the URL that a header names, over id and time of the
transmission, the id of the webhook, and the CRC-32 of the body.

U{https://developer.paypal.com/api/rest/webhooks/rest/}. The id of the webhook, which is the operator's own, keeps out
what PayPal signs for others. C{paypal-auth-algo} decides nothing. How long after its time a transmission is sent again
is not published, so that its age is no reason to refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhookrx.errors import BAD_SIGNATURE, SIGNATURE_MISSING
from webhookrx.senders.signatures.code_verifiers import CodeOptions, certificates_of, is_certified
from webhookrx.senders.signatures.named_secrets import SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.pinned_urls import PAYPAL_CERTIFICATE
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.senders.signatures.signed_text import SignedText
from webhookrx.senders.signatures.strict_encodings import from_base64
from webhookrx.senders.times import from_rfc3339

_SIGNED: Final = SignedText(
    "{header:paypal-transmission-id}|{header:paypal-transmission-time}|{setting:webhook_id}|{body:crc32}"
)
_NAME: Final = "paypal.com"
_NANOSECONDS: Final = 1_000_000_000


class PayPalVerifier:
    """
    Checks what PayPal signs.

    @raise SecretError: the setting C{webhook_id} is missing, or no key can ever be there.
    """

    def __init__(self, options: CodeOptions) -> None:
        if not options.settings.get("webhook_id"):
            raise SecretError("This sender needs the setting 'webhook_id': the id of the webhook.")
        self._keys = certificates_of(options)
        self._compiled = options.compiled
        self.names = (_NAME,)

    def check(self, request: SignedRequest, now: int) -> Verified | Unverified:
        """See L{CodeVerifier.check}."""
        values = [value for place in self._compiled.places for value in place.values(request)]
        signature = from_base64(values[0]) if len(values) == 1 else None
        text = _SIGNED.whole(request)
        if not signature or text is None:
            return Unverified(SIGNATURE_MISSING, SIGNATURE_MISSING.detail)
        url = (request.header(b"paypal-cert-url") or b"").decode("ascii", "replace")
        if not PAYPAL_CERTIFICATE.fullmatch(url):
            return Unverified(BAD_SIGNATURE, "The certificate is not at a URL of PayPal.")
        if not is_certified(self._keys, url, "rsa-sha256", signature, text, now):
            return Unverified(BAD_SIGNATURE, BAD_SIGNATURE.detail)
        signed_at = from_rfc3339((request.header(b"paypal-transmission-time") or b"").decode("ascii", "replace"))
        return Verified(_NAME, "signature", signed_at, None if signed_at is None else (now - signed_at) / _NANOSECONDS)

    def sign(self, name: str, request: SignedRequest, now: int) -> Mapping[bytes, bytes]:
        """See L{CodeVerifier.sign}."""
        raise SecretError("Only PayPal can sign its events.")


make = PayPalVerifier
