"""Spec strings of the relay's consumer of Redis, and entries of streams."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.relay.redis_source import read_entry
from webhookrx.relay.registry import build_consumer


class RedisSourceTests(SynchronousTestCase):
    """The options."""

    def test_mistakes(self) -> None:
        """Each mistake is a sentence that names the broker; nothing is connected."""
        for words, spec in (
            ("a database by its number, and a stream", "redis:redis://127.0.0.1:1/logs"),
            ("1s or more", "redis:redis://127.0.0.1:1/0/logs:claim_after=0s"),
            ("unknown option", "redis:redis://127.0.0.1:1/0/logs:waitaof=1,0"),
            ("password_file", "redis:redis://127.0.0.1:1/0/logs:password_file=/no/such"),
            ("allow_plaintext", "redis:redis://logs.example/0/logs:password_file=/no/such"),
        ):
            with self.subTest(spec):
                error = self.assertRaises(ConfigError, build_consumer, spec, "g")
                self.assertIn("broker 'redis'", str(error))
                self.assertIn(words, str(error))
        build_consumer("redis:redis://127.0.0.1:1/0/logs", "g").close()


class EntryTests(SynchronousTestCase):
    """Entries."""

    def test_ours(self) -> None:
        """Id and message, as the observer writes them."""
        self.assertEqual((b"{}", "7"), read_entry([b"id", b"7", b"message", b"{}"]))

    def test_others(self) -> None:
        """Of entries that others wrote the only value, or all as JSON; of an empty one nothing."""
        self.assertEqual((b"x", ""), read_entry([b"text", b"x"]))
        self.assertEqual((b'{"a":"1","b":"2"}', "7"), read_entry([b"a", b"1", b"id", b"7", b"b", b"2"]))
        self.assertEqual((b"", ""), read_entry([]))
        self.assertEqual((b"", "7"), read_entry([b"id", b"7"]))
        self.assertEqual((b"m", "\ufffd"), read_entry([b"id", b"\xff", b"message", b"m", b"more", b"x"]))
