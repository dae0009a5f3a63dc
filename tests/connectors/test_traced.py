"""
Tests for L{webhookrx.connectors.traced}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.connectors.test_processing import ACME, a_request
from webhookrx.connectors.processing import Processing
from webhookrx.connectors.rule import Preprocessing, SetField, Step
from webhookrx.connectors.traced import TracedProcessing
from webhookrx.senders.classifier import Classifier

STEPS = (
    Step(set=SetField("log.body.list", [1])),
    Step(expression="log.body.list += [2];"),
    Step(set=SetField("meta.no", 1), condition="log.body.no EXISTS"),
    Step(set=SetField("log.body.kind.x", 1)),
    Step(probe="p"),
    Step(select="log.body.no EXISTS"),
    Step(probe="never"),
)
PREPROCESSING = Preprocessing(classify=True, parse=True, steps=STEPS)


class TracedTests(SynchronousTestCase):
    """Steps that are watched."""

    def test_same(self) -> None:
        """What comes out is what comes out unwatched."""
        ours, theirs = a_request(), a_request()
        classifier = Classifier([ACME])
        traced = TracedProcessing(PREPROCESSING, classifier)
        self.assertEqual(Processing(PREPROCESSING, classifier).run(*theirs), traced.run(*ours))
        self.assertEqual(theirs[0], ours[0])

    def test_done(self) -> None:
        """Each step that was begun is there, with the message as it was then, whatever came later."""
        traced = TracedProcessing(PREPROCESSING, Classifier([ACME]))
        for _ in range(2):
            record, evidence = a_request()
            before = a_request()[0]
            traced.run(record, evidence)
            self.assertEqual(before, traced.before)
            names = [done.step for done in traced.done]
            self.assertEqual(
                ["classify", "parse", "1 set", "2 expression", "3 set", "4 set", "5 probe", "6 select"], names
            )
            self.assertEqual((*names, "7 probe"), traced.names)
            self.assertEqual([1], traced.done[2].record["log"]["body"]["list"])
            self.assertEqual([1, 2], traced.done[3].record["log"]["body"]["list"])
            self.assertEqual((True, False), (traced.done[4].skipped, traced.done[3].skipped))
            self.assertIn("Step '4 set' failed", traced.done[5].problem)
            self.assertEqual(traced.done[4].record, traced.done[5].record)
            self.assertTrue(traced.done[7].dropped and not traced.done[6].dropped)
