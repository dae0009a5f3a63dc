"""
Tests for L{webhookrx.senders.signatures.adyen}. The notification is that of the tests of Adyen's own library for Python
(test/UtilTest.py).
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.requests import check, head_of, verdict, verifier_of
from webhookrx.senders.signatures.adyen import MAX_NOTIFICATIONS
from webhookrx.senders.signatures.code_verifiers import CodeOptions, code_verifier
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.signed_request import SignedRequest

KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
OTHER = "11223344D785FBAE710E7F943F307971BB61B21281C98C9129B3D4018A57B2EB"
PUBLISHED: dict[str, Any] = {
    "pspReference": "7914073381342284",
    "merchantReference": "TestPayment-1407325143704",
    "merchantAccountCode": "TestMerchant",
    "amount": {"currency": "EUR", "value": 1130},
    "eventCode": "AUTHORISATION",
    "success": "true",
    "additionalData": {"hmacSignature": "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="},
}


def signed(text: str, key: str = KEY, **members: Any) -> dict[str, Any]:
    """Return a notification whose signature is of a text."""
    code = b64encode(hmac.digest(bytes.fromhex(key), text.encode(), "sha256")).decode()
    return {**members, "additionalData": {"hmacSignature": code}}


def judged(*notifications: Any, secrets: dict[str, str] | None = None) -> str:
    """Return the verdict on a body with some notifications."""
    verifier = verifier_of({"code": "adyen"}, secrets=secrets or {"a": KEY})
    items = [{"NotificationRequestItem": each} for each in notifications]
    return verdict(check(verifier, {}, msgspec.json.encode({"live": "false", "notificationItems": items})))


class AdyenTests(SynchronousTestCase):
    """What Adyen signs."""

    def test_name_twice(self) -> None:
        """A genuine notification can't carry another one under a name that is there before."""
        verifier = verifier_of({"code": "adyen"}, secrets={"a": KEY})
        forged, genuine = b'{"pspReference":"forged"}', msgspec.json.encode(PUBLISHED)
        items = b'{"NotificationRequestItem":%s}'
        for expected, body in (
            ("ok:a", b'{"notificationItems":[%s]}' % (items % genuine)),
            (
                "bad_signature",
                b'{"notificationItems":[%s],"notificationItems":[%s]}' % (items % forged, items % genuine),
            ),
            ("bad_signature", b'{"notificationItem\\u0073":[],"notificationItems":[%s]}' % (items % genuine)),
            (
                "bad_signature",
                b'{"notificationItems":[{"NotificationRequestItem":%s,"NotificationRequestItem":%s}]}'
                % (forged, genuine),
            ),
            (
                "bad_signature",
                b'{"notificationItems":[%s]}' % (items % genuine.replace(b"{", b'{"success":"false",', 1)),
            ),
        ):
            self.assertEqual(expected, verdict(check(verifier, {}, body)), body)

    def test_published(self) -> None:
        """A published notification verifies, alone and among others that do."""
        self.assertEqual("ok:a", judged(PUBLISHED))
        self.assertEqual("ok:a", judged(PUBLISHED, PUBLISHED))

    def test_all(self) -> None:
        """One notification that is not genuine makes the body bad, wherever it stands."""
        forged = {**PUBLISHED, "amount": {"currency": "EUR", "value": 9999}}
        unsigned = {**PUBLISHED, "additionalData": {}}
        for wrong in (forged, unsigned, None, {}, [], "x", {**PUBLISHED, "additionalData": "x"}):
            for notifications in ((wrong,), (PUBLISHED, wrong), (wrong, PUBLISHED)):
                self.assertEqual("bad_signature", judged(*notifications), wrong)

    def test_each_by_a_secret(self) -> None:
        """While a key is exchanged, each may be signed by another one; the first says which is told."""
        other = signed("1:::::::", OTHER, pspReference="1")
        self.assertEqual("bad_signature", judged(PUBLISHED, other))
        self.assertEqual("ok:new", judged(other, PUBLISHED, secrets={"old": KEY, "new": OTHER}))

    def test_no_text(self) -> None:
        """What is no text does not pass as a member that is missing."""
        self.assertEqual("ok:a", judged(signed("1:::::::", pspReference="1")))
        self.assertEqual("ok:a", judged(signed("1:::::::", pspReference="1", amount=None)))
        for amount in ("x", [1], {"value": ["999"], "currency": []}):
            self.assertEqual("bad_signature", judged(signed("1:::::::", pspReference="1", amount=amount)), amount)

    def test_other_bodies(self) -> None:
        """A body without notifications, or with too many, has no signature."""
        verifier = verifier_of({"code": "adyen"}, secrets={"a": KEY})
        for body in (b"", b"x", b"[]", b"{}", b'{"notificationItems":{}}', b'{"notificationItems":[]}'):
            self.assertEqual("signature_missing", verdict(check(verifier, {}, body)), body)
        self.assertEqual("signature_missing", judged(*[PUBLISHED] * (MAX_NOTIFICATIONS + 1)))

    def test_needs(self) -> None:
        """A key is written in hexadecimal digits; there must be one."""
        self.assertRaises(SecretError, verifier_of, {"code": "adyen"}, secrets={"a": "no digits"})
        self.assertRaises(SecretError, verifier_of, {"code": "adyen"}, secrets={})

    def test_sign(self) -> None:
        """It signs no request, since its signatures stand in the body."""
        way = verifier_of({"code": "adyen"}, secrets={"a": KEY}).ways[0]
        code = code_verifier(CodeOptions(way.scheme, (NamedSecret("a", KEY.encode()),), "", {}, None))
        self.assertRaises(SecretError, code.sign, "a", SignedRequest(head_of(), {}), 0)
