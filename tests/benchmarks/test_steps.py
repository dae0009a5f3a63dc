"""Tests for L{benchmarks.steps}: that what is measured is what it says."""

from __future__ import annotations

import os
import time
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from benchmarks import steps
from benchmarks.tools import ROOT
from webhookrx.query import Fleet, parse
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import Preprocessing, Step
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definitions import builtin_definitions


class RequestTests(SynchronousTestCase):
    """What Classify and Parse are asked about."""

    def test_samples(self) -> None:
        """There are more than enough senders, and each sample is the one of its sender."""
        classifier = Classifier(builtin_definitions())
        samples = steps.samples()
        self.assertGreater(len(samples), 10)
        for sender, requests in samples.items():
            for request in requests:
                match = classifier.classify(request.evidence())
                assert match is not None
                self.assertEqual(sender, match.sender.id)

    def test_unknown(self) -> None:
        """Nobody knows who posts what applications post."""
        self.assertIsNone(Classifier(builtin_definitions()).classify(steps.application().evidence(), last_resort=False))


class StepTests(SynchronousTestCase):
    """What steps do meanwhile."""

    def processed(self, step: Step, request: steps.Request) -> dict[str, dict[str, Any]]:
        """Return a message behind a step."""
        record = request.record()
        outcome = Processing(Preprocessing(steps=(step,)), None, time.perf_counter).run(record, request.evidence())
        self.assertTrue(outcome.kept)
        self.assertEqual("", outcome.problem)
        return record

    def test_expression(self) -> None:
        """Each statement but the first does something to the message."""
        record = self.processed(Step(expression=steps.EXPRESSION), steps.posted(steps.WEB_SERVER))
        self.assertEqual("ada", record["log"]["body"]["user"])
        self.assertEqual("shop", record["meta"]["team"])
        self.assertNotIn("password", record["log"]["body"])
        self.assertEqual(13, record["log"]["severity_number"])

    def test_page(self) -> None:
        """The program is that of the page on expressions."""
        page = os.path.join(ROOT, "docs", "reference", "expressions.md")
        if not os.path.exists(page):
            raise SkipTest("docs/reference/expressions.md is not there")
        with open(page, encoding="utf-8") as file:
            lines = {line.strip() for line in file}
        self.assertEqual(set(), {line.strip() for line in steps.EXPRESSION.splitlines()} - lines)

    def test_select(self) -> None:
        """The query matches, so that both of its terms are looked at."""
        self.assertEqual(2, len(parse(steps.SELECT).fields))
        self.processed(Step(select=steps.SELECT), steps.application())


class FleetTests(SynchronousTestCase):
    """Routers and rules."""

    def test_fleet(self) -> None:
        """There are as many as wanted, no two selectors are alike, and most match some routers but not all."""
        records, selectors = steps.fleet(1000, 200)
        self.assertEqual((1000, 200), (len(records), len(set(selectors))))
        fleet = Fleet(records)
        numbers = [len(fleet.matching(parse(selector))) for selector in selectors]
        self.assertGreater(sum(0 < number < 1000 for number in numbers), 150)
