"""
Tests for L{webhookrx.senders.signatures.pieces}.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.requests import check, verdict, verifier_of
from webhookrx.senders.signatures.pieces import feed, hmac_of, pieces_of
from webhookrx.yield_point import PIECE, pause_by

#: A long text; in one call, so many digests of it would hold others up.
_LONG = b"x" * (20 * PIECE)
_SECRETS = {str(number): f"{number:064}" for number in range(8)}


def _pauses(work: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a function returns, and at how many places it lets others go first."""
    pauses: list[None] = []

    def run() -> Any:
        pause_by(lambda: pauses.append(None))
        return work()

    # A pause belongs to a thread, and ends with it.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result(), len(pauses)


class PiecesTests(SynchronousTestCase):
    """Digests in pieces."""

    def test_same(self) -> None:
        """They are what they would be in one call, whatever the size."""
        for size in (0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE):
            text = b"a" * size
            self.assertEqual(text, b"".join(pieces_of(text)))
            self.assertEqual(hmac.digest(b"k", b"ab" + text, "sha1"), hmac_of(b"k", "sha1", b"ab", text))
            contexts = [hashlib.sha256(), hashlib.sha256(b"b")]
            feed(contexts, text)
            self.assertEqual(
                [hashlib.sha256(text).digest(), hashlib.sha256(b"b" + text).digest()],
                [each.digest() for each in contexts],
            )

    def test_lets_others_go(self) -> None:
        """Whatever part of a request is long, each key takes it in pieces, also where all of it is refused."""
        code = b64encode(b"x" * 32).decode()
        form = {"content-type": "application/x-www-form-urlencoded", "s": code}
        item = (
            b'{"notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"%s"},'
            b'"pspReference":"%s"}}]}'
        )
        pointed = {"at": "header:s", "encoding": "base64", "signed": "{/a}{body}{/b}"}
        members = b'{"a":"%s","b":"%s"}' % (_LONG, _LONG)
        for scheme, headers, body in (
            ({"code": "twilio", "at": "header:s"}, form, b"a=" + _LONG),
            ({"code": "adyen"}, {}, item % (code.encode(), _LONG)),
            (pointed, form, members),
            (pointed | {"signed": "{/a}{body}{secret}{/b}", "algorithm": "sha256"}, form, members),
        ):
            verifier = verifier_of(scheme, secrets=_SECRETS, public_url="https://a.example")
            outcome, pauses = _pauses(
                lambda verifier=verifier, headers=headers, body=body: check(verifier, headers, body)
            )
            self.assertEqual("bad_signature", verdict(outcome), scheme)
            self.assertGreater(pauses, len(_SECRETS) * 19, scheme)

    def test_many_elements(self) -> None:
        """A long array of secrets is looked at in pieces, too; the same ones are one."""
        verifier = verifier_of({"at": "/v/*/s", "algorithm": "equal"}, secrets={"a": "s"})
        for element, expected in (
            (b'{"s":"s"}', "ok:a"),
            (b'{"s":"t"}', "bad_signature"),
            (b"{}", "signature_missing"),
        ):
            body = b'{"v":[' + b'{"s":"s"},' * 9_999 + element + b"]}"
            outcome, pauses = _pauses(lambda body=body: check(verifier, {}, body))
            self.assertEqual(expected, verdict(outcome))
            self.assertGreaterEqual(pauses, 10)

    def test_no_long_signature(self) -> None:
        """A text in a body that is far too long for a signature is none, and is not read as one."""
        verifier = verifier_of({"at": "/s", "encoding": "base64", "signed": "{/t}"}, secrets={"a": "s"})
        body = b'{"t":"1","s":"%s"}' % (b"eHh4" * PIECE)
        self.assertEqual("signature_missing", verdict(check(verifier, {}, body)))
