"""
Tests for L{webhookrx.senders.signatures.contentful}.
"""

from __future__ import annotations

import hmac

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.requests import SECOND, check, head_of, verdict, verifier_of
from webhookrx.senders.signatures.code_verifiers import CodeOptions, code_verifier
from webhookrx.senders.signatures.contentful import MAX_HEADERS
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.signed_request import SignedRequest

SCHEME = {"code": "contentful", "at": "header:x-contentful-signature"}
NAMES = "x-contentful-signed-headers,x-contentful-timestamp,X-Contentful-Topic"
HEADERS = {
    "x-contentful-signed-headers": NAMES,
    "x-contentful-timestamp": "1772439301123",
    "x-contentful-topic": "ContentManagement.Entry.save",
}
NOW = 1772439301.0
CANONICAL = (
    b"POST\n/a%2520b?c%253D1%2526d%253Dx%252520y\n"
    b"x-contentful-signed-headers:x-contentful-signed-headers,x-contentful-timestamp,X-Contentful-Topic;"
    b"x-contentful-timestamp:1772439301123;x-contentful-topic:ContentManagement.Entry.save\n{}"
)
TARGET = "/a%20b?c=1&d=x%20y"


def judged(canonical: bytes = CANONICAL, body: bytes = b"{}", now: float = NOW, url: str = "", **changed: str) -> str:
    """Return the verdict on a request whose signature is that of a text; with some headers changed."""
    code = hmac.digest(b"key", canonical, "sha256").hex()
    headers = HEADERS | {"x-contentful-signature": code}
    headers |= {f"x-contentful-{name.replace('_', '-')}": value for name, value in changed.items()}
    verifier = verifier_of(SCHEME, secrets={"old": "x", "a": "key"}, public_url=url)
    return verdict(check(verifier, {name: text for name, text in headers.items() if text}, body, url=TARGET, now=now))


class ContentfulTests(SynchronousTestCase):
    """What Contentful signs."""

    def test_good(self) -> None:
        """Method, path, the listed headers and the body are signed; the query is escaped twice."""
        self.assertEqual("ok:a", judged())
        self.assertEqual("ok:a", judged(url="https://logs.example"))

    def test_behind_a_proxy(self) -> None:
        """The path is that which Contentful knows."""
        canonical = CANONICAL.replace(b"/a%2520b?c%253D1%2526d%253Dx%252520y", b"/hooks/1")
        self.assertEqual("ok:a", judged(canonical, url="https://logs.example/hooks/1"))
        self.assertEqual("bad_signature", judged(canonical))

    def test_changed(self) -> None:
        """Another body or header is refused, and a list that leaves out the time."""
        self.assertEqual("bad_signature", judged(body=b"{ }"))
        self.assertEqual("bad_signature", judged(topic="ContentManagement.Entry.delete"))
        self.assertEqual("bad_signature", judged(topic=""))
        self.assertEqual("bad_signature", judged(signed_headers=""))
        without = CANONICAL.replace(b"x-contentful-timestamp:1772439301123;", b"").replace(
            b",x-contentful-timestamp,", b","
        )
        listed = "x-contentful-signed-headers,X-Contentful-Topic"
        self.assertEqual("bad_signature", judged(without, signed_headers=listed))
        many = ",".join(f"x-{number}" for number in range(MAX_HEADERS + 1))
        self.assertEqual("bad_signature", judged(signed_headers=many))

    def test_time(self) -> None:
        """A genuine request is stale after 30 seconds, and so is one from the future, or without a readable time."""
        self.assertEqual("ok:a", judged(now=1772439301.123 + 30))
        for now in (1772439301.123 + 30.1, 1772439301.123 - 30.1):
            self.assertEqual("stale_signature", judged(now=now))
        for time in ("+1772439301123", "soon", "9" * 17):
            canonical = CANONICAL.replace(b"1772439301123", time.encode())
            self.assertEqual("stale_signature", judged(canonical, timestamp=time), time)

    def test_missing(self) -> None:
        """No signature, or one that is not written as it should be, is none."""
        self.assertEqual("signature_missing", judged(signature=""))
        self.assertEqual("signature_missing", judged(signature="xyz"))

    def test_needs(self) -> None:
        """There must be a secret."""
        self.assertRaises(SecretError, verifier_of, SCHEME, secrets={})

    def test_sign(self) -> None:
        """What it signs itself, it accepts; what it should sign must be there."""
        way = verifier_of(SCHEME, secrets={"a": "key"}).ways[0]
        code = code_verifier(CodeOptions(way.scheme, (NamedSecret("a", b"key"),), "", {}, None))
        request = SignedRequest(head_of({"x-contentful-topic": "a"}, url=TARGET), {})
        request.body = b"body"
        made = code.sign("a", request, int(NOW * SECOND))
        headers = {name.decode(): value.decode() for name, value in made.items()}
        verifier = verifier_of(SCHEME, secrets={"a": "key"})
        self.assertEqual("ok:a", verdict(check(verifier, headers, b"body", url=TARGET, now=NOW)))
        lost = SignedRequest(head_of({"x-contentful-signed-headers": "x-lost"}), {})
        self.assertRaises(SecretError, code.sign, "a", lost, 0)
