"""Tests for L{tests.refusals}."""

from __future__ import annotations

import ast

from twisted.trial.unittest import SynchronousTestCase

from tests.refusals import _causes_in, causes
from webhookrx.errors import BAD_REQUEST, REASONS

SOURCE = '''
def parse(data):
    """Raise C{BAD_REQUEST}."""
    if reason is BAD_TOKEN:
        raise RequestRefused(BAD_REQUEST, f"Line {number} is wrong.")
    return TIMEOUT.detail
'''

HELPED = """
def parse(data):
    raise RequestRefused(BAD_REQUEST, _problem(data))

def _problem(data):
    if data:
        return "It is too long."
    return "It is TLS." if data else BAD_REQUEST.detail
"""


class CauseTests(SynchronousTestCase):
    """Where the code refuses."""

    def test_found(self) -> None:
        """A reason that is passed on is a cause, with its function and sentence; a comparison or docstring is none."""
        self.assertEqual(
            [(BAD_REQUEST, "Line … is wrong.", "http/head.py", "parse")],
            list(_causes_in(ast.parse(SOURCE), "http/head.py", "")),
        )

    def test_helper(self) -> None:
        """A cause has every sentence that a function of the same module may return for it."""
        self.assertEqual(
            ["It is TLS.", "It is too long."],
            sorted(cause.detail for cause in _causes_in(ast.parse(HELPED), "http/head.py", "")),
        )

    def test_every_reason(self) -> None:
        """Every reason has a function that refuses with it."""
        self.assertEqual(set(REASONS), {cause.reason for cause in causes()})
