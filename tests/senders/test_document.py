"""
Tests for C{docs/how-to/add-a-sender.md} and C{docs/reference/sender-definitions.md}: what they show is so.
"""

from __future__ import annotations

import base64
import hmac

import msgspec
import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests.documents import blocks, read
from tests.senders.handshakes.questions import ask, secrets_of
from tests.senders.requests import known_of, scope_of
from webhookrx.commands.sample_signatures import judged_when_signed
from webhookrx.intake.reply import TEXT, Reply
from webhookrx.senders.classifier import HIGH, MEDIUM, Classifier
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import all_definitions, builtin_definitions, read_definition
from webhookrx.senders.extraction import extract
from webhookrx.senders.handshakes import HandshakeAnswer, SenderAnswers
from webhookrx.senders.handshakes.costs import cost_of_refusal
from webhookrx.senders.http_file import read_http_file
from webhookrx.senders.signatures.named_secrets import read_secrets
from webhookrx.senders.signatures.outcome import Verified
from webhookrx.senders.signatures.signing import sign
from webhookrx.senders.signatures.verifier import Verifier
from webhookrx.senders.text_template import TextTemplate

PAGE = read("docs/how-to/add-a-sender.md") + read("docs/reference/sender-definitions.md")


def block(language: str, beginning: str) -> str:
    """Return the one block of the pages in a language that begins in some way."""
    (text,) = (each.text for each in blocks(PAGE) if each.language == language and each.text.startswith(beginning))
    return text


class ExampleTests(SynchronousTestCase):
    """The example of a sender of one's own."""

    def test_outcome(self) -> None:
        """The data file makes of the recorded request what the page shows."""
        entries, diagnostics = all_definitions(builtin_definitions(), [("acme.yaml", block("yaml", "id:").encode())])
        self.assertEqual(diagnostics, [])
        evidence = known_of(*read_http_file(block("http", "POST").encode()))
        match = Classifier(entries).classify(evidence)
        assert match is not None
        found = extract(match.sender, evidence)
        assert found.severity is not None
        shown = [" ".join(line.split()) for line in block("console", "$ webhookrx classify press.http").splitlines()]
        for line in (
            f"{match.sender.id}: {match.sender.vendor}/{match.sender.product}",
            f"service {match.service}",
            f"confidence {match.confidence}",
            f"why {match.why}",
            f"time 2026-03-02T08:15:00.123000000Z ({found.time_unix_nano} ns)",
            f"message {found.message}",
            f"severity {found.severity[1]} ({found.severity[0]})",
            f"host {found.host}",
            *(f"from {found.taken[name]}" for name in ("time", "message", "severity", "host")),
        ):
            self.assertIn(line, shown)

    def test_questions(self) -> None:
        """The example of questions and answers can be used, and answers as it says."""
        text = "id: acme\nvendor: acme\nproduct: acme\nwhen: {body_keys: [a]}\nverify: {at: 'header:s'}\n" + block(
            "yaml", "handshake:"
        )
        definition, diagnostics = read_definition(text.encode(), "acme.yaml")
        self.assertEqual(diagnostics, [])
        assert definition is not None
        secrets = secrets_of(app="secret", verify_token="token")
        answer = ask(definition, "GET", "/?challenge=abc&token=token", secrets=secrets)
        self.assertEqual(answer, HandshakeAnswer("url_check", Reply(200, b"abc", TEXT)))
        body = b'{"type":"check","nonce":"abc"}'
        signature = hmac.new(b"secret", body, "sha256").hexdigest()
        answer = ask(definition, "POST", "/", {"s": signature}, body, secrets=secrets)
        assert isinstance(answer, HandshakeAnswer)
        proof = base64.b64encode(hmac.digest(b"secret", b"abc", "sha256"))
        self.assertEqual(answer.reply.body, b'{"nonce":"abc","proof":"sha256=%s"}' % proof)
        reply = SenderAnswers(definition).stored(known_of(*read_http_file(b'{"id": "7"}')), 1_500_000_000)
        self.assertEqual(reply, Reply(200, b'{"id":"7","at":1500}'))
        self.assertIn("never after 401, 403 or 413", cost_of_refusal(definition))

    def test_ways(self) -> None:
        """With the list of ways that the page shows, the request is told without its header, too."""
        entry = msgspec.convert(
            yaml.safe_load(block("yaml", "id:")) | yaml.safe_load(block("yaml", "when:\n  - ")), SenderDefinition
        )
        head, query, body = read_http_file(block("http", "POST").encode())
        for headers, confidence, why in (
            (head.headers, HIGH, "header x-press-serial"),
            ([], MEDIUM, "body keys at, kind, sensor"),
        ):
            evidence = known_of(msgspec.structs.replace(head, headers=headers), query, body)
            match = Classifier([entry]).classify(evidence)
            self.assertEqual(match and (match.confidence, match.why), (confidence, why))

    def test_signed(self) -> None:
        """With the scheme that the page shows, a request counts that is signed with what it shows."""
        entry = msgspec.convert(
            yaml.safe_load(block("yaml", "id:")) | yaml.safe_load(block("yaml", "verify:")), SenderDefinition
        )
        (secret,) = read_secrets("\n".join(entry.signing[0].secrets))
        head, query, body = read_http_file(block("http", "POST").encode())
        verifier = Verifier(entry, [secret])
        made = sign(verifier, secret, head, query, body, 1_772_439_301_000_000_000)
        self.assertRegex(made.headers[b"x-press-signature"], rb"^t=1772439301,v1=[0-9a-f]{64}$")
        signed = msgspec.structs.replace(head, headers=[*head.headers, *made.headers.items()])
        self.assertIsInstance(judged_when_signed(verifier, signed, query, body), Verified)
        self.assertNotIsInstance(judged_when_signed(verifier, signed, query, body + b" "), Verified)

    def test_texts(self) -> None:
        """A piece that yields nothing is left out as the page says."""
        text = TextTemplate("{/kind}: {/text} ({/sensor})")
        self.assertIn(f"`{text.text}`", PAGE)
        for members, expected in (
            ({"kind": "pressure", "text": "above 300 bar"}, "pressure: above 300 bar"),
            ({"kind": "pressure", "sensor": "P7"}, "pressure (P7)"),
        ):
            rendered = text.render(scope_of(members))
            self.assertEqual(rendered and rendered[0], expected)
            self.assertIn(f"`{expected}`", PAGE)
