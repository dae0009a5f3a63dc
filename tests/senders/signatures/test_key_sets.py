"""Tests for L{webhookrx.senders.signatures.key_sets}."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.keys import private_key, public_text
from tests.senders.signatures.published_keys import NOW, certificate, web_key, web_keys
from webhookrx.senders.signatures.key_sets import MAX_KEYS, key_set

_SECOND = 1_000_000_000


class KeySetTests(SynchronousTestCase):
    """Public keys as they are published."""

    def test_pem(self) -> None:
        """Certificates and public keys of one file are read in its order; a certificate is valid as long as it says."""
        data = b"text\n" + certificate(private_key("rsa"), days=1, since=1) + public_text("ecdsa", "pem").encode()
        first, second = key_set(data)
        self.assertEqual(("rsa", "ecdsa"), (first.kind, second.kind))
        now, day = round(NOW.timestamp()), 86_400
        moments = (now - day - 1, now - day, now + day, now + day + 1)
        self.assertEqual([False, True, True, False], [first.is_valid(moment * _SECOND) for moment in moments])
        self.assertTrue(second.is_valid(0))

    def test_json(self) -> None:
        """Of a key set, RSA keys and those of P-256 that are for signatures are read, with their names."""
        data = web_keys(
            web_key("rsa", "a"),
            web_key("ecdsa", "b"),
            web_key("rsa", "c", use="enc"),
            web_key("ecdsa", "d", crv="P-384"),
            {"kty": "oct", "k": "c2VjcmV0", "kid": "e"},
            {"kty": "RSA", "n": "AQ", "e": "AQ"},
            {"kty": "RSA", "n": 7, "e": "AQAB"},
            {"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"},
            7,
        )
        self.assertEqual([("a", "rsa"), ("b", "ecdsa")], [(key.name, key.kind) for key in key_set(data)])

    def test_none(self) -> None:
        """What is neither, has too many keys, or weak ones, has none that count."""
        weak = rsa.generate_private_key(65537, 1024).public_key()
        other = ec.generate_private_key(ec.SECP384R1()).public_key()
        spki = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        for data in (
            b"",
            b"{}",
            b"[]",
            b'{"keys":{}}',
            b"<html>",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            weak.public_bytes(*spki),
            other.public_bytes(*spki),
        ):
            self.assertEqual((), key_set(data), data)
        many = [web_key("ecdsa", "x", crv="P-384")] * MAX_KEYS
        self.assertEqual((), key_set(web_keys(*many, web_key("rsa", "a"))))
