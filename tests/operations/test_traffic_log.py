"""
Tests for L{webhookrx.operations.traffic_log}.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from twisted.internet.error import ConnectionDone, TimeoutError
from twisted.internet.task import Clock
from twisted.logger import Logger, formatEvent
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.errors import BAD_TOKEN, NO_MATCHING_PATH
from webhookrx.guard.bundle_judge import JudgedBundle
from webhookrx.operations.counters import Counters
from webhookrx.operations.oplog import LineLimit
from webhookrx.operations.traffic_log import _CLASSIFIED, TrafficLog, shown
from webhookrx.router.steps.context import CLASSIFIED
from webhookrx.testing import make_message
from webhookrx.wire_interfaces import ITraffic


class TrafficLogTests(SynchronousTestCase):
    """Counters and lines."""

    def setUp(self) -> None:
        """Collect lines."""
        self.events: list[Any] = []
        self.clock = Clock()
        self.counters = Counters()
        self.traffic = TrafficLog(
            self.counters,
            LineLimit(self.clock.seconds, lines=2),
            lambda failure: "no certificate" if failure.check(ValueError) else None,
            Logger(namespace="test", observer=self.events.append),
            self.clock.seconds,
        )

    @property
    def lines(self) -> list[str]:
        """All lines so far."""
        return [formatEvent(event) for event in self.events]

    def test_interface(self) -> None:
        """It is what the web side tells of its traffic."""
        verifyObject(ITraffic, self.traffic)

    def test_refused(self) -> None:
        """A refusal is counted, and logged with peer, reason, method and path."""
        self.traffic.refused(BAD_TOKEN, "No.", "192.0.2.7", b"POST", b"/in", "github")
        self.traffic.refused(NO_MATCHING_PATH, "No.", "192.0.2.7", b"", b"")
        self.assertEqual(
            [
                "Refused 192.0.2.7: bad_token (403) for POST /in: No.",
                "Refused 192.0.2.7: no_matching_path (404) for - -: No.",
            ],
            self.lines,
        )
        self.assertEqual("refused.bad_token.github=1 refused.no_matching_path=1", self.counters.summary())

    def test_masked_path(self) -> None:
        """A path is shown without the token that is in it, whatever the reason is; and masked only for a line."""
        asked: list[bytes] = []
        self.traffic.mask_path = lambda path: asked.append(path) or path.replace(b"s3cr3t", b"***")  # type: ignore[func-returns-value]
        for _ in range(5):
            self.traffic.refused(BAD_TOKEN, "No.", "192.0.2.7", b"POST", b"/in/s3cr3t")
        self.traffic.refused(NO_MATCHING_PATH, "No.", "192.0.2.7", b"POST", b"")
        self.assertEqual(3, len(self.lines))
        self.assertIn("POST /in/***:", self.lines[0])
        self.assertIn("POST -:", self.lines[2])
        self.assertEqual([b"/in/s3cr3t"] * 2, asked)

    def test_many(self) -> None:
        """A million refusals are counted, not logged, each; how many lines are missing is said."""
        for _ in range(1000):
            self.traffic.refused(BAD_TOKEN, "No.", "192.0.2.7", b"POST", b"/in")
        self.traffic.refused(NO_MATCHING_PATH, "No.", "192.0.2.7", b"POST", b"/in")
        self.traffic.report_held_back()
        self.assertEqual((1000, 4), (self.counters.get("refused", "bad_token", ""), len(self.lines)))
        self.assertEqual(998, self.counters.get("log_lines_held_back"))
        self.assertEqual("998 more lines like the last one of bad_token", self.lines[-1])

    def test_forged_lines(self) -> None:
        """A path can't end a line, move a cursor, be formatted, or be without end."""
        path = b"/a\r\n\x1b[2J{log_level}\xe2\x80\xae" + b"x" * 1000
        self.traffic.refused(NO_MATCHING_PATH, "No.", "192.0.2.7", b"POST", path)
        (line,) = self.lines
        self.assertIn(r"/a\r\n\x1b[2J{log_level}\xe2\x80\xaex", line)
        self.assertTrue(line.isprintable())
        self.assertLess(len(line), 400)

    def test_accepted(self) -> None:
        """Messages, their bytes, the last time and what was odd about them are counted by source."""
        self.clock.advance(5)
        self.traffic.accepted("github", (), 0, 100)
        self.clock.advance(5)
        self.traffic.accepted("github", ("unparsed_payload",), 2, 11)
        counts = self.counters.sources["github"]
        self.assertEqual((2, 111, 10.0), (counts.messages, counts.bytes, counts.last))
        self.assertEqual("messages.github=2 names_left_out.github=2 unparsed_payload.github=1", self.counters.summary())
        self.assertEqual([], self.lines)

    def test_took_apart(self) -> None:
        """Messages of one body are counted each, its bytes once, and all that was odd about them."""
        self.clock.advance(5)
        judged = JudgedBundle(
            [make_message(), make_message()],
            [],
            4,
            Counter(unparsed_payload=2),
            left_out=3,
            steps=Counter({("dropped", "select-1"): 2}),
            problem="Step 'set-2' failed.",
            bare=1,
        )
        self.traffic.took_apart("github", judged, 100)
        self.traffic.took_apart("github", JudgedBundle([], [], 0, Counter()), 13)
        counts = self.counters.sources["github"]
        self.assertEqual((2, 100, 5.0), (counts.messages, counts.bytes, counts.last))
        self.assertEqual(
            "bare_event.github=1 bundle.github=2 dropped.github.select-1=2 empty_bundle.github=1 messages.github=2 "
            "names_left_out.github=3 unparsed_payload.github=2",
            self.counters.summary(),
        )
        self.assertEqual(["A step of github failed, the message was dropped: Step 'set-2' failed."], self.lines)

    def test_answered(self) -> None:
        """Times of answers are counted by source."""
        self.traffic.answered("github", 0.25)
        self.traffic.answered("github", 4)
        answers = self.counters.sources["github"].answers
        self.assertEqual((2, 4.25), (answers.count, answers.sum))
        self.assertEqual([], self.lines)

    def test_store_done(self) -> None:
        """Batches are counted by observer."""
        self.traffic.store_done("file:/x", 3, 300, 0.25)
        self.traffic.store_done("file:/x", 2, 100, 0.5)
        counts = self.counters.observers["file:/x"]
        self.assertEqual((5, 400, 2, 0.75), (counts.messages, counts.bytes, counts.stores.count, counts.stores.sum))

    def test_handshakes(self) -> None:
        """Failed handshakes are counted and logged with peer and reason; a peer that went away is neither."""
        for error in (ValueError(), TimeoutError(), ConnectionDone()):
            self.traffic.handshake_failed("192.0.2.7", Failure(error))
        self.assertEqual(
            [
                "TLS handshake with 192.0.2.7 failed: no certificate",
                "TLS handshake with 192.0.2.7 failed: it took too long",
            ],
            self.lines,
        )
        self.assertEqual(2, self.counters.get("tls_handshakes_failed"))

    def test_accept_failures(self) -> None:
        """Connections that can't be accepted are counted, and logged a few times a second."""
        for _ in range(3):
            self.traffic.accept_failed("EMFILE")
        self.assertEqual(["No connection can be accepted for a moment: EMFILE"] * 2, self.lines)
        self.assertEqual(3, self.counters.get("accepts_failed"))

    def test_dropped_unread(self) -> None:
        """Connections that were dropped unread are counted, each of them, and logged in few lines."""
        for _ in range(50):
            self.traffic.dropped_unread()
        self.assertEqual(50, self.counters.get("dropped_unread"))
        self.assertIn("Dropped a connection unread", self.lines[0])
        self.assertLess(len(self.lines), 20)

    def test_failures(self) -> None:
        """What of ours raised is logged with its traceback, a few times a second."""
        for _ in range(3):
            self.traffic.failed("A resource raised.", Failure(ValueError("why")))
        self.assertEqual((2, 3), (len(self.events), self.counters.get("failures")))
        self.assertEqual("why", self.events[0]["log_failure"].getErrorMessage())
        self.assertEqual("A resource raised.", self.lines[0])

    def test_step_dropped(self) -> None:
        """The line says so when the message was dropped."""
        self.traffic.processed("edge-1-a-b", [("step_error", "net"), ("dropped", "net")], "Step 'net' failed.")
        self.assertEqual(["A step of edge-1-a-b failed, the message was dropped: Step 'net' failed."], self.lines)

    def test_step_failed(self) -> None:
        """What steps count is counted every time; why one has failed is logged a few times a second."""
        events = [("step_error", "number"), ("probe", "end")]
        for _ in range(3):
            self.traffic.processed("edge-1-a-b", events, "Step 'number' failed at 1:5: no number")
        self.traffic.processed("edge-1-a-b", events[1:], "")
        line = "A step of edge-1-a-b failed, the message goes on: Step 'number' failed at 1:5: no number"
        self.assertEqual([line] * 2, self.lines)
        counts = [self.counters.get(word, "edge-1-a-b", label) for word, label in events]
        self.assertEqual([3, 4], counts)
        self.traffic.report_held_back()
        self.assertEqual("1 more lines like the last one of step", self.lines[-1])

    def test_last_by_sender(self) -> None:
        """The last message of each sender that Classify finds is known, also of those in bodies with several events."""
        self.assertEqual(CLASSIFIED, _CLASSIFIED)
        self.traffic.processed("hooks", [(CLASSIFIED, "github"), ("probe", "in")], "")
        self.clock.advance(5)
        self.traffic.processed("hooks", [(CLASSIFIED, "")], "")
        judged = JudgedBundle([], [], 1, Counter(), 0, Counter({(CLASSIFIED, "gitlab"): 2}), "", 0)
        self.traffic.took_apart("hooks", judged, 10)
        self.assertEqual({"github": 0.0, "": 5.0, "gitlab": 5.0}, self.counters.sources["hooks"].last_by_sender)

    def test_only_sender(self) -> None:
        """All messages of a source that hears one sender are of this; not of the next one that it hears."""
        for sender in ("github", "github", "gitlab"):
            self.traffic.guards("hooks", (), (), (), says_when=False, sender=sender)
            self.clock.advance(5)
            if sender == "github":
                self.traffic.accepted("hooks", (), 0, 10)
        self.assertEqual({"github": 10.0, "gitlab": 0.0}, self.counters.sources["hooks"].last_by_sender)
        self.traffic.accepted("hooks", (), 0, 10)
        self.assertEqual({"github": 10.0, "gitlab": 15.0}, self.counters.copy().sources["hooks"].last_by_sender)

    def test_expected(self) -> None:
        """What may be counted is there with 0, and what was counted stays."""
        self.traffic.processed("a", [("probe", "p")], "")
        self.traffic.expects("a", [("probe", "p"), ("probe", "q")])
        self.assertEqual([(("a", "p"), 1), (("a", "q"), 0)], self.counters.labelled("probe"))

    def test_observer_failed(self) -> None:
        """Messages that are not safe are counted by observer, and the error is shown."""
        self.traffic.observer_failed("file:/x", OSError("no\nspace"), 3)
        self.assertEqual([r"Observer file:/x could not make 3 messages safe: no\nspace"], self.lines)
        self.assertEqual(3, self.counters.get("not_stored", "file:/x"))
        self.traffic.observer_failed("file:/x", OSError("gone"), 0)
        self.assertTrue(self.lines[-1].endswith("what it had open stays in use: gone"))

    def test_shown(self) -> None:
        """Plain text is shown as it is."""
        self.assertEqual("/events/host-1?", shown(b"/events/host-1?"))
