"""
Tests for L{webhookrx.router.connector_intake}: messages of senders that have proved who they are.
"""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.http.guarded_wire import GuardedWire, sender_named
from tests.http.wire import post
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Accepted, Admission, Receipt
from webhookrx.intake.provenance import BatchPlace, Provenance
from webhookrx.message.encoders import encode_line
from webhookrx.router.connector_intake import ConnectorRules, judge_connector, judge_connector_for_lines
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import Preprocessing, SetField, Step
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definitions import builtin_definitions

CLASSIFIER = Classifier(builtin_definitions())
FULL = Provenance("github", "signature", "new", "edge", "d-1", "2", 1_767_323_045_000_000_000)


def rules(*steps: Step, classify: bool = False) -> ConnectorRules:
    """Return the rules of a connector."""
    return ConnectorRules(
        "edge",
        port=8443,
        labels={"product": "webhook", "vendor": "generic"},
        router="edge-1",
        router_labels={},
        processing=Processing(Preprocessing(classify=classify, steps=steps), CLASSIFIER),
        body_limit=1000,
        unpack_ratio=100,
    )


class RecordTests(SynchronousTestCase):
    """What such messages say."""

    def meta(self, provenance: Provenance, *steps: Step, classify: bool = False, body: bytes = b"{}") -> Any:
        """Return C{meta} of a message, the same by both paths."""
        made = rules(*steps, classify=classify)
        head = Head(b"POST", b"/", None, ((b"x-gitlab-event", b"Push Hook"),), Peer("192.0.2.7", 40000, False))
        lines = set()
        for judge in (judge_connector, judge_connector_for_lines):
            verdict = judge(head, Admission(made, {}, {}, [], provenance), body, Receipt(1, "id-1"))
            assert isinstance(verdict, Accepted)
            lines.add(encode_line(verdict.message))
            self.assertEqual(json.loads(encode_line(verdict.message)), verdict.message.values)
        (line,) = lines
        return json.loads(line)["meta"]

    def test_all(self) -> None:
        """All that is known is below C{meta}, and nothing of the kind where nothing was asked for."""
        place = BatchPlace(2, 3, b'{"status":"firing"}')
        meta = self.meta(Provenance(**{name: getattr(FULL, name) for name in FULL.__struct_fields__[:-1]}, batch=place))
        self.assertEqual(
            {
                "id": "github",
                "verified": "signature",
                "secret": "new",
                "delivery_id": "d-1",
                "attempt": "2",
                "signed_at": "2026-01-02T03:04:05Z",
            },
            meta["sender"],
        )
        self.assertEqual("edge", meta["connection"]["token"])
        self.assertEqual({"index": 2, "count": 3, "envelope": {"status": "firing"}}, meta["batch"])
        meta = self.meta(None)  # type: ignore[arg-type]
        self.assertEqual((False, False, False), ("sender" in meta, "batch" in meta, "token" in meta["connection"]))

    def test_classified(self) -> None:
        """Classify sets the sender that was proved, whatever the request looks like; and keeps what is known of it."""
        meta = self.meta(FULL, classify=True)
        self.assertEqual({"rule": "github", "confidence": "proved", "why": "proved by signature"}, meta["classify"])
        self.assertEqual(("github", "signature"), (meta["vendor"], meta["sender"]["verified"]))

    def test_not_proved(self) -> None:
        """Where nothing is proved, Classify goes by the request."""
        meta = self.meta(Provenance("github"), classify=True)
        self.assertEqual(("gitlab", "high"), (meta["classify"]["rule"], meta["classify"]["confidence"]))
        self.assertEqual({"id": "github", "verified": "no"}, meta["sender"])

    def test_conditions(self) -> None:
        """Conditions of steps can ask for all of it."""
        step = Step(set=SetField("meta.seen", "yes"), condition="meta.sender.verified = signature")
        self.assertEqual("yes", self.meta(FULL, step).get("seen"))
        self.assertIsNone(self.meta(Provenance("github"), step).get("seen"))


class GuardedConnectorTests(SynchronousTestCase):
    """A guarded connector at both ends."""

    def test_connector(self) -> None:
        """A signed request is a message of the sender; any other is refused."""
        site = GuardedWire(sender_named("github"), {"main": b"s3cr3t"})
        site.guard_with(rules(classify=True), judge=judge_connector, for_lines=judge_connector_for_lines)
        self.assertEqual(200, site.ask(site.signed(b'{"a":1}', "main", b"X-GitHub-Delivery: d-1\r\n")).status)
        self.assertEqual(401, site.ask(post(b'{"a":1}', b"/in")).status)
        (message,) = site.messages
        self.assertEqual({"a": 1}, message["log"]["body"])
        self.assertEqual(
            {"id": "github", "verified": "signature", "secret": "main", "delivery_id": "d-1"}, message["meta"]["sender"]
        )
        self.assertEqual("proved", message["meta"]["classify"]["confidence"])

    def test_split(self) -> None:
        """Each event is a C{log.body} of its own, with the envelope as an object."""
        site = GuardedWire(sender_named("alertmanager"), split="yes")
        site.guard_with(rules(), judge=judge_connector, for_lines=judge_connector_for_lines)
        body = b'{"status":"firing","alerts":[{"a":1},{"a":2}]}'
        self.assertEqual(200, site.ask(post(body, b"/in")).status)
        said = [(each["log"]["body"], each["meta"]["batch"], each["meta"]["id"]) for each in site.messages]
        envelope = {"status": "firing"}
        self.assertEqual(
            [
                ({"a": 1}, {"index": 1, "count": 2, "envelope": envelope}, "id-1-1"),
                ({"a": 2}, {"index": 2, "count": 2, "envelope": envelope}, "id-1-2"),
            ],
            said,
        )
