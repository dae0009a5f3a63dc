"""
Signatures that the libraries of senders make, and OpenSSL: each verifies here, and another body does not.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import shutil
import subprocess
from datetime import UTC, datetime
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.senders.signatures.requests import check, head_of, verdict, verifier_of
from tests.senders.signatures.test_vectors import SCHEMES
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.scheme import MAC_ALGORITHMS
from webhookrx.senders.signatures.signing import sign

_NOW = 1_763_890_000
_BODY = '{"id":"evt_1","message":"sn\u00f6wman \u2603"}'.encode()
_WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def _library(name: str, package: str) -> Any:
    """Return a library of a sender; skip the test without it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise SkipTest(f"{package} is not installed") from None


class LibraryTests(SynchronousTestCase):
    """Libraries that senders publish."""

    def _taken(self, name: str, secret: str, headers: dict[str, str], url: str = "/in?x=1") -> None:
        """Check that a request verifies, and with another body does not."""
        verifier = verifier_of(SCHEMES[name], secrets={"other": _other(name), "a": secret}, public_url=_PUBLIC)
        self.assertEqual("ok:a", verdict(check(verifier, headers, _BODY, url=url, now=_NOW)))
        self.assertEqual("bad_signature", verdict(check(verifier, headers, _BODY + b" ", url=url, now=_NOW)))

    def test_standard_webhooks(self) -> None:
        """What C{standardwebhooks} and C{svix} sign."""
        for name, module, begin in (
            ("standard-webhooks", "standardwebhooks", "webhook"),
            ("svix", "svix.webhooks", "svix"),
        ):
            webhook = _library(module, module.partition(".")[0]).Webhook(_WHSEC)
            signature = webhook.sign("msg_1", datetime.fromtimestamp(_NOW, UTC), _BODY.decode())
            headers = {f"{begin}-id": "msg_1", f"{begin}-timestamp": str(_NOW), f"{begin}-signature": signature}
            self._taken(name, _WHSEC, headers)

    def test_slack(self) -> None:
        """What C{slack_sdk} signs."""
        verifier = _library("slack_sdk.signature", "slack_sdk").SignatureVerifier("s3cret")
        signature = verifier.generate_signature(timestamp=str(_NOW), body=_BODY)
        self._taken("slack", "s3cret", {"x-slack-request-timestamp": str(_NOW), "x-slack-signature": signature})

    def test_stripe(self) -> None:
        """What C{stripe} takes for genuine is what is signed here."""
        stripe = _library("stripe", "stripe")
        verifier = verifier_of(SCHEMES["stripe"], secrets={"a": "whsec_test"})
        signed = sign(verifier, NamedSecret("a", b"whsec_test"), head_of(), {}, _BODY, _NOW * 10**9)
        header = signed.headers[b"stripe-signature"].decode()
        self.assertTrue(stripe.WebhookSignature.verify_header(_BODY.decode(), header, "whsec_test"))
        self._taken("stripe", "whsec_test", {"stripe-signature": header})

    def test_line(self) -> None:
        """What C{line-bot-sdk} takes for genuine is what is signed here."""
        webhook = _library("linebot.v3.webhook", "line-bot-sdk")
        verifier = verifier_of(SCHEMES["line"], secrets={"a": "s3cret"})
        signed = sign(verifier, NamedSecret("a", b"s3cret"), head_of(), {}, _BODY, _NOW * 10**9)
        header = signed.headers[b"x-line-signature"].decode()
        self.assertTrue(webhook.SignatureValidator("s3cret").validate(_BODY.decode(), header))

    def test_hubspot(self) -> None:
        """What C{hubspot-api-client} signs."""
        signature = _library("hubspot.utils.signature", "hubspot-api-client").Signature.get_signature(
            client_secret="s3cret",  # of nobody
            request_body=_BODY.decode(),
            signature_version="v3",
            http_uri=f"{_PUBLIC}/in?x=1",
            http_method="POST",
            timestamp=str(_NOW * 1000),
        )
        headers = {"x-hubspot-signature-v3": signature, "x-hubspot-request-timestamp": str(_NOW * 1000)}
        self._taken("hubspot", "s3cret", headers)

    def test_discord(self) -> None:
        """What C{discord-interactions} takes for genuine."""
        verify_key = _library("discord_interactions", "discord-interactions").verify_key
        key = _library("nacl.signing", "pynacl").SigningKey.generate()
        public = key.verify_key.encode().hex()
        signature = key.sign(str(_NOW).encode() + _BODY).signature.hex()
        self.assertTrue(verify_key(_BODY, signature, str(_NOW), public))
        self._taken("discord", public, {"x-signature-ed25519": signature, "x-signature-timestamp": str(_NOW)})


_PUBLIC = "https://logs.example"


def _other(name: str) -> str:
    """Return a secret that signs nothing here."""
    key = base64.b64encode(b"of nobody").decode()
    return {"discord": "00" * 32, "standard-webhooks": f"whsec_{key}", "svix": f"whsec_{key}"}.get(name, "of nobody")


class OpenSslTests(SynchronousTestCase):
    """OpenSSL's command line."""

    def test_codes(self) -> None:
        """The HMAC that is made here of a body is OpenSSL's, for keys of all lengths."""
        openssl = shutil.which("openssl")
        if openssl is None:
            raise SkipTest("openssl is not installed")
        for algorithm in MAC_ALGORITHMS:
            scheme = {"at": "header:s", "algorithm": algorithm}
            for size in (1, 63, 64, 65, 128, 129, 200):
                key = bytes(range(1, size + 1))
                command = [openssl, "dgst", f"-{algorithm[5:]}", "-mac", "HMAC", "-macopt", f"hexkey:{key.hex()}"]
                code = subprocess.run([*command, "-binary"], input=_BODY, capture_output=True, check=True).stdout
                verifier = verifier_of(scheme, secrets={"a": key})
                headers = {"s": binascii.hexlify(code)}
                self.assertEqual("ok:a", verdict(check(verifier, headers, _BODY)), (algorithm, size))
