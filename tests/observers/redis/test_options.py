"""Spec strings of the redis observer."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.observers.redis.options import Confirmation, RedisTarget, read_redis
from webhookrx.observers.registry import find_spec

URL = "redis://127.0.0.1:6379/0/logs"


def read(url: str = URL, **given: str) -> RedisTarget:
    """Read a spec string that is taken apart."""
    return read_redis([url], given)


class RedisOptionTests(SynchronousTestCase):
    """The options."""

    def assert_refused(self, words: str, url: str = URL, **given: str) -> None:
        """It is an error with these words in it that names the observer."""
        error = self.assertRaises(ConfigError, read, url, **given)
        self.assertIn("observer 'redis'", str(error))
        self.assertIn(words, str(error))

    def test_place(self) -> None:
        """The URL names database and stream; a stream may have colons and slashes in it."""
        target = read("redis://h:7000/3/logs:web/x")

        self.assertEqual((3, "logs:web/x"), (target.servers.database, target.stream))
        self.assertEqual("h:7000", str(target.servers.addresses))

    def test_mistakes(self) -> None:
        """Each mistake is a sentence that says what is allowed."""
        for words, url in (
            ("a database by its number, and a stream", "redis://127.0.0.1"),
            ("a database by its number, and a stream", "redis://127.0.0.1/0"),
            ("a database by its number, and a stream", "redis://127.0.0.1/0/"),
            ("a database by its number, and a stream", "redis://127.0.0.1/logs"),
            ("a database by its number, and a stream", "redis://127.0.0.1/x/logs"),
            ("no name for a stream", "redis://127.0.0.1/0/lo gs"),
            ("no user or password in the URL", "redis://:hunter2@127.0.0.1/0/logs"),
            ("more than one server", "redis://a,b/0/logs"),
            ("begin with redis:// or rediss://", "http://127.0.0.1/0/logs"),
        ):
            with self.subTest(url):
                self.assert_refused(words, url)
        for words, given in (
            ("do not go together", {"wait": "1", "waitaof": "1,0"}),
            ("a whole number from 1", {"wait": "0"}),
            ("such as 1,0 or 1,2", {"waitaof": "1"}),
            ("such as 1,0 or 1,2", {"waitaof": "0,0"}),
            ("such as 1,0 or 1,2", {"waitaof": "2,0"}),
            ("such as 1,0 or 1,2", {"waitaof": "1,x"}),
            ("script or off", {"dedup": "auto"}),
            ("does not go with dedup=off", {"dedup": "off", "dedup_window": "1h"}),
            ("1s or more", {"dedup_window": "0s"}),
            ("a whole number from 1", {"maxlen": "0"}),
            ("user= goes with password_file=", {"user": "me"}),
            ("is empty", {"sentinel": ""}),
            ("goes with a rediss:// URL", {"ca_file": "/x"}),
        ):
            with self.subTest(str(given)):
                self.assert_refused(words, **given)

    def test_password_in_the_open(self) -> None:
        """A password goes unencrypted to another machine only where the operator says so."""
        self.assert_refused("allow_plaintext", "redis://logs.example/0/x", password_file="/x")
        self.assert_refused("allow_plaintext", "redis://127.0.0.1/0/x", password_file="/x", sentinel="main")

        read("redis://logs.example/0/x", password_file="/x", allow_plaintext="yes")
        read("rediss://logs.example/0/x", password_file="/x")
        read("redis://localhost/0/x", password_file="/x")

    def test_confirmations(self) -> None:
        """How many replicas, and whether their disks."""
        self.assertIsNone(read().confirmation)
        self.assertEqual(Confirmation(None, 2), read(wait="2").confirmation)
        self.assertEqual(Confirmation(1, 2), read(waitaof="1,2").confirmation)

    def test_dedup(self) -> None:
        """Redis is asked for the id by default."""
        self.assertEqual(900.0, read().dedup_window)
        self.assertIsNone(read(dedup="off").dedup_window)

    def test_every_option_is_declared(self) -> None:
        """The registry knows the observer, and which of its files are secrets."""
        spec = find_spec("redis")

        self.assertLessEqual({"wait", "waitaof", "sentinel"}, {*spec.options})
        self.assertEqual({"password_file", "key_file"}, {*spec.secrets})
