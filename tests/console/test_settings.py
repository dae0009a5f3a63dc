"""
Tests for L{webhookrx.console.settings}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.option_reader import COMMAND_LINE, Origin, RawOptions, RawValue
from webhookrx.console.settings import ConsoleSettings, checked_url, resolve_console, routers_endpoint
from webhookrx.errors import ConfigError

GOOD = {
    "port": "tcp:8443:interface=127.0.0.1",
    "routers": "ssl:9443",
    "db": "console.sqlite",
    "url": "https://Console.Example:8443/",
}


def given(**values: str) -> RawOptions:
    """Return the options of a command line."""
    return {
        name.replace("_", "-"): (RawValue(text, Origin((f"--{name}",), COMMAND_LINE)),)
        for name, text in values.items()
        if text
    }


class SettingsTests(SynchronousTestCase):
    """Options to settings."""

    def problem(self, **values: str) -> str:
        """Return what is wrong with the good options, some of them changed."""
        return str(self.assertRaises(ConfigError, resolve_console, given(**{**GOOD, **values})))

    def test_good(self) -> None:
        """Good options become settings, with an absolute path and a URL without its slash."""
        settings = resolve_console(given(**GOOD, admin="0", read_only_rules="yes"))
        self.assertEqual(os.path.abspath("console.sqlite"), settings.database)
        self.assertEqual("https://console.example:8443", settings.url)
        assert settings.routers is not None and settings.admin is not None
        self.assertEqual(("tcp", "0.0.0.0", 9443), settings.routers.address)
        self.assertTrue(settings.read_only_rules)

    def test_routers_url(self) -> None:
        """What routers take as --console is the host of the URL with the port for routers, where that is known."""
        for url, routers, expected in (
            ("https://console.example:8443", "ssl:9443:interface=10.0.0.1", "https://console.example:9443"),
            ("https://[2001:db8::1]", "ssl:9443", "https://[2001:db8::1]:9443"),
            ("https://console.example", "ssl:0", ""),
        ):
            self.assertEqual(expected, resolve_console(given(**{**GOOD, "url": url, "routers": routers})).routers_url)
        self.assertEqual("", ConsoleSettings("", "https://console.example").routers_url)

    def test_missing(self) -> None:
        """Each option that is missing is named, all at once."""
        text = self.problem(port="", routers="", db="", url="")
        for name in GOOD:
            self.assertIn(f"--{name} is missing", text)

    def test_plain_http(self) -> None:
        """Plain HTTP is for this machine alone: passwords come there."""
        for port in ("8443", "tcp:8443:interface=10.0.0.1"):
            self.assertIn("plain HTTP", self.problem(port=port))
        for port in ("tcp:8443:interface=127.0.0.1", "unix:console.sock"):
            self.assertEqual(port, resolve_console(given(**{**GOOD, "port": port})).ports[0].text)

    def test_routers(self) -> None:
        """The endpoint for routers has TLS, and neither a key nor a policy of its own."""
        self.assertIn("has no TLS", self.problem(routers="9443"))
        for more in ("privateKey=a:certKey=b", "peerVerify=no", "caFile=ca.pem"):
            self.assertIn("says more than", self.problem(routers=f"ssl:9443:{more}"))
        self.assertIn("no PROXY header", self.problem(routers="haproxy:ssl:9443"))
        self.assertEqual("127.0.0.1", routers_endpoint("ssl:9443:interface=127.0.0.1").address.host)

    def test_directory(self) -> None:
        """The directory of the file is there already."""
        self.assertIn('"/missing/here" does not exist', self.problem(db="/missing/here/console.sqlite"))

    def test_url(self) -> None:
        """A URL has a scheme, a host and a port, and is encrypted unless it is of this machine."""
        for good in ("https://a.example", "http://127.0.0.1:8080", "http://localhost", "http://[::1]:81"):
            self.assertEqual(good, checked_url(good))
        for bad in (
            "console.example",
            "https://",
            "https://a.example/console",
            "https://a.example?b",
            "https://me:secret@a.example",
            "https://a.example:99999",
            "https://[::1",
            "ftp://a.example",
            "http://a.example",
            "http://127.0.0.1.example",
        ):
            self.assertRaises(ConfigError, checked_url, bad)
