"""Tests for L{benchmarks.compare}."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.compare import measured, rows, runs_of, twistd_of
from benchmarks.lab import Lab
from benchmarks.tools import Cores, Tools, Unavailable
from tests.benchmarks.figures import told


class RowTests(SynchronousTestCase):
    """What a table shows."""

    def test_rows(self) -> None:
        """Each figure that both have has its medians and the ratio of each round; others have no row."""
        base = [{"cpu": 10.0, "p50": 2.0}, {"cpu": 30.0, "p50": 2.0}, {"cpu": 12.0, "p50": 2.0}]
        new = [{"cpu": 5.0, "rate": 9.0}, {"cpu": 10.0}, {"cpu": 8.0}]
        self.assertEqual([("run", "cpu", "12.00", "8.00", "2.000 (1.500..3.000)")], rows("run", base, new))

    def test_turns(self) -> None:
        """Both are measured in each round, and who comes first changes from one to the next."""
        directory = self.mktemp()
        os.mkdir(directory)
        run = told("run", *({"cpu": float(number)} for number in range(4)))

        def lab() -> Lab:
            return Lab(Tools(cores=Cores(0, 0)), 0.0, directory)

        ((_, base, new),) = measured((run,), lab, lab, 2)
        self.assertEqual([[{"cpu": 0.0}, {"cpu": 3.0}], [{"cpu": 1.0}, {"cpu": 2.0}]], [base, new])


class ChoiceTests(SynchronousTestCase):
    """What is measured."""

    def test_runs(self) -> None:
        """A case is asked of webhookrx alone, each run once."""
        self.assertEqual(["webhookrx @64", "webhookrx @512"], [run.name for run in runs_of("vs-uvicorn")])

    def test_no_run(self) -> None:
        """An unknown case, or one without a server, is an error that names it."""
        for name in ("nonesuch", "steps"):
            self.assertIn(name, str(self.assertRaises(Unavailable, runs_of, name)))

    def test_checkout(self) -> None:
        """The twistd is that of the checkout's own environment; without one there is nothing to compare."""
        checkout = self.mktemp()
        os.makedirs(os.path.join(checkout, ".venv", "bin"))
        self.assertIn("install", str(self.assertRaises(Unavailable, twistd_of, checkout)))
        twistd = os.path.abspath(os.path.join(checkout, ".venv", "bin", "twistd"))
        with open(twistd, "w"):
            pass
        self.assertEqual(twistd, twistd_of(checkout))
