"""
Tests for L{webhookrx.console.api.reading}: what strangers may have it look at.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.api.reading import read_accepted
from webhookrx.intake.head import Head, Peer


def accepted(*values: bytes) -> frozenset[str]:
    """Return what a request accepts."""
    headers = [(b"accept", value) for value in values]
    return read_accepted(Head(b"GET", b"/", None, headers, Peer("192.0.2.7", 1, True)))


class AcceptTests(SynchronousTestCase):
    """Tests for L{read_accepted}."""

    def test_types(self) -> None:
        """Types are those of all headers, in any case, without those that are refused."""
        found = accepted(b"text/html, Application/YAML;q=0.5", b"text/csv; q=0.000, */*")
        self.assertEqual(found, {"text/html", "application/yaml", "*/*"})

    def test_long(self) -> None:
        """Of a very long one only the beginning is looked at."""
        self.assertEqual(accepted(b"a/b," + b",".join(b"x/%d" % n for n in range(4_000))) >= {"a/b"}, True)
        self.assertLess(len(accepted(b",".join(b"x/%d" % n for n in range(4_000)))), 300)
