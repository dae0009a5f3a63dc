"""The relay's consumer of Redis, on a real server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis

from tests.contracts.relay_consumer_contract import MiB, RelayConsumerContract
from tests.system.receiver import wait_until
from tests.system.servers.process import ServerCase
from tests.system.servers.redis_server import RedisServer
from webhookrx.errors import Unavailable
from webhookrx.relay.consumer import Consumer, Record
from webhookrx.relay.redis_consumer import RedisConsumer
from webhookrx.relay.registry import build_consumer


class RedisConsumerTests(RelayConsumerContract, ServerCase):
    """The contract, and what is particular."""

    def setUp(self) -> None:
        """Start a server."""
        super().setUp()
        self.server = self.serve(RedisServer)
        self.client: Any = redis.Redis(port=self.server.port)
        self.addCleanup(self.client.close)

    def make_consumer(self, group: str = "g", claim_after: str = "2s") -> Consumer:
        """Make one of the stream."""
        return build_consumer(f"redis:redis://{self.server.address}/0/logs:claim_after={claim_after}", group)

    def publish(self, values: Sequence[bytes], ids: Sequence[str] | None = None) -> None:
        """Publish values."""
        for number, value in enumerate(values):
            self.client.xadd("logs", {**({"id": ids[number]} if ids else {}), "message": value})

    def kill(self, consumer: Consumer) -> None:
        """Close its socket without a word."""
        assert isinstance(consumer, RedisConsumer)
        consumer._disconnect()

    def settled(self, consumer: Consumer, records: Sequence[Record]) -> None:
        """Settle, and try again until it works."""

        def settled() -> bool:
            try:
                consumer.settle(records)
            except Unavailable:
                return False
            return True

        wait_until(settled, "all is settled")

    def test_fetching_acknowledges_nothing(self) -> None:
        """What was fetched and not settled is still pending in the group."""
        self.publish([b"one", b"two", b"three"])
        consumer = self.opened()
        self.addCleanup(consumer.close)
        records = self.fetched(consumer, 3)
        self.assertEqual(3, self.client.xpending("logs", "g")["pending"])

        consumer.settle(records[:1])

        self.assertEqual(2, self.client.xpending("logs", "g")["pending"])

    def test_server_is_killed(self) -> None:
        """What was delivered before the server was killed can be settled after, and nothing comes twice or is lost."""
        self.publish([b"%d" % number for number in range(10)])
        consumer = self.make_consumer(claim_after="30s")
        consumer.open()
        self.addCleanup(consumer.close)
        records = self.fetched(consumer, 10)
        consumer.settle(records[:5])
        self.server.kill()
        self.assertRaises(Unavailable, consumer.settle, records[5:])
        self.server.start()

        self.settled(consumer, records[5:])

        self.nothing_comes(consumer)
        self.assertEqual(0, self.client.xpending("logs", "g")["pending"])

    def test_kept_while_the_observer_is_away(self) -> None:
        """What is kept alive for longer than C{claim_after} goes to nobody else, though another one asks for it."""
        self.publish([b"one", b"two"])
        consumer, other = self.make_consumer(claim_after="1s"), self.make_consumer(claim_after="1s")
        for each in (consumer, other):
            each.open()
            self.addCleanup(each.close)
        records = self.fetched(consumer, 2)

        for _ in range(10):
            consumer.keep_alive()
            self.assertEqual([], list(other.fetch(100, MiB, 0.3)))

        self.assertTrue(all(consumer.is_ours(record) for record in records))
        consumer.settle(records)

    def test_lost_when_not_kept(self) -> None:
        """What is not kept alive is lost after C{claim_after}, goes to another one, and is told so."""
        self.publish([b"one"])
        consumer, other = self.make_consumer(claim_after="1s"), self.make_consumer(claim_after="1s")
        for each in (consumer, other):
            each.open()
            self.addCleanup(each.close)
        (record,) = self.fetched(consumer, 1)

        (again,) = self.fetched(other, 1)

        self.assertTrue(again.redelivered)
        self.assertEqual(record.origin, again.origin)
        self.assertFalse(consumer.is_ours(record))

    def test_server_is_frozen(self) -> None:
        """While the server hangs each call ends soon; after that all goes on."""
        self.publish([b"one"])
        consumer = self.make_consumer(claim_after="30s")
        consumer.open()
        self.addCleanup(consumer.close)
        (record,) = self.fetched(consumer, 1)
        self.server.freeze()
        self.assertRaises(Unavailable, consumer.fetch, 10, MiB, 0.1)
        self.assertRaises(Unavailable, consumer.settle, [record])
        consumer.keep_alive()
        self.server.thaw()

        self.settled(consumer, [record])

    def test_stream_is_deleted(self) -> None:
        """When the stream is deleted, the group with it, both are made anew."""
        self.publish([b"one"])
        consumer = self.opened()
        self.addCleanup(consumer.close)
        consumer.settle(self.fetched(consumer, 1))
        self.client.delete("logs")
        self.nothing_comes(consumer)

        self.publish([b"two"])

        self.assertEqual([b"two"], [record.value for record in self.fetched(consumer, 1)])

    def test_entries_of_others(self) -> None:
        """An entry that others have written has its only value, or all of them as JSON."""
        self.client.xadd("logs", {"text": "hello"})
        self.client.xadd("logs", {"a": "1", "b": b"\xff"})
        consumer = self.opened()
        self.addCleanup(consumer.close)

        values = [record.value for record in self.fetched(consumer, 2)]

        self.assertEqual([b"hello", b'{"a":"1","b":"\\\\xff"}'], values)

    def test_trimmed_entries(self) -> None:
        """Entries that the stream has dropped while they were held are settled and claimed without an error."""
        self.publish([b"one", b"two"])
        consumer = self.make_consumer(claim_after="1s")
        consumer.open()
        self.addCleanup(consumer.close)
        records = self.fetched(consumer, 2)
        self.client.xtrim("logs", maxlen=0)

        consumer.keep_alive()
        consumer.settle(records)

        self.nothing_comes(consumer)

    def test_key_of_another_type(self) -> None:
        """A key that is no stream is a sentence, and nothing ends."""
        self.client.set("logs", "x")
        consumer = self.opened()
        self.addCleanup(consumer.close)

        error = self.assertRaises(Unavailable, consumer.fetch, 10, MiB, 1.0)

        self.assertIn("WRONGTYPE (the key is no stream)", str(error))

    def test_no_consumer_is_left(self) -> None:
        """One that has settled all leaves no name behind in the group; one that has not leaves what others claim."""
        self.publish([b"one", b"two"])
        consumer = self.opened()
        records = self.fetched(consumer, 2)
        consumer.settle(records)
        consumer.close()
        self.assertEqual([], self.client.xinfo_consumers("logs", "g"))
        self.publish([b"three"])
        consumer = self.opened()
        self.fetched(consumer, 1)

        consumer.close()

        self.assertEqual(1, len(self.client.xinfo_consumers("logs", "g")))

    def test_rights(self) -> None:
        """The rights that the docs list are enough, and no more are needed to settle."""
        rights = "+xreadgroup +xack +xclaim +xautoclaim +xpending +xgroup|create +xgroup|delconsumer +xinfo|groups"
        self.client.execute_command("ACL", "SETUSER", "me", "on", ">hunter2", "~logs", *rights.split(" "))
        path = self.server.write("password", "hunter2\n")
        self.publish([b"one", b"two"])
        spec = f"redis:redis://{self.server.address}/0/logs:claim_after=1s:user=me:password_file={path}"
        consumer = build_consumer(spec, "g")
        consumer.open()
        records = self.fetched(consumer, 2)
        consumer.keep_alive()
        consumer.settle(records)
        self.nothing_comes(consumer)
        self.assertEqual(0, consumer.lag())

        consumer.close()

        self.assertEqual([], self.client.xinfo_consumers("logs", "g"))
        refused = self.client.acl_log()
        self.assertEqual([], refused)
