"""
Tests for L{webhookrx.http.resources}: connectors of the router form.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import AtOnce, Wire, post
from webhookrx.errors import NoRoom, NotStored
from webhookrx.http.resources import RootResource, WebhookResource
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Receipt, admit
from webhookrx.router.connector_intake import ConnectorRules, judge_connector
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import Preprocessing, Step
from webhookrx.testing import RECEIVED

NAME = "edge-1-hooks-in"
DROP = Step(select="NOT log.body.level = debug", label="no debug")
FAIL = Step(expression="log.body.n = int(log.body.text);", condition="log.body.text EXISTS", label="number")
PROBE = Step(probe="end")


class ConnectorResourceTests(SynchronousTestCase):
    """
    One connector behind a site.
    """

    def build(self, *steps: Step) -> None:
        """Make a site with a connector of these steps."""
        self.wire = Wire()
        self.consumer, self.traffic = self.wire.consumer, self.wire.traffic
        rules = ConnectorRules(
            NAME,
            port=8181,
            labels={"product": "webhook", "vendor": "generic"},
            router="edge-1",
            router_labels={},
            processing=Processing(Preprocessing(steps=steps), None),
            body_limit=100,
            unpack_ratio=100,
        )
        self.resource = WebhookResource(
            rules, self.consumer, self.traffic, lambda: Receipt(RECEIVED, "id"), AtOnce(), judge_connector
        )
        self.wire.site.use(RootResource([("/in", self.resource)], self.traffic), self.wire.limits)

    def ask(self, body: bytes, headers: bytes = b"") -> int:
        """Post a body; return the status."""
        return self.wire.ask(post(body, headers=headers)).status

    def bodies(self) -> list[Any]:
        """Return the bodies of all messages."""
        return [message.values["log"]["body"] for message in self.consumer.messages]

    def test_kept(self) -> None:
        """A request becomes one message, which is counted; whether its body is text is counted, too."""
        self.build()
        self.assertEqual([200, 200], [self.ask(b'{"a":1}'), self.ask(b"[1]")])
        self.assertEqual([{"a": 1}, "[1]"], self.bodies())
        self.assertEqual([(NAME, (), 0), (NAME, ("text_body",), 0)], self.traffic.acceptances)
        self.assertEqual([7, 3], self.traffic.sizes)
        self.assertEqual([NAME, NAME], [source for source, _ in self.traffic.answers])
        self.assertEqual([], self.traffic.processings)

    def test_dropped(self) -> None:
        """What a step drops gets its 200 at once and is counted as an answer, but is no message."""
        self.build(DROP, PROBE)
        self.assertEqual([200, 200], [self.ask(b'{"level":"debug"}'), self.ask(b'{"level":"info"}')])
        self.assertEqual([{"level": "info"}], self.bodies())
        self.assertEqual(1, len(self.traffic.acceptances))
        self.assertEqual(2, len(self.traffic.answers))
        self.assertEqual(
            [(NAME, (("dropped", "no debug"),), ""), (NAME, (("probe", "end"),), "")], self.traffic.processings
        )

    def test_dropped_and_gone(self) -> None:
        """An answer that nobody gets any more is not counted as one."""
        self.build(DROP)
        head = Head(b"POST", b"/in", b"", (), Peer("192.0.2.7", 40000, False))
        sender = self.wire.connect()
        sender.send(post(b"x")[:-1])
        sender.leave()
        exchange: Any = SimpleNamespace(
            head=head, admission=admit(head, self.resource.rules, {}), acknowledged=sender.protocol.acknowledged
        )
        self.resource.receive(exchange, b'{"level":"debug"}')
        self.assertEqual(([], 1), (self.traffic.answers, len(self.traffic.processings)))

    def test_times(self) -> None:
        """How long a dropped message took counts from the beginning of its request."""
        self.build(DROP)
        self.wire.clock.advance(7.0)
        self.assertEqual(200, self.ask(b'{"level":"debug"}'))
        self.assertEqual([(NAME, 0.0)], self.traffic.answers)

    def test_failed(self) -> None:
        """
        A message that a step fails on is kept, so that its 200 is true, and why is told without anything of it
        (U{https://github.com/vectordotdev/vector/issues/20990}).
        """
        self.build(FAIL, PROBE)
        self.assertEqual(200, self.ask(b'{"text":"CANARY"}'))
        self.assertEqual([{"text": "CANARY"}], self.bodies())
        ((source, events, problem),) = self.traffic.processings
        self.assertEqual((NAME, (("step_error", "number"), ("probe", "end"))), (source, events))
        self.assertIn("Step 'number' failed at 1:", problem)
        self.assertNotIn("CANARY", problem)

    def test_dropped_after_a_failure(self) -> None:
        """Also of a message that is dropped later it is told that a step has failed."""
        self.build(FAIL, Step(select="log.body.n EXISTS"))
        self.assertEqual(200, self.ask(b'{"text":"x"}'))
        ((_, events, problem),) = self.traffic.processings
        self.assertEqual(["step_error", "dropped"], [word for word, _ in events])
        self.assertIn("number", problem)

    def test_refused(self) -> None:
        """A body that can't be unpacked is refused."""
        self.build(PROBE)
        self.assertEqual(400, self.ask(b"no gzip", b"Content-Encoding: gzip\r\n"))
        self.assertEqual([(NAME, "bad_compression")], self.traffic.refused_by)
        self.assertEqual(([], [], []), (self.bodies(), self.traffic.processings, self.traffic.failures))

    def test_no_room(self) -> None:
        """Without room for a message its sender is told so, and nothing of it is counted."""
        self.build(PROBE)

        def full(*_: object) -> None:
            raise NoRoom

        self.patch(self.consumer, "write", full)
        self.assertEqual(503, self.ask(b"{}"))
        self.assertEqual([(NAME, "no_room")], self.traffic.refused_by)
        self.assertEqual(([], []), (self.traffic.acceptances, self.traffic.processings))

    def test_not_stored(self) -> None:
        """A message that did not become safe is refused, as those of sources are."""
        self.build()
        self.consumer.failure = NotStored("disk full")
        self.assertEqual(503, self.ask(b"{}"))

    def test_method_and_path(self) -> None:
        """Only POST is taken, and only at the paths of the rule."""
        self.build()
        self.assertEqual(405, self.wire.ask(b"GET /in HTTP/1.1\r\nHost: a\r\n\r\n").status)
        self.assertEqual(404, self.wire.ask(post(b"{}", b"/other")).status)
