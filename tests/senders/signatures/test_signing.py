"""Tests for L{webhookrx.senders.signatures.signing}."""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.keys import private_pem, public_text
from tests.senders.signatures.requests import SECOND, head_of, verdict, verifier_of
from tests.senders.signatures.test_vectors import SCHEMES
from webhookrx.intake.head import Head
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.scheme import PUBLIC_KEY_ALGORITHMS
from webhookrx.senders.signatures.signing import Signed, sign
from webhookrx.senders.signatures.verifier import Verifier

_NOW = 1_763_890_000
_BODY = b'{"id":"1","value":[{"id":1},{"id":2}]}'
_TEXTS = {
    "text": "not in use",
    "base64": "bm90IGluIHVzZQ==",
    "hex": "6e6f7420696e20757365",
    "whsec": "whsec_bm90IGluIHVzZQ==",
}
_OTHERS = {"text": "another", "base64": "YW5vdGhlcg==", "hex": "616e", "whsec": "whsec_YW4="}


def _secret_for(scheme: dict[str, Any]) -> NamedSecret:
    algorithm, form = scheme.get("algorithm", ""), scheme.get("key", "text")
    text = public_text(algorithm, form) if algorithm in PUBLIC_KEY_ALGORITHMS else _TEXTS[form]
    return NamedSecret("ours", text.encode())


def _sign(scheme: dict[str, Any], verifier: Verifier, body: bytes) -> Signed:
    algorithm = scheme.get("algorithm", "")
    key = private_pem(algorithm) if algorithm in PUBLIC_KEY_ALGORITHMS else b""
    return sign(verifier, _secret_for(scheme), _HEAD, {}, body, _NOW * SECOND, private_key=key)


_HEAD = head_of({"content-type": "application/json"}, url="/hooks?a=1")


def _judge(verifier: Verifier, signed: Signed, now: float = _NOW) -> Verified | Unverified:
    head = Head(b"POST", _HEAD.path, _HEAD.query, list(signed.headers.items()), _HEAD.peer)
    query = {name: value.decode() for name, value in signed.parameters.items()}
    return verifier.begin(head, query).finish(signed.body, round(now * SECOND))


class SignTests(SynchronousTestCase):
    """A request that is signed here."""

    def test_all_schemes(self) -> None:
        """Whatever a scheme wants is there, and its check says which secret it was."""
        for name, scheme in SCHEMES.items():
            secret = _secret_for(scheme)
            verifier = verifier_of(scheme, secrets={secret.name: secret.value}, public_url="https://logs.example")
            body = b"payload=%7B%7D&x=1" if name == "travis" else _BODY
            signed = _sign(scheme, verifier, body)
            self.assertEqual("ok:ours", verdict(_judge(verifier, signed)), name)
            if "time" in scheme:
                late = _judge(verifier, signed, _NOW + 86_400)
                self.assertEqual("stale_signature", verdict(late), name)

    def test_no_other_verifies(self) -> None:
        """What one scheme signs does not verify by any other scheme with another secret."""
        for name, scheme in SCHEMES.items():
            secret = _secret_for(scheme)
            verifier = verifier_of(scheme, secrets={secret.name: secret.value}, public_url="https://logs.example")
            signed = _sign(scheme, verifier, b"payload=%7B%7D" if name == "travis" else _BODY)
            for other_name, other in SCHEMES.items():
                algorithm, form = other.get("algorithm", ""), other.get("key", "text")
                is_public = algorithm in PUBLIC_KEY_ALGORITHMS
                text = public_text(algorithm, form, 1) if is_public else _OTHERS[form]
                judge = verifier_of(other, secrets={"theirs": text}, public_url="https://logs.example")
                self.assertIsInstance(_judge(judge, signed), Unverified, (name, other_name))

    def test_what_is_made_up(self) -> None:
        """An id that is not there is made up, one that is there stays, and the time becomes that of the signature."""
        scheme = SCHEMES["standard-webhooks"]
        verifier = verifier_of(scheme, secrets={"ours": _TEXTS["whsec"]})
        secret = _secret_for(scheme)
        signed = sign(verifier, secret, head_of(), {}, b"{}", _NOW * SECOND)
        self.assertEqual({b"webhook-id", b"webhook-timestamp", b"webhook-signature"}, set(signed.headers))
        self.assertEqual(b"%d" % _NOW, signed.headers[b"webhook-timestamp"])
        head = head_of({"Webhook-Id": "msg_1", "Webhook-Timestamp": "1"})
        signed = sign(verifier, secret, head, {}, b"{}", _NOW * SECOND)
        self.assertEqual({b"webhook-timestamp", b"webhook-signature"}, set(signed.headers))

    def test_in_body(self) -> None:
        """A secret or a signature in the body is put there; a time that the body has stays."""
        verifier = verifier_of(SCHEMES["microsoft-graph"], secrets={"ours": "s"})
        signed = sign(verifier, NamedSecret("ours", b"s"), head_of(), {}, _BODY, 0)
        body = msgspec.json.decode(signed.body)
        self.assertEqual(["s", "s"], [element["clientState"] for element in body["value"]])
        body = b'{"webhookTimestamp":1700000000000,"x":1.10}'
        verifier = verifier_of(SCHEMES["linear"], secrets={"ours": "s"})
        signed = sign(verifier, NamedSecret("ours", b"s"), head_of(), {}, body, _NOW * SECOND)
        self.assertEqual(body, signed.body)

    def test_refused(self) -> None:
        """What can't be signed is told: an unknown secret, a public key alone, a body with no room for a signature."""
        github = verifier_of(SCHEMES["github"], secrets={"ours": "s"})
        discord = verifier_of(SCHEMES["discord"], secrets={"ours": public_text("ed25519", "hex")})
        mailgun = verifier_of(SCHEMES["mailgun"], secrets={"ours": "s"})
        travis = verifier_of(SCHEMES["travis"], secrets={"ours": public_text("rsa-sha1", "pem")})
        for verifier, name, body, words in (
            (github, "theirs", b"", "does not count"),
            (discord, "ours", b"", "only the sender has the private one"),
            (mailgun, "ours", b"[1]", "no room for|has room for"),
            (travis, "ours", b"{}", "lacks a part"),
        ):
            error = self.assertRaises(
                SecretError, sign, verifier, NamedSecret(name, b"s"), head_of(), {}, body, 0, private_key=b""
            )
            self.assertRegex(str(error), words)
