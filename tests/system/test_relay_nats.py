"""The relay's consumer of NATS JetStream, on a real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import nats
from nats.js.api import AckPolicy, ConsumerConfig

from tests.contracts.relay_consumer_contract import MiB, RelayConsumerContract
from tests.system.receiver import wait_until
from tests.system.servers.nats_server import NatsServer
from tests.system.servers.process import ServerCase
from webhookrx.errors import Unavailable
from webhookrx.relay.consumer import Consumer, Record
from webhookrx.relay.nats_consumer import NatsConsumer
from webhookrx.relay.registry import build_consumer

T = TypeVar("T")

LONG = 10.0
"""
Seconds of a pull that lasts until a message comes again. Where one ends just when a message is to come again, servers
before 2.10.14 say that it comes for the first time (U{https://github.com/nats-io/nats-server/pull/5305}).
"""


class NatsConsumerTests(RelayConsumerContract, ServerCase):
    """The contract, and what is particular."""

    def setUp(self) -> None:
        """Start a server with a stream."""
        super().setUp()
        self.server = self.serve(NatsServer)
        self.login: dict[str, Any] = {}
        self.ask(lambda stream: stream.add_stream(name="LOGS", subjects=["logs.>"]))

    def ask(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Do something with JetStream over a connection of its own."""

        async def run() -> T:
            client = await nats.connect(f"nats://{self.server.address}", allow_reconnect=False, **self.login)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(run())

    def make_consumer(self, group: str = "g", options: str = ":ack_wait=2s") -> Consumer:
        """Make one of the stream."""
        return build_consumer(f"nats:nats://{self.server.address}/LOGS{options}", group)

    def publish(self, values: Sequence[bytes], ids: Sequence[str] | None = None) -> None:
        """Publish values."""

        async def run(stream: Any) -> None:
            for number, value in enumerate(values):
                headers = {"Nats-Msg-Id": ids[number]} if ids else None
                await stream.publish("logs.a", value, headers=headers)

        self.ask(run)

    def kill(self, consumer: Consumer) -> None:
        """Close its socket without a word."""
        assert isinstance(consumer, NatsConsumer)
        assert consumer._client is not None
        consumer._client.abort()
        consumer._thread.close()

    def test_fetching_acknowledges_nothing(self) -> None:
        """
        What was fetched and not settled is still the server's to deliver: a source that acknowledges on arrival loses
        what its destination has not taken (U{https://github.com/vectordotdev/vector/issues/26311}).
        """
        self.publish([b"one", b"two", b"three"])
        consumer = self.opened()
        self.addCleanup(consumer.close)
        records = self.fetched(consumer, 3)
        self.assertEqual(3, self.ask(lambda stream: stream.consumer_info("LOGS", "g")).num_ack_pending)

        consumer.settle(records[:1])

        self.assertEqual(2, self.ask(lambda stream: stream.consumer_info("LOGS", "g")).num_ack_pending)

    def test_server_is_killed(self) -> None:
        """What was delivered before the server was killed can be settled after; only what it forgets comes again."""
        self.publish([b"%d" % number for number in range(10)])
        consumer = self.make_consumer(options=":ack_wait=3s")
        consumer.open()
        self.addCleanup(consumer.close)
        records = self.fetched(consumer, 10)
        consumer.settle(records[:5])
        self.server.kill()
        self.assertRaises(Unavailable, consumer.settle, records[5:])
        self.server.start()
        again: list[Record] = []
        left = records[5:]

        def all_settled() -> bool:
            try:
                consumer.settle(left)
                if not self.ask(lambda stream: stream.consumer_info("LOGS", "g")).num_ack_pending:
                    return True
                came = consumer.fetch(100, MiB, LONG)
                again.extend(came)
                consumer.settle(came)
            except Unavailable:
                return False
            return not self.ask(lambda stream: stream.consumer_info("LOGS", "g")).num_ack_pending

        wait_until(all_settled, "what is left is settled")
        # It writes acknowledgements to its disk a moment after it has confirmed them.
        self.assertLessEqual({record.origin for record in again}, {record.origin for record in records})
        self.assertTrue(all(record.redelivered for record in again))

    def test_kept_while_the_observer_is_away(self) -> None:
        """What is kept alive for longer than C{ack_wait} goes to nobody else, though another one asks for it."""
        self.publish([b"one", b"two"])
        consumer, other = self.make_consumer(options=":ack_wait=1s"), self.make_consumer(options=":ack_wait=1s")
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
        """What is not kept alive is lost after C{ack_wait}, goes to another one, and is told so."""
        self.publish([b"one"])
        consumer, other = self.make_consumer(options=":ack_wait=1s"), self.make_consumer(options=":ack_wait=1s")
        for each in (consumer, other):
            each.open()
            self.addCleanup(each.close)
        (record,) = self.fetched(consumer, 1)

        (again,) = other.fetch(100, MiB, LONG)

        self.assertTrue(again.redelivered)
        self.assertEqual(record.origin, again.origin)
        self.assertFalse(consumer.is_ours(record))

    def test_server_is_frozen(self) -> None:
        """While the server hangs each call ends soon; after that all goes on."""
        self.publish([b"one"])
        consumer = self.make_consumer(options="")
        consumer.open()
        self.addCleanup(consumer.close)
        (record,) = self.fetched(consumer, 1)
        self.server.freeze()
        began = time.monotonic()
        self.assertRaises(Unavailable, self.fetched, consumer, 1)
        self.assertLess(time.monotonic() - began, 30.0)
        self.assertRaises(Unavailable, consumer.settle, [record])
        consumer.keep_alive()
        self.server.thaw()

        def settled() -> bool:
            try:
                consumer.settle([record])
            except Unavailable:
                return False
            return True

        wait_until(settled, "the message is settled")

    def test_no_stream(self) -> None:
        """A stream that is not there is a sentence; once it is, messages come."""
        self.ask(lambda stream: stream.delete_stream("LOGS"))
        consumer = self.opened()
        self.addCleanup(consumer.close)

        error = self.assertRaises(Unavailable, consumer.fetch, 10, MiB, 5.0)

        self.assertIn("there is no stream LOGS", str(error))
        self.ask(lambda stream: stream.add_stream(name="LOGS", subjects=["logs.>"]))
        self.publish([b"one"])
        self.fetched(consumer, 1)

    def test_consumer_is_deleted(self) -> None:
        """When somebody deletes the consumer it is made anew, and reads from the beginning."""
        self.publish([b"one"])
        consumer = self.opened()
        self.addCleanup(consumer.close)
        consumer.settle(self.fetched(consumer, 1))
        self.ask(lambda stream: stream.delete_consumer("LOGS", "g"))
        seen: list[bytes] = []

        def came() -> bool:
            try:
                seen.extend(record.value for record in consumer.fetch(10, MiB, 0.2))
            except Unavailable:
                return False
            return bool(seen)

        wait_until(came, "the message comes again")
        self.assertEqual([b"one"], seen)

    def test_options(self) -> None:
        """The durable consumer has what the options say, and gets it when it is there already."""
        consumer = self.make_consumer(options=":ack_wait=7s:max_ack_pending=9:subject=logs.>")
        consumer.open()
        self.nothing_comes(consumer)
        consumer.close()
        config = self.ask(lambda stream: stream.consumer_info("LOGS", "g")).config
        self.assertEqual((7, 9, "logs.>"), (config.ack_wait, config.max_ack_pending, config.filter_subject))
        consumer = self.make_consumer(options=":ack_wait=8s")
        consumer.open()
        self.nothing_comes(consumer)
        consumer.close()

        config = self.ask(lambda stream: stream.consumer_info("LOGS", "g")).config

        self.assertEqual((8, 9, "logs.>"), (config.ack_wait, config.max_ack_pending, config.filter_subject))

    def test_consumer_that_may_lose(self) -> None:
        """A consumer that acknowledges on delivery is not used."""
        config = ConsumerConfig(durable_name="g", ack_policy=AckPolicy.NONE)
        self.ask(lambda stream: stream.add_consumer("LOGS", config))
        consumer = self.make_consumer(options="")
        consumer.open()
        self.addCleanup(consumer.close)

        error = self.assertRaises(Unavailable, consumer.fetch, 10, MiB, 5.0)

        self.assertIn("explicit acknowledgements", str(error))

    def test_rights(self) -> None:
        """The rights that the docs list are enough, and a missing one is told, without the password."""
        self.server.stop()
        allowed = [
            "$JS.API.CONSUMER.INFO.LOGS.g",
            "$JS.API.CONSUMER.MSG.NEXT.LOGS.g",
            "$JS.ACK.LOGS.g.>",
            "$JS.API.CONSUMER.DURABLE.CREATE.LOGS.g",
            "$JS.API.CONSUMER.CREATE.LOGS.>",
        ]
        subjects = ", ".join(f'"{subject}"' for subject in allowed)
        self.server.options.append(
            "authorization { users: ["
            '{user: "all", password: "all"}, {user: "none", password: "hunter2", permissions: {publish: ["x"]}},'
            f'{{user: "me", password: "hunter2", permissions: {{publish: [{subjects}], subscribe: ["_INBOX.>"]}}}}'
            "] }"
        )
        self.server.start()
        self.login = {"user": "all", "password": "all"}
        self.publish([b"one", b"two"])
        path = self.server.write("password", "hunter2\n")
        consumer = self.make_consumer(options=f":user=me:password_file={path}")
        consumer.open()
        self.addCleanup(consumer.close)
        consumer.settle(self.fetched(consumer, 2))
        self.nothing_comes(consumer)
        poor = self.make_consumer(options=f":user=none:password_file={path}")
        poor.open()
        self.addCleanup(poor.close)
        said: list[str] = []

        def told() -> bool:
            try:
                poor.fetch(10, MiB, 0.5)
            except Unavailable as error:
                said.append(str(error))
            return any("permissions violation" in text for text in said)

        wait_until(told, "the missing right is told")
        self.assertNotIn("hunter2", " ".join(said))
