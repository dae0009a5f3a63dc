"""
Tests for L{webhookrx.router.steps.traced}.
"""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from tests.router.steps.test_processing import ACME, a_request
from webhookrx.router.steps import processing
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import Preprocessing, SetField, Step
from webhookrx.router.steps.traced import TracedProcessing
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
            names = [step.name for step in traced.trace]
            self.assertEqual(
                ["classify", "parse", "1 set", "2 expression", "3 set", "4 set", "5 probe", "6 select"], names
            )
            self.assertEqual((*names, "7 probe"), traced.names)
            self.assertEqual([1], traced.trace[2].record["log"]["body"]["list"])
            self.assertEqual([1, 2], traced.trace[3].record["log"]["body"]["list"])
            self.assertEqual((True, False), (traced.trace[4].skipped, traced.trace[3].skipped))
            self.assertIn("Step '4 set' failed", traced.trace[5].problem)
            self.assertEqual(traced.trace[4].record, traced.trace[5].record)
            self.assertTrue(traced.trace[7].dropped and not traced.trace[6].dropped)

    def test_on_error(self) -> None:
        """What a failure does to the message is there with the step that failed, by itself or by its condition."""
        fails = SetField("log.body.kind.x", 1)
        costly = "log.body.text =~ '[ab]*a[ab]{30}c'"
        steps = (
            Step(set=fails, on_error="keep"),
            Step(set=fails, on_error="tag"),
            Step(unset="log.body.text", condition=costly, on_error="tag"),
            Step(set=fails, on_error="drop"),
            Step(probe="never"),
        )
        traced = TracedProcessing(Preprocessing(steps=steps), None)
        record, evidence = a_request(json.dumps({"kind": "x", "text": "ab" * 500_000}).encode())
        outcome = traced.run(record, evidence)
        self.assertFalse(outcome.kept)
        tags = [step.record["meta"].get("step_errors") for step in traced.trace]
        self.assertEqual([None, ["2 set"], ["2 set", "3 unset"], ["2 set", "3 unset"]], tags)
        self.assertEqual([False, False, False, True], [step.dropped for step in traced.trace])
        self.assertTrue(all(step.problem for step in traced.trace))
        self.assertEqual(record, traced.trace[-1].record)

    def test_not_begun(self) -> None:
        """Steps for which there was no work left have failed, each of them, up to one that drops the message."""
        self.patch(processing, "MOST_FOR_MESSAGE", 1_200)
        for on_error, names in (("keep", ["1", "2", "3", "4"]), ("drop", ["1", "2", "3"])):
            steps = [Step(probe="p", label=label) for label in "1234"]
            steps[2] = Step(probe="p", label="3", on_error=on_error)
            steps[3] = Step(probe="p", label="4", on_error="tag")
            traced = TracedProcessing(Preprocessing(steps=tuple(steps)), None)
            record, evidence = a_request()
            outcome = traced.run(record, evidence)
            self.assertEqual(names, [step.name for step in traced.trace])
            self.assertEqual(["", "", outcome.problem], [step.problem for step in traced.trace[:3]])
            self.assertIn("It was not begun", outcome.problem)
            self.assertEqual((on_error == "keep", on_error == "drop"), (outcome.kept, traced.trace[2].dropped))
            self.assertEqual(record, traced.trace[-1].record)
