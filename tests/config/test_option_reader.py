"""
Tests for L{webhookrx.config.option_reader}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.option_reader import NOWHERE, ConfigProblems, Origin, Problems
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import ConfigError

HERE = Origin(("paths",), "x.yaml", 3)


class ProblemsTests(SynchronousTestCase):
    """
    Tests for L{Problems} and L{ConfigProblems}.
    """

    def test_nothing_wrong(self) -> None:
        """Warnings alone stop nothing."""
        problems = Problems()
        problems.warn("Hm.", HERE)
        problems.raise_errors()
        self.assertEqual(["x.yaml:3: paths: Hm."], [each.text for each in problems.warnings])

    def test_all_errors(self) -> None:
        """All errors are raised together, one line each; as an error it is the first of them."""
        problems = Problems()
        problems.error("One.", HERE)
        problems.error("Two.", NOWHERE)
        error = self.assertRaises(ConfigProblems, problems.raise_errors)
        self.assertEqual("x.yaml:3: paths: One.\nTwo.", str(error))
        self.assertEqual(("One.", "paths", "x.yaml:3"), (error.problem, error.option, error.where))

    def test_same_text_once(self) -> None:
        """The same text at one place counts once."""
        problems = Problems()
        for _ in range(2):
            problems.error("One.", HERE)
            problems.warn("Hm.", HERE)
        self.assertEqual((1, 1), (len(problems.errors), len(problems.warnings)))

    def test_attempt(self) -> None:
        """What a call raises is noted, with the place that it says itself; else its value comes back."""
        problems = Problems()
        self.assertEqual(3, problems.attempt(HERE, int, "3"))
        self.assertIs(None, problems.attempt(HERE, _fail, ""))
        self.assertIs(None, problems.attempt(HERE, _fail, "y.yaml:1"))
        self.assertEqual(
            ["x.yaml:3: paths: No.", "x.yaml:3: paths: y.yaml:1: No."], [error.text for error in problems.errors]
        )


class TextTests(SynchronousTestCase):
    """
    Tests for L{quoted} and L{suggestion}.
    """

    def test_quoted(self) -> None:
        """Quoted text is one printable line, with backslashes as they were written."""
        self.assertEqual(r'"a\nb\x1b\:ü"', quoted("a\nb\x1b\\:ü"))

    def test_suggestion(self) -> None:
        """The nearest word is named, or all words when none is near."""
        self.assertEqual('Did you mean "Port"?', suggestion("prot", ["Port", "paths"]))
        self.assertEqual("Known are a, b.", suggestion("zzz", ["b", "a"]))


def _fail(where: str) -> None:
    raise ConfigError("No.", where=where)
