"""Tests for L{webhookrx.service.subscriptions}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.service.subscriptions import Subscriptions

_TOPIC = "arn:aws:sns:us-east-1:123456789012:ours"
_URL = f"https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn={_TOPIC}&Token=t0ken"
_QUESTION = {
    "Type": "SubscriptionConfirmation",
    "MessageId": "m1",
    "Token": "t0ken",
    "TopicArn": _TOPIC,
    "SubscribeURL": _URL,
}
_WANTED = {"topics": (_TOPIC,), "confirm": True}


class SubscriptionTests(SynchronousTestCase):
    """Subscriptions that wait."""

    def setUp(self) -> None:
        self.fetched: list[tuple[str, Callable[[bytes], None]]] = []
        self.begins = True
        self.heard: list[str] = []
        self.subscriptions = Subscriptions(self._fetch)
        self.addCleanup(globalLogPublisher.removeObserver, self._hear)
        globalLogPublisher.addObserver(self._hear)

    def _fetch(self, url: str, done: Callable[[bytes], None]) -> bool:
        self.fetched.append((url, done))
        return self.begins

    def _hear(self, event: Any) -> None:
        self.heard.append(formatEvent(event))

    def _stored(self, settings: Any, **members: Any) -> str:
        """Have a message stored, and return the last line of the log."""
        self.subscriptions.stored(settings, msgspec.json.encode(_QUESTION | members))
        return self.heard[-1] if self.heard else ""

    def test_confirmed(self) -> None:
        """Where the operator wants it, the URL of the question is asked for, once it is stored."""
        self.assertEqual("", self._stored(_WANTED))
        ((url, done),) = self.fetched
        self.assertEqual(_URL, url)
        done(b"<ConfirmSubscriptionResponse/>")
        self.assertEqual([f"The subscription to {_TOPIC} is confirmed"], self.heard)

    def test_not_wanted(self) -> None:
        """Elsewhere, and where its URL does anything else, the log says which command confirms, without the token."""
        for settings, members in (
            ({"topics": (_TOPIC,)}, {}),
            ({"topics": (_TOPIC,), "confirm": False}, {}),
            (_WANTED, {"SubscribeURL": _URL.replace("ConfirmSubscription", "Unsubscribe")}),
            (_WANTED, {"SubscribeURL": "https://169.254.169.254/latest"}),
        ):
            line = self._stored(settings, **members)
            self.assertIn(f"aws sns confirm-subscription --topic-arn {_TOPIC} --token", line)
            self.assertIn("message m1", line)
            self.assertNotIn("t0ken", line)
        self.assertEqual([], self.fetched)

    def test_others(self) -> None:
        """Other messages ask for nothing, whatever their text holds."""
        for members in ({"Type": "Notification", "Message": "SubscriptionConfirmation"}, {"Type": 7}):
            self.assertEqual("", self._stored(_WANTED, **members))
        self.subscriptions.stored(_WANTED, b"SubscriptionConfirmation")
        self.assertEqual(([], []), (self.fetched, self.heard))

    def test_too_many(self) -> None:
        """A question for which there is no turn is told of."""
        self.begins = False
        self.assertIn("can't be confirmed now", self._stored(_WANTED))
