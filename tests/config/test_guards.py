"""
Tests for L{webhookrx.config.guards}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK, start, write_text
from webhookrx.errors import ConfigError
from webhookrx.guard.quota import SourceQuota
from webhookrx.settings import GuardSettings, NetworkList


class ReadGuardTests(SynchronousTestCase):
    """
    Tests for L{read_guard} and L{read_networks}.
    """

    def guard(self, text: str) -> GuardSettings | None:
        """Return the guard of the one source of a configuration file."""
        path = write_text(self.mktemp(), "x.yaml", f"port: {LOOPBACK}\n{text}")
        (source,) = start(config=path).settings.sources
        return source.guard

    def test_plain_source(self) -> None:
        """A source without one of these options has no guard."""
        self.assertIsNone(self.guard("paths: /a"))

    def test_values(self) -> None:
        """Each option arrives in the guard of its source."""
        secrets = os.path.abspath(write_text(self.mktemp(), "secrets", "one = s3cret\n"))
        guard = self.guard(
            f"sender: github\nsecrets_file: {secrets}\nverify: note\nhandshake: no\nsplit: lines\nidempotency: 24h\n"
            "quota: {messages: 100/s, per: token}\nallow: [192.0.2.0/24, 2001:db8::/32]\n"
            "allow_clients: ['*.example.net']\nauth_token_in: query:token\npublic_url: https://logs.example.net\n"
            "sender_settings: {topics: [a, b], audience: c}\n"
        )
        assert guard is not None and guard.sender is not None
        self.assertEqual("github", guard.sender.id)
        self.assertEqual(((secrets, b"one = s3cret\n"),), guard.secret_files)
        self.assertNotIn("s3cret", repr(guard))
        self.assertEqual(
            ("note", False, "lines", 86400.0), (guard.verify, guard.handshake, guard.split, guard.idempotency)
        )
        self.assertEqual(SourceQuota(messages=100.0, per="token"), guard.quota)
        self.assertEqual((("192.0.2.0/24", "2001:db8::/32"), ("*.example.net",)), (guard.allow, guard.allow_clients))
        self.assertEqual(("query:token", "https://logs.example.net"), (guard.token_place, guard.public_url))
        self.assertEqual({"topics": ("a", "b"), "audience": ("c",)}, guard.sender_settings)

    def test_quota(self) -> None:
        """A quota is members with commas between them, or a mapping; a mistake names option, file and line."""
        self.assertEqual(
            SourceQuota(100.0, 1024.0, 5.0, "address"),
            self.guard("quota: 'messages=100/s,bytes=1KiB/s,burst=5s,per=address'").quota,
        )
        error = self.assertRaises(ConfigError, self.guard, "quota: {messages: 100/s, burst: soon, per: ip}")
        self.assertRegex(str(error), r"quota.*x\.yaml:2.*soon[^\n]*\n.*quota.*x\.yaml:2.*ip")
        error = self.assertRaises(ConfigError, self.guard, "quota: {per: token}")
        self.assertRegex(str(error), r"quota.*x\.yaml:2.*A quota needs messages, bytes or both")

    def test_networks(self) -> None:
        """A list of networks is a file, with a place in it or without one."""
        path = write_text(
            self.mktemp(),
            "x.yaml",
            """
            networks: {github: {file: /etc/meta.json, at: /hooks}, office: {file: /etc/a#b}, home: home.txt}
            """,
        )
        expected = (
            NetworkList("github", "/etc/meta.json", "/hooks"),
            NetworkList("office", "/etc/a#b"),
            NetworkList("home", os.path.abspath("home.txt")),
        )
        self.assertEqual(expected, start(config=path, port=LOOPBACK).settings.networks)
