"""Spec strings of the relay's consumer of JetStream, and the subjects that settle its messages."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.relay.consumer import BrokerOptions
from webhookrx.relay.nats_source import NatsSource, read_place, read_source
from webhookrx.relay.registry import build_consumer


def read(url: str = "nats://127.0.0.1/LOGS", group: str = "store", **given: str) -> NatsSource:
    """Read a spec string that is taken apart."""
    return read_source([url], BrokerOptions("nats", given), group)


class NatsSourceTests(SynchronousTestCase):
    """The options."""

    def test_source(self) -> None:
        """The URL names the stream, and the group the durable consumer."""
        source = read("nats://a:4333,b/LOGS", subject="logs.*.x.>", ack_wait="1m", max_ack_pending="7")

        self.assertEqual("a:4333,b:4222", str(source.servers.addresses))
        self.assertEqual(("LOGS", "store", "logs.*.x.>"), (source.stream, source.durable, source.subject))
        self.assertEqual((60.0, 7), (source.ack_wait, source.max_ack_pending))

    def test_mistakes(self) -> None:
        """Each mistake is a sentence that names the broker."""
        for words, url, group, given in (
            ("must name a stream", "nats://127.0.0.1", "g", {}),
            ("must name a stream", "nats://127.0.0.1/logs.>", "g", {}),
            ("the group is the name of a consumer", "nats://127.0.0.1/LOGS", "a.b", {}),
            ("the group is the name of a consumer", "nats://127.0.0.1/LOGS", "a b", {}),
            ("stands for one token", "nats://127.0.0.1/LOGS", "g", {"subject": "logs..x"}),
            ("stands for one token", "nats://127.0.0.1/LOGS", "g", {"subject": "logs.>.x"}),
            ("stands for one token", "nats://127.0.0.1/LOGS", "g", {"subject": "lo*gs"}),
            ("1s or more", "nats://127.0.0.1/LOGS", "g", {"ack_wait": "0.5s"}),
            ("a whole number from 1", "nats://127.0.0.1/LOGS", "g", {"max_ack_pending": "0"}),
            ("allow_plaintext", "nats://logs.example/LOGS", "g", {"user": "me", "password_file": "/x"}),
        ):
            with self.subTest(words):
                error = self.assertRaises(ConfigError, read, url, group, **given)
                self.assertIn("broker 'nats'", str(error))
                self.assertIn(words, str(error))

    def test_missing_file(self) -> None:
        """Files are read when the consumer is made, and nothing is connected."""
        error = self.assertRaises(
            ConfigError, build_consumer, "nats:nats://127.0.0.1:1/LOGS:user=me:password_file=/no/such", "g"
        )

        self.assertIn("password_file", str(error))
        build_consumer("nats:nats://127.0.0.1:1/LOGS", "g").close()


class PlaceTests(SynchronousTestCase):
    """The subject that settles a message."""

    def test_both_forms(self) -> None:
        """Sequence, deliveries, time and what waits are in both forms of it."""
        expected = (42, 2, 1690000000000000001, 7)

        self.assertEqual(expected, read_place("$JS.ACK.LOGS.store.2.42.9.1690000000000000001.7"))
        self.assertEqual(expected, read_place("$JS.ACK._.hash.LOGS.store.2.42.9.1690000000000000001.7.token"))
        self.assertEqual(expected, read_place("$JS.ACK.hub.hash.LOGS.store.2.42.9.1690000000000000001.7"))

    def test_others(self) -> None:
        """Any other subject settles nothing."""
        for reply in (
            "",
            "_INBOX.x",
            "$JS.ACK",
            "$JS.ACK.LOGS.store.2.x.9.1.7",
            "$JS.ACK.LOGS.store.2.-4.9.1.7",
            "$JS.ACK.1.2",
        ):
            self.assertIsNone(read_place(reply), reply)
