"""
Tests for L{webhookrx.diagnostics}.
"""

from __future__ import annotations

import re

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import (
    CODES,
    CONSOLE_CODES,
    ENTRY_CODES,
    ERROR,
    FILE_CODES,
    OPTION_CODES,
    ROUTER_CODES,
    RULE_CODES,
    SAMPLE_CODES,
    WARNING,
    Diagnostic,
    diagnose,
    has_errors,
    in_order,
    path_text,
)


class CodesTests(SynchronousTestCase):
    """
    Tests for L{CODES}.
    """

    def test_table(self) -> None:
        """Each code is a word of small letters, stands once, and has a sentence."""
        tables = (FILE_CODES, RULE_CODES, ROUTER_CODES, ENTRY_CODES, SAMPLE_CODES, OPTION_CODES, CONSOLE_CODES)
        self.assertEqual(len(CODES), sum(map(len, tables)))
        for word, code in CODES.items():
            self.assertRegex(word, re.compile(r"\A[a-z0-9]+(-[a-z0-9]+)*\Z"))
            self.assertIn(code.severity, (ERROR, WARNING))
            self.assertRegex(code.meaning, re.compile(r"\A[A-Z].*\.\Z"))


class DiagnosticTests(SynchronousTestCase):
    """
    Tests for L{Diagnostic} and L{diagnose}.
    """

    def test_severity(self) -> None:
        """The table says how severe a mistake is; the text begins with the place, as compilers have it."""
        error = msgspec.structs.replace(diagnose("port-clash", ("a", 0, "b"), "Both.", 1, 2), file="f")
        warning = msgspec.structs.replace(diagnose("port-privileged", (), "Low."), file="f")

        self.assertEqual("f:1:2: error: a[0].b: Both. [port-clash]", str(error))
        self.assertEqual("f: warning: Low. [port-privileged]", str(warning))
        self.assertEqual((True, False), (has_errors([warning, error]), has_errors([warning])))

    def test_option(self) -> None:
        """What is wrong with an option has neither code nor column; its text is without the severity."""
        option = Diagnostic("", ERROR, ("sources", 0, "port"), "No.", 3, file="x.yaml")
        whole = Diagnostic("", ERROR, (), "No.")
        self.assertEqual(("x.yaml:3: sources[0].port: No.", "No."), (option.text, whole.text))

    def test_no_such_code(self) -> None:
        """Nobody can make one up."""
        self.assertRaises(KeyError, diagnose, "my-own", (), "")

    def test_in_order(self) -> None:
        """Diagnostics come in the order of the file, each once."""
        late, early = (diagnose("port-clash", (), "Both.", line, 1) for line in (2, 1))
        self.assertEqual([early, late], in_order([late, early, late]))

    def test_path_text(self) -> None:
        """A path is written with dots and brackets; a key that is no word is in quotes."""
        self.assertEqual('rules[0].labels["a b"]', path_text(("rules", 0, "labels", "a b")))
