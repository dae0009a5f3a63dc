"""
Tests for L{webhookrx.router.rules.catalogue}.
"""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import ERROR, WARNING, Position
from webhookrx.router.rules.catalogue import CATALOGUE, ROUTER_CODES, RULE_CODES, finding
from webhookrx.typed_yaml import CODES


class CatalogueTests(SynchronousTestCase):
    """
    Tests for the table of mistakes.
    """

    def test_table(self) -> None:
        """Each code is a word of small letters, stands once, and has a sentence."""
        self.assertEqual(len(CATALOGUE), len(CODES) + len(RULE_CODES) + len(ROUTER_CODES))
        for word, code in CATALOGUE.items():
            self.assertRegex(word, re.compile(r"\A[a-z0-9]+(-[a-z0-9]+)*\Z"))
            self.assertIn(code.severity, (ERROR, WARNING))
            self.assertRegex(code.meaning, re.compile(r"\A[A-Z].*\.\Z"))

    def test_finding(self) -> None:
        """The table says how severe a mistake is."""
        error = finding("port-clash", "f", Position(1, 2), "a.b", "Both.")
        warning = finding("port-privileged", "f", Position(), "", "Low.")

        self.assertEqual("f:1:2: error: a.b: Both. [port-clash]", str(error))
        self.assertEqual("f: warning: Low. [port-privileged]", str(warning))

    def test_no_such_code(self) -> None:
        """Nobody can make one up."""
        self.assertRaises(KeyError, finding, "my-own", "f", Position(), "", "")
