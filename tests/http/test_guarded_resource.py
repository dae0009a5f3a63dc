"""
Tests for L{webhookrx.http.guarded_resource}: what senders are told, and which messages come of it.
"""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from tests.http.guarded_wire import GuardedWire, sender_named
from tests.http.wire import Response, post

SECRETS = {"old": b"first secret", "new": b"second secret"}
DELIVERY = b"X-GitHub-Event: push\r\nX-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958\r\n"
BODY = b'{"zen":"Keep it logically awesome."}'


def github(**options: object) -> GuardedWire:
    """Return a site that hears GitHub alone."""
    return GuardedWire(sender_named("github"), SECRETS, **options)  # type: ignore[arg-type]


class GuardedCase(SynchronousTestCase):
    def assert_refused(self, site: GuardedWire, answer: Response, status: int, reason: str) -> None:
        """Fail unless a request was refused for this reason, nothing became of it, and it was counted."""
        self.assertEqual((status, reason), (answer.status, json.loads(answer.body)["reason"]))
        self.assertEqual(([], [("guarded", reason)]), (site.messages, site.traffic.refused_by))


class SignatureTests(GuardedCase):
    """Signed requests."""

    def test_verified(self) -> None:
        """A signed request is a message that says by which secret, by name, and which delivery it was."""
        site = github()
        answer = site.ask(site.signed(BODY, "new", DELIVERY))
        self.assertEqual((200, b'{"status":"received"}'), (answer.status, answer.body))
        (message,) = site.messages
        self.assertEqual(
            {
                "webhook.sender": "github",
                "webhook.verified": "signature",
                "webhook.secret": "new",
                "webhook.delivery_id": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            },
            {name: value for name, value in message.items() if name.startswith("webhook.")},
        )
        self.assertEqual([("guarded", "new")], site.traffic.verifications)

    def test_missing(self) -> None:
        """Without a signature it is refused."""
        site = github()
        answer = site.ask(post(BODY, b"/in", DELIVERY))
        self.assert_refused(site, answer, 401, "signature_missing")
        self.assertEqual("Signature", answer.headers["www-authenticate"])

    def test_changed(self) -> None:
        """A body that was changed is refused."""
        site = github()
        answer = site.ask(site.signed(BODY, "new", DELIVERY).replace(b"awesome", b"hostile"))
        self.assert_refused(site, answer, 401, "bad_signature")
