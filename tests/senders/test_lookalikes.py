"""
Tests that nobody is taken for a known sender who is none: what people have made themselves, what their loggers write,
and what others send.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import evidence_of
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definitions import builtin_definitions

CLASSIFIER = Classifier(builtin_definitions())

OTHERS = Path(__file__).with_name("lookalikes.yaml")

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
LOOKALIKES = (
    ("an address check of Lark", {"challenge": "c", "token": "t", "type": "url_verification"}, JSON),
    ("a slash command of Mattermost", b"command=%2Fweather&team_domain=acme&response_url=http%3A%2F%2Fa&token=t", FORM),
    ("a call of SignalWire", b"AccountSid=00000000-0000-4000-8000-000000000000&CallSid=1&CallStatus=ringing", FORM),
    ("a push of Gitea", {"ref": "a", "repository": {"full_name": "a/b"}, "sender": {"id": 1, "login": "a"}}, JSON),
    ("an event of GitHub's shape in a form", b"payload=%7B%22sender%22%3A%7B%22login%22%3A%22a%22%7D%7D", FORM),
    ("an event of somebody's own", {"object": "event", "id": "1", "type": "x", "created": 1, "livemode": False}, JSON),
    ("a message queue's own", {"Type": "Notification", "MessageId": "1", "TopicArn": "topic", "Message": "x"}, JSON),
    ("records of somebody's own", {"requestId": "1", "timestamp": 1, "records": [{"key": "x"}]}, JSON),
    ("an event of an application", {"event": "user.created", "event_ts": 1, "payload": {"id": 1}}, JSON),
    ("an action of an application", {"action": "created", "installation": {"id": 1}, "data": {"issue": {}}}, JSON),
    ("an event with a name", {"event_name": "user_signed_up", "created_at": "x", "updated_at": "x", "id": 1}, JSON),
    ("an event of a service", {"event": {"event_type": "a", "occurred_at": "2026-01-01T00:00:00Z"}}, JSON),
    ("a job of a builder", {"event": "build.finished", "sender": {}, "build": {"web_url": "https://ci.acme"}}, JSON),
)
"""What it is, body, media type."""


class LookalikeTests(SynchronousTestCase):
    """Requests that look like those of a known sender."""

    def assert_unknown(self, what: str, body: Any, headers: dict[str, str]) -> None:
        """Fail when somebody is said to have sent a request."""
        match = CLASSIFIER.classify(evidence_of(body, headers), last_resort=False)
        self.assertIsNone(match and (match.sender.id, match.why), what)

    def test_nearly(self) -> None:
        """Bodies that are made like those of a known sender are not taken for it."""
        for name, body, media_type in LOOKALIKES:
            self.assert_unknown(name, body, {"Content-Type": media_type})

    def test_others(self) -> None:
        """Bodies of loggers, of other senders and of somebody's own are of nobody who is known."""
        for case in yaml.safe_load(OTHERS.read_bytes()):
            body = case["body"]
            raw = body.encode() if isinstance(body, str) else body
            self.assert_unknown(case["what"], raw, {"Content-Type": JSON} | case.get("headers", {}))
