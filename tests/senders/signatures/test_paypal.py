"""Tests for L{webhookrx.senders.signatures.paypal}."""

from __future__ import annotations

import base64
import zlib
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.keys import private_key
from tests.senders.signatures.published_keys import NOW, KeyTable, certificate
from tests.senders.signatures.requests import check, head_of, verdict, verifier_of
from tests.senders.signatures.test_pinned_urls import HOSTILE
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.outcome import Verified
from webhookrx.senders.signatures.signing import sign
from webhookrx.senders.signatures.verifier import Verifier

_URL = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77"
_BODY = b'{"id":"WH-1","event_type":"PAYMENT.SALE.COMPLETED"}'
_SCHEME = {"code": "paypal", "at": "header:paypal-transmission-sig"}


def _verifier(keys: KeyTable | None = None) -> Verifier:
    return verifier_of(
        _SCHEME,
        secrets={},
        settings={"webhook_id": "9XL90610J3647323C"},
        keys=KeyTable({_URL: certificate(private_key("rsa"))}) if keys is None else keys,
    )


def _headers(webhook: str = "9XL90610J3647323C", number: int = 0) -> dict[str, str]:
    text = f"d938e770|2026-11-23T11:59:50Z|{webhook}|{zlib.crc32(_BODY)}"
    signature = private_key("rsa", number).sign(text.encode(), PKCS1v15(), hashes.SHA256())
    return {
        "PayPal-Transmission-Id": "d938e770",
        "PayPal-Transmission-Time": "2026-11-23T11:59:50Z",
        "PayPal-Transmission-Sig": base64.b64encode(signature).decode(),
        "PayPal-Cert-Url": _URL,
        "PayPal-Auth-Algo": "SHA256withRSA",
    }


def _verdict(headers: Any, body: bytes = _BODY, keys: KeyTable | None = None) -> str:
    return verdict(check(_verifier(keys), headers, body, now=NOW.timestamp()))


class PayPalTests(SynchronousTestCase):
    """Events of PayPal."""

    def test_genuine(self) -> None:
        """An event for this webhook verifies, whatever the request says of the algorithm."""
        result = check(_verifier(), _headers(), _BODY, now=NOW.timestamp())
        self.assertEqual(Verified("paypal.com", "signature", round(NOW.timestamp() - 10) * 10**9, 10.0), result)
        self.assertEqual("ok:paypal.com", _verdict(_headers() | {"PayPal-Auth-Algo": "none"}))

    def test_forged(self) -> None:
        """Another body, webhook, key or transmission is refused."""
        self.assertEqual("bad_signature", _verdict(_headers(), _BODY + b" "))
        self.assertEqual("bad_signature", _verdict(_headers("another")))
        self.assertEqual("bad_signature", _verdict(_headers(number=1)))
        self.assertEqual("bad_signature", _verdict(_headers() | {"PayPal-Transmission-Id": "x"}))

    def test_missing(self) -> None:
        """Without one of its headers, or with one twice, there is no signature."""
        for name in ("PayPal-Transmission-Id", "PayPal-Transmission-Time", "PayPal-Transmission-Sig"):
            fewer = [(key, value) for key, value in _headers().items() if key != name]
            twice = [*_headers().items(), (name, _headers()[name])]
            self.assertEqual(("signature_missing",) * 2, (_verdict(fewer), _verdict(twice)), name)

    def test_hosts(self) -> None:
        """A certificate that is anywhere but at PayPal is not even asked for; one that is not there may come."""
        keys = KeyTable()
        for url in HOSTILE:
            if "\n" not in url and url.isascii():
                self.assertEqual(
                    "bad_signature", _verdict(_headers() | {"PayPal-Cert-Url": url.strip()[1:]}, keys=keys)
                )
        self.assertEqual([], keys.asked)
        self.assertEqual("key_unavailable", _verdict(_headers(), keys=keys))

    def test_settings(self) -> None:
        """Without the id of the webhook, or keys from anywhere, nothing can be checked; and nothing is signed here."""
        self.assertRaises(SecretError, verifier_of, _SCHEME, secrets={}, keys=KeyTable())
        self.assertRaises(SecretError, verifier_of, _SCHEME, secrets={}, settings={"webhook_id": "x"})
        self.assertRaises(SecretError, sign, _verifier(), NamedSecret("paypal.com", b""), head_of(), {}, b"", 0)
