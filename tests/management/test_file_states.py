"""
Tests for L{webhookrx.management.file_states}.
"""

from __future__ import annotations

from typing import get_args

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import CODES, ERROR, diagnose
from webhookrx.management.agent_protocol import FileState
from webhookrx.management.file_states import RouterFile, file_states, state_of
from webhookrx.management.preview import MatchingRouter, RouterGate, RulePreview

PREVIEW = RulePreview(
    findings=(),
    routers=4,
    matched=3,
    matching=tuple(MatchingRouter(name, f"{name}-a-a", 443) for name in "abc"),
    paths=("/key.pem", "/cert.pem"),
    gates=(RouterGate("c", True, ("/other.pem",)),),
)
PRESENT = {"/key.pem": "present", "/cert.pem": "present"}


class FileStateTests(SynchronousTestCase):
    """Answers of routers."""

    def test_joined(self) -> None:
        """States are counted by path, all but present ones are listed, and unanswered ones are unknown."""
        found = file_states(PREVIEW, {"a": PRESENT, "b": PRESENT | {"/key.pem": "missing"}})
        self.assertEqual({"present": 1, "missing": 1, "unknown": 1}, found.counts["/key.pem"])
        self.assertEqual({"present": 2, "unknown": 1}, found.counts["/cert.pem"])
        self.assertEqual(
            (
                RouterFile("b", "/key.pem", "missing"),
                RouterFile("c", "/key.pem", "unknown"),
                RouterFile("c", "/cert.pem", "unknown"),
            ),
            found.files,
        )

    def test_gates(self) -> None:
        """A gate would close for a file that is missing or wrong; not for an expired or unknown one, nor twice."""
        for state in (*get_args(FileState), "unknown"):
            found = file_states(PREVIEW, dict.fromkeys("ac", PRESENT | {"/cert.pem": state}))
            closes = state not in {"present", "expired", "unknown"}
            self.assertEqual((RouterGate("a", False, ("/cert.pem",)),) if closes else (), found.gates, state)

    def test_not_asked(self) -> None:
        """What a router says of other paths, and what others say, is left out."""
        found = file_states(PREVIEW, {"d": PRESENT, "a": {"/etc/shadow": "present"}})
        self.assertEqual({"/key.pem": {"unknown": 3}, "/cert.pem": {"unknown": 3}}, found.counts)

    def test_of_diagnostics(self) -> None:
        """Each error is a state other than present; a file that others can read is present."""
        for code in CODES.values():
            if code.severity == ERROR:
                self.assertNotIn(state_of(diagnose(code.word, (), "")), {"present", "unknown"}, code)
        self.assertEqual("present", state_of(diagnose("key-file-open", (), "")))
        self.assertEqual("expired", state_of(diagnose("certificate-expired", (), "")))
