"""
Tests that no answer to a question is a signature of anything that its secret verifies, tried as by an attacker.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.handshakes.questions import DEFINITIONS, NOW, ask, head_of
from tests.senders.handshakes.test_senders import QUESTIONS, Question
from tests.senders.requests import entry_of
from webhookrx.errors import BAD_SIGNATURE
from webhookrx.intake.judge import Refused
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.handshakes import HandshakeAnswer
from webhookrx.senders.handshakes.shapes import Shape, why_not_for_proofs
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.scheme import SignatureScheme
from webhookrx.senders.signatures.verifier import Verifier

SECRETS = (NamedSecret("verify-token", b"shown to everybody"), NamedSecret("app", b"a secret that nobody has"))
URL = "https://hooks.example.com/hooks/acme"

#: What an attacker would have signed: bodies, and what senders put around them.
BODIES = (
    "{}",
    '{"a":1}',
    ' {"a":1}',
    "\n{}",
    "\ufeff{}",
    "[]",
    '[{"a":1}]',
    '"text"',
    "1",
    "true",
    "null",
    "e30",
    "a",
    "payload=%7B%7D",
    "a=b",
    "",
)
AROUND = (
    "{}",
    "v0:1:{}",
    f"v0:{NOW}:{{}}",
    f"{NOW}.{{}}",
    f"{NOW}{{}}",
    f"{NOW}:{{}}",
    "hmacsha256={}",
    "{}" + str(NOW),
)


def proving() -> Iterator[tuple[SenderDefinition, Question]]:
    """Yield each definition that answers with a proof, and a question that has one."""
    for definition in DEFINITIONS.values():
        for handshake in definition.handshake:
            if handshake.proof is not None:
                asked = (definition.id, handshake.kind)
                yield definition, next(each for each in QUESTIONS if (each.sender, each.kind) == asked)


def proof_of(definition: SenderDefinition, question: Question, text: str) -> str | None:
    """
    Return what the receiver proves of a text, as an attacker reads it in the answer; None for a refusal. The question
    is taken as signed by the sender, which is more than an attacker has.
    """
    (place,) = re.findall(r"\{(.+?)\}", definition.handshake[-1].proof.of.partition("{secret}")[0])  # type: ignore[union-attr]
    target, body = question.target, question.body
    if place.startswith("query:"):
        name = place.removeprefix("query:")
        target = f"/hooks/acme?{name}={quote(text, safe='')}"
    else:
        decoded = msgspec.json.decode(body)
        holder = decoded
        *steps, last = place.removeprefix("/").split("/")
        for step in steps:
            holder = holder[step]
        holder[last] = text
        body = msgspec.json.encode(decoded)
    unsigned = msgspec.structs.replace(
        definition, handshake=tuple(msgspec.structs.replace(each, signed=False) for each in definition.handshake)
    )
    answer = ask(unsigned, question.method, target, {}, body, secrets=SECRETS, public_url=URL)
    if isinstance(answer, HandshakeAnswer):
        values = msgspec.json.decode(answer.reply.body, type=dict[str, str]).values()
        return next(value.removeprefix("sha256=") for value in reversed(list(values)))
    return None


def forged(scheme: SignatureScheme, proof: str, body: bytes) -> dict[str, str]:
    """Return the headers of a delivery that shows a proof as its signature, in each way that it could be written."""
    (place,) = scheme.places
    raw = bytes.fromhex(proof) if re.fullmatch("[0-9a-f]{64}", proof) else b""
    written = proof
    if scheme.encoding == "base64":
        written = b64encode(raw).decode() if raw else proof
    headers = {place.removeprefix("header:"): scheme.prefix + written}
    for name in re.findall(r"\{header:([a-z-]+)\}", scheme.signed):
        headers[name] = str(NOW)
    return headers


class OracleTests(SynchronousTestCase):
    """Answers to questions, put to use as signatures."""

    def test_some(self) -> None:
        """There are senders to try it on."""
        self.assertEqual({"ebay", "linkedin", "smartcar", "x", "zoom"}, {definition.id for definition, _ in proving()})

    def test_asked_for_signatures(self) -> None:
        """What a sender signs is never proved, with whatever is put around a body."""
        for definition, question in proving():
            for text in (around.replace("{}", body) for around in AROUND for body in BODIES):
                if re.search(r"[\s:{.=\[\"%]", text) or not text:
                    self.assertIsNone(proof_of(definition, question, text), (definition.id, text))

    def test_forged(self) -> None:
        """Of no text, whatever its proof, does that make a delivery that verifies."""
        tried = dict.fromkeys((definition.id for definition, _ in proving() if definition.schemes), 0)
        for definition, question in proving():
            verifier = Verifier(definition, SECRETS) if definition.schemes else None
            for text in (around.replace("{}", body) for around in AROUND for body in BODIES):
                proof = proof_of(definition, question, text)
                if proof is None or verifier is None:
                    continue
                tried[definition.id] += 1
                for scheme in definition.schemes:
                    for body in (text.encode(), text.removeprefix(str(NOW)).encode(), b""):
                        head = head_of("POST", "/hooks/acme", forged(scheme, proof, body), body)
                        outcome = verifier.begin(head, {}).finish(body, NOW * 1_000_000_000)
                        self.assertIsInstance(outcome, Unverified, (definition.id, text))
        self.assertGreater(min(tried.values()), 3, tried)

    def test_objects_only(self) -> None:
        """Where bodies are signed alone, a text that was proved does not verify, though its signature is right."""
        definition = DEFINITIONS["x"]
        (question,) = (question for each, question in proving() if each is definition)
        (scheme,) = definition.schemes
        proof = proof_of(definition, question, "12345")
        assert proof is not None
        head = head_of("POST", "/hooks/acme", forged(scheme, proof, b"12345"), b"12345")
        outcome = Verifier(definition, SECRETS).begin(head, {}).finish(b"12345", 0)
        assert isinstance(outcome, Unverified)
        self.assertIs(outcome.reason, BAD_SIGNATURE)
        # It is the only thing that keeps it out.
        without = msgspec.structs.replace(definition, handshake=())
        self.assertEqual(Verifier(without, SECRETS).begin(head, {}).finish(b"12345", 0), Verified("app"))

    def test_objects(self) -> None:
        """Bodies that are JSON objects verify, small or large, in pieces or not; nothing that only begins as one."""
        definition = DEFINITIONS["x"]
        (scheme,) = definition.schemes
        verifier = Verifier(definition, SECRETS)
        key = SECRETS[1].value
        large = b'{"a":"' + b"x" * 300_000 + b'"}'
        for body, verifies in (
            (b"{}", True),
            (b' \r\n{"a":[1]}\n', True),
            (large, True),
            (b"{", False),
            (b"{}}", False),
            (b"{}{}", False),
            (b'{"a":1', False),
            (b"[{}]", False),
            (b'"{}"', False),
            (b"12", False),
            (b"", False),
            (b'{"\xff":1}', False),
            (b'{"a":' + b"[" * 50_000, False),
            (b"[" + large + b"]", False),
        ):
            written = b64encode(hmac.digest(key, body, "sha256")).decode()
            head = head_of("POST", "/hooks/acme", forged(scheme, written, body), body)
            for pieces in (False, True):
                verification = verifier.begin(head, {})
                if pieces:
                    for start in range(0, len(body), 1000):
                        verification.update(body[start : start + 1000])
                outcome = verification.finish(body, 0)
                self.assertEqual(isinstance(outcome, Verified), verifies, body[:20])

    def test_verify_token_is_no_key(self) -> None:
        """A verify token, which stands in addresses and logs, signs nothing and proves nothing."""
        token = SECRETS[:1]
        for definition, question in proving():
            if definition.schemes:
                self.assertRaises(SecretError, Verifier, definition, token)
            answer = ask(
                msgspec.structs.replace(definition, verify=()),
                question.method,
                question.target,
                question.headers,
                question.body,
                secrets=token,
                public_url=URL,
            )
            self.assertIsInstance(answer, Refused, definition.id)

    def test_shapes(self) -> None:
        """Each shape that goes with a proof is safe by its pattern, and takes nothing that looks signed."""
        for definition, _ in proving():
            for handshake in definition.handshake:
                if handshake.proof is not None:
                    self.assertIsNone(why_not_for_proofs(handshake.shape), definition.id)
                    self.assertFalse(any(map(Shape(handshake.shape).fits, ("v0:1:{}", "{}", "1.{}", "a=b", "a b"))))

    def test_post_is_signed(self) -> None:
        """A proof in answer to a POST is given only to who has signed it."""
        for definition, _ in proving():
            for handshake in definition.handshake:
                if handshake.proof is not None and handshake.when.method == "POST":
                    self.assertTrue(handshake.must_be_signed, definition.id)

    def test_which_schemes(self) -> None:
        """Only schemes whose signed text could be spelled by a proof take objects alone."""
        proof = {
            "kind": "a",
            "when": {"method": "GET", "query": {"q": "*"}},
            "proof": {"of": "{query:q}"},
            "shape": "^[a-z]{9}$",
        }
        for signed, algorithm, objects_only in (
            ("{body}", "hmac-sha256", True),
            ("{body}", "hmac-sha1", True),
            ("{header:a}{body}", "hmac-sha256", True),
            ("v1_{body}", "hmac-sha256", True),
            ("v0:{header:a}:{body}", "hmac-sha256", False),
            ("{header:a}.{body}", "hmac-sha256", False),
            ("hmacsha256={body}", "hmac-sha256", False),
            ("{body}", "ed25519", False),
        ):
            scheme = SignatureScheme(at="header:s", signed=signed, algorithm=algorithm)
            self.assertEqual(entry_of(handshake=[proof]).objects_only(scheme), objects_only, signed)
            self.assertFalse(entry_of().objects_only(scheme), signed)
