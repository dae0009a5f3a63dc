"""
Tests for L{webhookrx.senders.signatures.verifier}: which of several schemes a source's settings choose.
"""

from __future__ import annotations

import hmac

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import entry_of
from webhookrx.errors import BAD_SIGNATURE, SIGNATURE_MISSING
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.verifier import Verifier

ENTRY = entry_of(
    settings={"token": {"kind": "flag", "meaning": "Whether the token itself is sent."}},
    verify=[{"at": "header:x-sig"}, {"at": "header:x-token", "algorithm": "equal", "setting": "token"}],
)
SIGNATURE = hmac.new(b"key", b"body", "sha256").hexdigest()


def judged(settings: dict[str, str | bool | tuple[str, ...]], *lines: str) -> Verified | Unverified:
    """Return the verdict on a request with some header lines."""
    block = "\r\n".join(["POST / HTTP/1.1", *lines, "", ""]).encode()
    head = Head(b"POST", b"/", b"", HeaderLines(block), Peer("192.0.2.1", 4711, False))
    verifier = Verifier(ENTRY, [NamedSecret("one", b"key")], settings=settings)
    return verifier.begin(head, {}).finish(b"body", 0)


def reason(verdict: Verified | Unverified) -> object:
    """Return why a request proves nothing; how it does, when it does."""
    return verdict.reason if isinstance(verdict, Unverified) else verdict.kind


class ChoiceTests(SynchronousTestCase):
    """Schemes that a flag chooses."""

    def test_not_set(self) -> None:
        """Without the flag a token counts for nothing, whatever the request lacks."""
        for settings in ({}, {"token": False}):
            self.assertEqual("signature", reason(judged(settings, f"x-sig: {SIGNATURE}")))
            self.assertEqual(SIGNATURE_MISSING, reason(judged(settings, "x-token: key")))

    def test_set(self) -> None:
        """With the flag the scheme that it names counts, and no other."""
        self.assertEqual("token", reason(judged({"token": True}, "x-token: key")))
        self.assertEqual(BAD_SIGNATURE, reason(judged({"token": True}, "x-token: other")))
        self.assertEqual(SIGNATURE_MISSING, reason(judged({"token": True}, f"x-sig: {SIGNATURE}")))

    def test_blanks_in_a_list(self) -> None:
        """A blank behind a comma belongs to no name."""
        entry = entry_of(verify={"at": "header:x-sig", "items": ",", "signature": "v1", "signed": "{item:t}.{body}"})
        verifier = Verifier(entry, [NamedSecret("one", b"key")])
        signature = hmac.new(b"key", b"7.body", "sha256").hexdigest()
        for value in (f"t=7,v1={signature}", f"t=7, v1={signature}"):
            lines = HeaderLines(f"POST / HTTP/1.1\r\nx-sig: {value}\r\n\r\n".encode())
            head = Head(b"POST", b"/", b"", lines, Peer("192.0.2.1", 4711, False))
            self.assertIsInstance(verifier.begin(head, {}).finish(b"body", 0), Verified)
