"""
Where public keys come from in tests: a source of keys that is a table, certificates, and key sets.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from tests.senders.signatures.keys import private_key
from webhookrx.senders.signatures.outcome import KeyUnavailable

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


class KeyTable:
    """
    A source of keys.

    @ivar table: URL to what is there.
    @ivar renewed: the URLs that were asked for anew.
    """

    def __init__(
        self, table: dict[str, bytes] | None = None, files: Sequence[bytes] = (), *, are_fetched: bool = True
    ) -> None:
        self.table = table or {}
        self.files = files
        self.are_fetched = are_fetched
        self.asked: list[str] = []
        self.renewed: list[str] = []
        self.can_renew = True

    def fetched(self, url: str) -> bytes:
        """See L{webhookrx.senders.signatures.code_verifiers.KeySource.fetched}."""
        self.asked.append(url)
        if url not in self.table:
            raise KeyUnavailable
        return self.table[url]

    def renew(self, url: str) -> bool:
        """See L{webhookrx.senders.signatures.code_verifiers.KeySource.renew}."""
        self.renewed.append(url)
        return self.can_renew


def certificate(key: Any, *, days: int = 30, since: int = 30) -> bytes:
    """
    Return a certificate in PEM.

    @param days: how long it is still valid.
    @param since: for how many days it has been.
    """
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "signer.example")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=since))
        .not_valid_after(NOW + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


def web_key(kind: str, name: str = "", number: int = 0, **more: Any) -> dict[str, Any]:
    """Return a public key as a member of a key set."""
    numbers = private_key(kind, number).public_key().public_numbers()
    if kind == "rsa":
        members = {"kty": "RSA", "n": _text(numbers.n), "e": _text(numbers.e)}
    else:
        members = {"kty": "EC", "crv": "P-256", "x": _text(numbers.x), "y": _text(numbers.y)}
    return {"kid": name, "use": "sig", **members, **more}


def web_keys(*keys: Any) -> bytes:
    """Return a key set."""
    return msgspec.json.encode({"keys": keys})


def _text(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8)).rstrip(b"=").decode()
