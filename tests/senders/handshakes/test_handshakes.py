"""
Tests for L{webhookrx.senders.handshakes.handshakes}, beside those of what known senders ask.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.handshakes.questions import DEFINITIONS, any_number, ask, head_of, secrets_of
from tests.senders.requests import entry_of, known_of
from webhookrx.errors import BAD_HANDSHAKE, OVER_QUOTA
from webhookrx.intake.judge import Refused
from webhookrx.intake.reply import TEXT, Reply
from webhookrx.senders.handshakes import HandshakeAnswer, Handshakes

GET = {"method": "GET", "query": {"q": "*"}}


def definition_of(*handshakes: dict[str, Any], **more: Any) -> Any:
    """Return a definition with questions, each with a kind."""
    return entry_of(handshake=[{"kind": f"k{number}", **each} for number, each in enumerate(handshakes)], **more)


class HandshakesTests(SynchronousTestCase):
    """The questions of one source."""

    def test_methods(self) -> None:
        """POST is always taken, other methods where a question comes by them."""
        asked = Handshakes(
            definition_of({"when": GET}, {"when": {"method": "HEAD", "path": "^/h"}}), (), take=any_number
        )
        for method, path, takes in (
            ("POST", "/", True),
            ("GET", "/", True),
            ("HEAD", "/", False),
            ("HEAD", "/h", True),
            ("PUT", "/", False),
        ):
            self.assertEqual(asked.takes(head_of(method, path)), takes, (method, path))
        self.assertEqual(asked.allow(head_of("PUT", "/")), "GET, POST")
        self.assertEqual(asked.allow(head_of("PUT", "/h")), "GET, HEAD, POST")
        self.assertEqual(asked.kinds, ("k0", "k1"))

    def test_first(self) -> None:
        """Of several questions, the first that a request is counts."""
        definition = definition_of({"when": GET, "text": "a"}, {"when": {"method": "GET"}, "text": "b"})
        for target, kind, body in (("/?q=1", "k0", b"a"), ("/", "k1", b"b")):
            self.assertEqual(ask(definition, "GET", target), HandshakeAnswer(kind, Reply(200, body, TEXT)))

    def test_kept(self) -> None:
        """A question that its entry keeps says so."""
        definition = definition_of({"when": GET, "keep": True})
        answer = ask(definition, "GET", "/?q=1")
        self.assertEqual(answer, HandshakeAnswer("k0", Reply(200, b"", ""), True))

    def test_too_costly(self) -> None:
        """A request that is too much to look at is no question."""
        definition = definition_of({"when": {"headers": {"x-a": "(a?){200}b"}}, "signed": False})
        self.assertIsNone(ask(definition, "POST", "/", {"X-A": "a" * 400_000}))
        self.assertIsInstance(ask(definition, "POST", "/", {"X-A": "aab"}), HandshakeAnswer)

    def test_content_length(self) -> None:
        """A POST whose length is said to be nothing has no body, however many zeros say so."""
        definition = definition_of({"when": {"query": {"q": "*"}}, "signed": False, "text": "{query:q}"})
        for length, is_question in (("0", True), ("00", True), ("10", False), ("5", False)):
            answer = ask(definition, "POST", "/?q=1", {"Content-Length": length})
            self.assertEqual(answer is not None, is_question, length)

    def test_repeated(self) -> None:
        """Of a parameter that comes twice, the first value counts."""
        definition = definition_of({"when": GET, "text": "{query:q}"})
        answer = ask(definition, "GET", "/?q=1&q=2")
        self.assertEqual(answer, HandshakeAnswer("k0", Reply(200, b"1", TEXT)))

    def test_header_of_value(self) -> None:
        """A value that a header can't hold is refused, also where its shape allows it."""
        definition = definition_of({"when": GET, "shape": r"^[\s\S]{1,9}$", "reply": {"X-A": "{query:q}"}})
        for query, answered in (("ab", True), ("a%0d%0ab", False), ("a%00", False), ("%20a", False), ("%c3%a4", False)):
            answer = ask(definition, "GET", f"/?q={query}")
            self.assertEqual(isinstance(answer, HandshakeAnswer), answered, query)

    def test_no_key(self) -> None:
        """Without a key, or with an empty one, nothing is proved."""
        for secrets in ({}, {"verify_token": "a"}, {"app": ""}):
            for sender, query in (("x", "crc_token=1"), ("ebay", "challenge_code=1")):
                answer = ask(
                    DEFINITIONS[sender], "GET", f"/?{query}", secrets=secrets_of(**secrets), public_url="https://a"
                )
                assert isinstance(answer, Refused)
                self.assertIs(answer.reason, BAD_HANDSHAKE)

    def test_no_url(self) -> None:
        """Without the URL that the sender knows, nothing is proved of it."""
        answer = ask(DEFINITIONS["ebay"], "GET", "/?challenge_code=1", secrets=secrets_of(app="b"))
        assert isinstance(answer, Refused)
        self.assertIs(answer.reason, BAD_HANDSHAKE)

    def test_unknown_secret(self) -> None:
        """What a secret has verified that is no key of proofs is not proved by another."""
        asked = Handshakes(DEFINITIONS["zoom"], secrets_of(app="a"), take=any_number)
        body = b'{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}'
        evidence = known_of(head_of("POST", "/"), {}, body)
        self.assertIsInstance(asked.after_signature(evidence, "app", 0.0), HandshakeAnswer)
        for name in ("other", "", None):
            self.assertIsInstance(asked.after_signature(evidence, name, 0.0), Refused, name)

    def test_rate(self) -> None:
        """All questions of a source count together, with those that are refused; other requests don't."""
        waits = [0, 0, 1, 1, 0]
        definition = definition_of({"when": GET, "text": "{query:q}"}, {"when": {"only_keys": ["a"]}, "signed": False})
        asked = Handshakes(definition, (), source="hooks", take=lambda now: waits.pop(0))
        head = head_of("GET", "/?q=1")
        self.assertIsInstance(asked.by_head(head, {"q": "\n"}, 0.0), Refused)
        question = known_of(head_of("POST", "/"), {}, b'{"a":1}')
        message = known_of(head_of("POST", "/"), {}, b'{"a":1,"b":2}')
        self.assertIsNone(asked.before_signature(message, 0.0))
        self.assertIsInstance(asked.before_signature(question, 0.0), HandshakeAnswer)
        over = Refused(OVER_QUOTA, OVER_QUOTA.detail, "hooks", retry_after=1)
        self.assertEqual(asked.before_signature(question, 0.0), over)
        self.assertEqual(asked.by_head(head, {"q": "1"}, 0.0), over)
        self.assertIsNone(asked.before_signature(message, 0.0))
        self.assertIsInstance(asked.by_head(head, {"q": "1"}, 0.1), HandshakeAnswer)
        self.assertEqual([], waits)

    def test_secrets_hidden(self) -> None:
        """No secret is in what is shown of a source's questions, nor in a refusal."""
        secrets = secrets_of(app="hidden one", verify_token="hidden two")
        self.assertNotIn("hidden", repr(Handshakes(DEFINITIONS["meta"], secrets, source="a", take=any_number)))
        query = "hub.mode=subscribe&hub.challenge=1&hub.verify_token=hidden"
        self.assertNotIn("hidden", repr(ask(DEFINITIONS["meta"], "GET", f"/?{query}", secrets=secrets)))
