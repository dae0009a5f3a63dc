"""
Tests for L{webhookrx.console.settings}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.option_reader import COMMAND_LINE, Origin, RawOptions, RawValue
from webhookrx.console.oidc.oidc_settings import checked_issuer, parse_role
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


class OidcSettingsTests(SynchronousTestCase):
    """Options of single sign-on to settings."""

    def setUp(self) -> None:
        """Write a secret."""
        self.file = self.secret(b"s3cret\n")

    def secret(self, content: bytes, mode: int = 0o600) -> str:
        """Return the path of a file."""
        path: str = os.path.abspath(self.mktemp())
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
        return path

    def good(self) -> dict[str, str]:
        """Return options that are good."""
        return {
            **GOOD,
            "oidc_issuer": "https://id.example/realm",
            "oidc_client_id": "console",
            "oidc_secret_file": self.file,
            "oidc_role": "groups=ops:admin+tap",
        }

    def problem(self, **values: str) -> str:
        """Return what is wrong with the good options, some of them changed."""
        return str(self.assertRaises(ConfigError, resolve_console, given(**{**self.good(), **values})))

    def test_good(self) -> None:
        """Good options become settings, which show no secret."""
        self.assertIsNone(resolve_console(given(**GOOD)).oidc)
        options = dict(given(**self.good(), oidc_only="yes"))
        options["oidc-role"] += given(oidc_role="https://a.example/roles=a:b=c:viewer")["oidc-role"]
        oidc = resolve_console(options).oidc
        assert oidc is not None
        self.assertEqual(
            ("https://id.example/realm", "console", "s3cret", self.file, True),
            (oidc.issuer, oidc.client_id, oidc.secret, oidc.secret_file, oidc.only),
        )
        self.assertEqual(
            [("groups", "ops", "admin", True), ("https://a.example/roles", "a:b=c", "viewer", False)],
            [(each.claim, each.value, each.role, each.tap) for each in oidc.roles],
        )
        self.assertEqual("groups=ops:admin+tap", str(oidc.roles[0]))
        self.assertNotIn("s3cret", repr(oidc))

    def test_missing(self) -> None:
        """Whatever belongs together is named, all at once."""
        text = self.problem(oidc_client_id="", oidc_secret_file="", oidc_role="")
        for name in ("oidc-client-id", "oidc-secret-file", "oidc-role"):
            self.assertIn(f"--{name} is missing", text)
        text = self.problem(oidc_issuer="", oidc_only="yes")
        for name in ("oidc-client-id", "oidc-secret-file", "oidc-role", "oidc-only"):
            self.assertIn(f"--{name} needs --oidc-issuer.", text)

    def test_issuer(self) -> None:
        """An issuer is a URL of HTTPS with a path at most, or one of this machine."""
        for good in ("https://id.example", "https://id.example:8443/a/", "http://127.0.0.1:9", "http://localhost/a"):
            self.assertEqual(good, checked_issuer(good))
        for bad in (
            "id.example",
            "https://",
            "http://id.example",
            "http://127.0.0.1.example",
            "https://id.example?a=b",
            "https://id.example/#a",
            "https://me:secret@id.example",
            "https://id.example/ a",
            "https://id.example:99999",
            "ftp://id.example",
        ):
            self.assertRaises(ConfigError, checked_issuer, bad)

    def test_roles(self) -> None:
        """A role has a claim, a value and one of three words."""
        for bad in (
            "x",
            "groups",
            "groups=ops",
            "=ops:admin",
            "groups=:admin",
            "groups=ops:root",
            "groups=ops:admin+all",
        ):
            self.assertIn("oidc_role: ", self.problem(oidc_role=bad))
        deep = parse_role("realm_access.roles=ops:editor")
        self.assertTrue(deep.is_in({"realm_access": {"roles": ["ops"]}}))
        self.assertTrue(deep.is_in({"realm_access.roles": "ops"}))
        self.assertFalse(deep.is_in({"realm_access.roles": "x", "realm_access": {"roles": ["ops"]}}))
        self.assertFalse(deep.is_in({"realm_access": ["roles"]}))

    def test_secret(self) -> None:
        """The secret is alone in a file that not everyone reads."""
        for content, mode, sentence in (
            (b"", 0o600, "the client's secret alone"),
            (b"a\nb", 0o600, "the client's secret alone"),
            (b"\xff", 0o600, "not UTF-8"),
            (b"s3cret", 0o644, "every user"),
        ):
            text = self.problem(oidc_secret_file=self.secret(content, mode))
            self.assertIn(sentence, text)
            self.assertNotIn("s3cret", text)
        self.assertIn("/missing", self.problem(oidc_secret_file="/missing"))
        self.assertIn("printable", self.problem(oidc_client_id="a\nb"))
