"""
Tests for L{webhookrx.config.console_place}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.console_place import ConsolePlace, console_place


class ConsolePlaceTests(SynchronousTestCase):
    """Tests for L{console_place}."""

    def test_good(self) -> None:
        """Scheme, host and port, of which the last may be left out."""
        for url, place in (
            ("https://console.example:9443", ("console.example", 9443)),
            ("https://console.example", ("console.example", 443)),
            ("https://[2001:db8::1]:9443/", ("2001:db8::1", 9443)),
            ("https://192.0.2.1:9443", ("192.0.2.1", 9443)),
        ):
            self.assertEqual(ConsolePlace(*place), console_place(url))

    def test_wrong(self) -> None:
        """All else is refused, and not quoted: it may hold a password."""
        for url in (
            "",
            "console.example:9443",
            "http://console.example:9443",
            "https://:9443",
            "https://console.example:0",
            "https://console.example:99999",
            "https://console.example:x",
            "https://mara:s3cret@console.example",
            "https://console.example/agent",
            "https://console.example?a=b",
            "https://console.example#a",
            "https://caf\u00e9.example",
            "https://[::1",
        ):
            error = self.assertRaises(ValueError, console_place, url)
            self.assertNotIn("s3cret", str(error), url)
            self.assertIn("https://HOST:PORT", str(error), url)
