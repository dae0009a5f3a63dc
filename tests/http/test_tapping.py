"""
Tests for L{webhookrx.http.resources}: looking at decisions, for taps.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Wire, post
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Admission, Dropped, Judge, Receipt, Refused


class TapTests(SynchronousTestCase):
    """Tests for L{WebhookResource.tap}."""

    def setUp(self) -> None:
        self.wire = Wire({"/one": {"name": "one", "parse_json": True, "keep_unparsed": False}, "/two": {"name": "two"}})
        self.looks: list[tuple[str, Any]] = []

    def looked_at(self, judge: Judge) -> Judge:
        """Return a decision that is looked at."""

        def judged(head: Head, admission: Admission, body: bytes, receipt: Receipt) -> Accepted | Dropped | Refused:
            verdict = judge(head, admission, body, receipt)
            self.looks.append((admission.rules.name, verdict))
            return verdict

        return judged

    def test_look(self) -> None:
        """Each decision on a body of that source is looked at, and means what it did before; others are not."""
        before = self.wire.ask(post(b'{"a":"1"}', b"/one"))
        self.wire.root.sources["one"].tap(self.looked_at)
        after = self.wire.ask(post(b'{"a":"1"}', b"/one"))
        self.wire.ask(post(b"no JSON", b"/one"))
        self.wire.ask(post(b"x", b"/two"))

        self.assertEqual((before.status, before.body), (after.status, after.body))
        self.assertEqual([source for source, _ in self.looks], ["one", "one"])
        (_, accepted), (_, refused) = self.looks
        self.assertIsInstance(accepted, Accepted)
        self.assertIs(accepted.message, self.wire.consumer.messages[1])
        self.assertEqual(self.wire.messages[0]["a"], self.wire.messages[1]["a"])
        self.assertIsInstance(refused, Refused)

    def test_end(self) -> None:
        """Once nobody looks, a source decides as if nobody ever had."""
        resource = self.wire.root.sources["one"]
        as_it_was = dict(vars(resource))
        resource.tap(self.looked_at)
        resource.tap(self.looked_at)
        resource.tap(None)
        self.wire.ask(post(b'{"a":"1"}', b"/one"))
        self.assertEqual(self.looks, [])
        self.assertEqual({**as_it_was, "_untapped": None}, vars(resource))
