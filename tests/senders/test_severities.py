"""
Tests for L{webhookrx.senders.severities}.
"""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.definition import SEVERITIES
from webhookrx.senders.severities import SeverityMap


class SeverityMapTests(SynchronousTestCase):
    """What words mean."""

    def test_usual_words(self) -> None:
        """Without a map, words mean what they usually do, in any case."""
        known = SeverityMap({})
        for word, name in {
            **{name: name for name in SEVERITIES},
            "Warning": "warn",
            "ERR": "error",
            "Informational": "info",
            "FATAL": "critical",
            "high": "error",
        }.items():
            self.assertEqual(known(word), SEVERITIES[name], word)

    def test_unknown(self) -> None:
        """What is no word of the map, nor a usual one, is unknown."""
        known = SeverityMap({"sev0": "critical"})
        for value in ("", "sev", "sev01", None, [], {}, 7, True, "x" * 300):
            self.assertIsNone(known(value), value)

    def test_long(self) -> None:
        """Of a long text only the beginning is looked at."""
        known = SeverityMap({"*denied*": "error", "*": "notice"})
        self.assertEqual(known("denied" + "x" * 1_000_000), SEVERITIES["error"])
        self.assertEqual(known("x" * 300 + "denied"), SEVERITIES["notice"])

    def test_map(self) -> None:
        """Words and globs of a map are compared in their order, and come before the usual words."""
        known = SeverityMap(
            {"Sev0": "critical", "sev?": "warn", "5*": "error", "50": "info", "error": "debug", "*.b": "info"}
        )
        for value, name in (
            ("SEV0", "critical"),
            ("sev4", "warn"),
            ("503", "error"),
            ("50", "error"),
            (503, "error"),
            (msgspec.Raw(b"5.25"), "error"),
            ("ERROR", "debug"),
            ("a.b", "info"),
            ("warning", "warn"),
        ):
            self.assertEqual(known(value), SEVERITIES[name], value)
        self.assertIsNone(known("sev12"))

    def test_word_before_glob(self) -> None:
        """A word that comes before a glob wins over it."""
        known = SeverityMap({"50": "info", "5*": "error"})
        self.assertEqual((known("50"), known("51")), (SEVERITIES["info"], SEVERITIES["error"]))

    def test_globs(self) -> None:
        """A glob stands for the whole text."""
        for glob, yes, no in (
            ("f*", ["f", "F-1"], ["af", ""]),
            ("*.failed", ["a.FAILED", ".failed"], ["a.failed.b", "failed"]),
            ("*warn*", ["warn", "a warning"], ["war"]),
            ("*", ["x", "x\ny"], []),
            ("**", ["x"], []),
            ("a*b", ["ab", "axb", "a\nb"], ["a", "abc", "xab"]),
            ("a*b*", ["ab", "axbx"], ["ba"]),
            ("5??", ["503"], ["50", "5033"]),
            ("?*x", ["ax", "aax"], ["x"]),
        ):
            known = SeverityMap({glob: "alert"})
            for text in yes:
                self.assertEqual(known(text), SEVERITIES["alert"], (glob, text))
            for text in no:
                self.assertIsNone(known(text), (glob, text))

    def test_characters(self) -> None:
        """Only C{*} and C{?} are special in a glob, which matches line ends too."""
        known = SeverityMap({"a.(*)[b]": "error", "true": "warn"})
        self.assertEqual(known("a.(x\ny)[b]"), SEVERITIES["error"])
        self.assertIsNone(known("ax(x)b"))
        self.assertEqual(known(True), SEVERITIES["warn"])

    def test_unknown_name(self) -> None:
        """A map to no severity is a mistake."""
        self.assertRaises(KeyError, SeverityMap, {"a": "loud"})
