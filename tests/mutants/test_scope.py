"""
Tests for L{tests.mutants.scope}.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.mutants.scope import SCOPE, files, tests_of

ROOT = Path(__file__).resolve().parent.parent.parent


class ScopeTests(SynchronousTestCase):
    """Which tests a mutant has to pass by."""

    def test_tests(self) -> None:
        """Those that mirror the file come first, where there are any, then those of the room; none is there twice."""
        for path, tests in (
            ("webhookrx/http/body.py", ["tests.http.test_body", "tests.http"]),
            ("webhookrx/http/interfaces.py", ["tests.http"]),
            ("webhookrx/intake/judge.py", ["tests.intake.test_judge", "tests.router.test_connector_intake"]),
        ):
            self.assertEqual(tests, tests_of(ROOT, path))

    def test_there(self) -> None:
        """All that is named is there, and no system test is among it: they take too long."""
        found = files(ROOT)
        for name, tests in SCOPE.items():
            self.assertTrue([path for path in found if path.startswith(name)], name)
            for module in tests:
                self.assertIsNot(None, find_spec(module), module)
                self.assertNotIn("system", module.split("."))
