"""
Tests for L{webhookrx.senders.signatures.twilio}. The first three requests are those of the tests of Twilio's own
library for Python (tests/unit/test_request_validator.py).
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from hashlib import sha256

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.requests import check, head_of, verdict, verifier_of
from webhookrx.senders.signatures.code_verifiers import CodeOptions, code_verifier
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.signed_request import SignedRequest

SCHEME = {"code": "twilio", "at": "header:x-twilio-signature"}
TARGET = "/myapp.php?foo=1&bar=2"
DIGEST = "0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"
FORM = b"CallSid=CA1234567890ABCDE&Digits=1234&From=%2B14158675309&To=%2B18005551212&Caller=%2B14158675309"
SIGNED = "RSOYDt4T1cUTdK1PDd93/VVr8B8="
JSON = b'{"property": "value", "boolean": true}'
AS_FORM = {"content-type": "application/x-www-form-urlencoded; charset=UTF-8"}


def judged(
    body: bytes,
    signature: str,
    target: str = TARGET,
    *,
    url: str = "https://mycompany.com",
    headers: dict[str, str] | None = None,
) -> str:
    """Return the verdict on a request."""
    verifier = verifier_of(SCHEME, secrets={"old": "x", "a": "12345"}, public_url=url)
    return verdict(check(verifier, {"x-twilio-signature": signature, **(headers or {})}, body, url=target))


def code(text: bytes) -> str:
    """Return the signature of a text."""
    return b64encode(hmac.digest(b"12345", text, "sha1")).decode()


class TwilioTests(SynchronousTestCase):
    """What Twilio signs."""

    def test_published(self) -> None:
        """A form, a form with a repeated value, and JSON with its digest in the URL verify."""
        self.assertEqual("ok:a", judged(FORM, SIGNED, headers=AS_FORM))
        self.assertEqual("ok:a", judged(FORM, SIGNED))
        twice = b"Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234"
        self.assertEqual("ok:a", judged(twice, "IK+Dwps556ElfBT0I3Rgjkr1wJU="))
        self.assertEqual("ok:a", judged(JSON, "a9nBmqA0ju/hNViExpshrM61xv4=", f"{TARGET}&bodySHA256={DIGEST}"))

    def test_escapes(self) -> None:
        """A query may be signed with its apostrophes escaped, or written anew; and in no other way."""
        for target, signed, expected in (
            ("/h?a=it's", b"/h?a=it%27s", "ok:a"),
            ("/h?a=it%27s", b"/h?a=it's", "ok:a"),
            ("/h?a=x+y", b"/h?a=x%20y", "ok:a"),
            ("/h?a=x%20y", b"/h?a=x+y", "bad_signature"),
            ("/h?a=%2f&b=a:b", b"/h?a=%2F&b=a%3Ab", "ok:a"),
            ("/h?a&&b=2", b"/h?a=&b=2", "ok:a"),
            ("/h?a=1&b=2&a=3", b"/h?a=1&a=3&b=2", "ok:a"),
            ("/h?a=1&b=2", b"/h?b=2&a=1", "bad_signature"),
            ("/h?a=1", b"/h", "bad_signature"),
            ("/it's", b"/it%27s", "bad_signature"),
        ):
            for url in (b"https://mycompany.com", b"https://mycompany.com:443"):
                self.assertEqual(expected, judged(b"", code(url + signed), target), (target, signed))

    def test_ports(self) -> None:
        """The default port may be there or not, in the URL that we know as in that which Twilio signs."""
        for url in ("https://mycompany.com", "https://mycompany.com:443"):
            for signed in (b"https://mycompany.com", b"https://mycompany.com:443"):
                self.assertEqual("ok:a", judged(b"a=b", code(signed + b"/x" + b"ab"), "/x", url=url))
        self.assertEqual("bad_signature", judged(b"a=b", code(b"https://mycompany.com:8443/xab"), "/x"))

    def test_shared_key(self) -> None:
        """With a shared key the code is of SHA-256."""
        text = b"https://mycompany.com/xab"
        good = b64encode(hmac.digest(b"12345", text, "sha256")).decode()
        self.assertEqual("ok:a", judged(b"a=b", good, "/x"))
        self.assertEqual("bad_signature", judged(b"a=c", good, "/x"))
        other = b64encode(hmac.digest(b"12345", text, "sha512")).decode()
        self.assertEqual("signature_missing", judged(b"a=b", other, "/x"))

    def test_changed(self) -> None:
        """Another body, URL or digest is refused, and so is what says nothing about the body."""
        signature = "a9nBmqA0ju/hNViExpshrM61xv4="
        target = f"{TARGET}&bodySHA256={DIGEST}"
        empty = sha256(b"").hexdigest()
        for body, signed, path in (
            (FORM + b"1", SIGNED, TARGET),
            (FORM, SIGNED, TARGET + "0"),
            (JSON + b" ", signature, target),
            (b"", signature, target),
            (b"a=b", signature, target),
            (JSON, signature, f"{target}&bodySHA256={DIGEST}"),
            (JSON, code(b"https://mycompany.com/x"), "/x"),
            (b"&&", code(b"https://mycompany.com/x"), "/x"),
            (b"&", code(f"https://mycompany.com/x?bodySHA256={empty}".encode()), f"/x?bodySHA256={empty}"),
        ):
            self.assertEqual("bad_signature", judged(body, signed, path), (body, path))
        as_json = {"content-type": "application/json"}
        text = b"https://mycompany.com/x" + JSON
        self.assertEqual("bad_signature", judged(JSON, code(text), "/x", headers=as_json))

    def test_no_body(self) -> None:
        """Without a body, the URL is all that is signed."""
        self.assertEqual("ok:a", judged(b"", code(b"https://mycompany.com/x"), "/x"))

    def test_whole_url(self) -> None:
        """Where the whole URL is given, a digest behind it that nobody has signed proves nothing."""
        whole = "https://mycompany.com/hook"
        target = f"/hook?bodySHA256={sha256(JSON).hexdigest()}"
        headers = {"content-type": "application/json"}
        signature = code(whole.encode())
        self.assertEqual("ok:a", judged(b"", signature, "/hook", url=whole))
        self.assertEqual("bad_signature", judged(JSON, signature, target, url=whole, headers=headers))
        signed = "https://mycompany.com" + target
        self.assertEqual("ok:a", judged(JSON, code(signed.encode()), target, url=signed, headers=headers))

    def test_missing(self) -> None:
        """No signature, or one that is not written as it should be, is none."""
        self.assertEqual("signature_missing", judged(FORM, ""))
        self.assertEqual("signature_missing", judged(FORM, SIGNED.rstrip("=")))

    def test_needs(self) -> None:
        """It can't be used without the URL that Twilio knows, or without a secret."""
        self.assertRaises(SecretError, verifier_of, SCHEME, secrets={"a": "12345"})
        self.assertRaises(SecretError, verifier_of, SCHEME, secrets={}, public_url="https://mycompany.com")

    def test_sign(self) -> None:
        """What it signs itself, it accepts; a body that is no form needs its digest in the URL."""
        way = verifier_of(SCHEME, secrets={"a": "12345"}, public_url="https://mycompany.com").ways[0]
        options = CodeOptions(way.scheme, (NamedSecret("a", b"12345"),), "https://mycompany.com", {}, None)
        request = SignedRequest(head_of(AS_FORM, url=TARGET), {"foo": "1", "bar": "2"}, "https://mycompany.com")
        request.body = FORM
        self.assertEqual({b"x-twilio-signature": SIGNED.encode()}, code_verifier(options).sign("a", request, 0))
        request = SignedRequest(head_of({"content-type": "text/plain"}), {}, "https://mycompany.com")
        request.body = b"text"
        self.assertRaises(SecretError, code_verifier(options).sign, "a", request, 0)
