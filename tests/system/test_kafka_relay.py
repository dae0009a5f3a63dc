"""A relay reads from librdkafka's mock cluster."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tests.contracts.relay_consumer_contract import RelayConsumerContract
from tests.system.receiver import wait_until
from tests.system.servers.kafka_mock import KafkaMock
from tests.system.servers.process import ServerCase
from webhookrx.errors import Unavailable
from webhookrx.relay.consumer import Consumer, Record
from webhookrx.relay.registry import build_consumer

_names = itertools.count()

OFFSET_COMMIT, HEARTBEAT = 8, 12
UNKNOWN_MEMBER_ID, GROUP_AUTHORIZATION_FAILED = 25, 30
MiB = 1024 * 1024


class KafkaReadingCase(ServerCase):
    """A topic, and what publishes to it."""

    partitions = 1

    def setUp(self) -> None:
        """Start a cluster."""
        self.kafka = self.serve(KafkaMock)
        self.kafka.join_soon()
        self.topic = f"t{next(_names)}"
        self.kafka.make_topic(self.topic, self.partitions)
        from confluent_kafka import Producer

        self.producer: Any = Producer({"bootstrap.servers": self.kafka.bootstrap, "linger.ms": 0, "log_level": 0})
        self.addCleanup(self.end_producer)

    def end_producer(self) -> None:
        """Let its threads end."""
        self.producer.purge()
        self.producer.close()

    @property
    def spec(self) -> str:
        """The spec string of the topic."""
        return f"kafka:kafka://{self.kafka.bootstrap}/{self.topic}"

    def make_consumer(self, group: str = "g") -> Consumer:
        """Make one."""
        return build_consumer(self.spec, group)

    def publish(self, values: Sequence[bytes], ids: Sequence[str] | None = None, keys: bool = False) -> None:
        """Publish and wait; C{keys}: the first byte of each value is its key."""
        for number, value in enumerate(values):
            headers = [] if ids is None else [("webhookrx-id", ids[number].encode())]
            self.producer.produce(self.topic, value, key=value[:1] if keys else None, headers=headers)
        self.assertEqual(0, self.producer.flush(30))


class KafkaConsumerTests(KafkaReadingCase, RelayConsumerContract):
    """Consumers of a topic, as the relay uses them."""

    def test_dead_one_loses_what_it_holds(self) -> None:
        """What a killed consumer has not settled goes to another one of the group, once the broker misses it."""
        self.publish([b"one", b"two"])
        program = [sys.executable, "-m", "tests.system.kafka_reading_program", self.spec, "g", "2", "1"]
        with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            self.assertEqual(b"settled\n", process.stdout.readline())
            process.kill()
        after = self.opened()
        self.addCleanup(after.close)
        records: list[Record] = []

        def arrives() -> bool:
            records.extend(after.fetch(100, MiB, 0.5))
            return bool(records)

        wait_until(arrives, "another one gets it")

        self.assertEqual([b"two"], [record.value for record in records])


class KafkaGroupTests(KafkaReadingCase):
    """Several members of a group, and a cluster that fails."""

    partitions = 4

    def opened(self) -> Consumer:
        """Make a member."""
        consumer = self.make_consumer()
        consumer.open()
        self.addCleanup(consumer.close)
        return consumer

    def fetch(self, *consumers: Consumer, until: Callable[[], bool], into: list[Record], settle: bool = True) -> None:
        """Let members work until something is so."""

        left: dict[Consumer, list[Record]] = {consumer: [] for consumer in consumers}

        def turn() -> bool:
            for consumer, records in left.items():
                try:
                    arrived = consumer.fetch(100, MiB, 0.05)
                    into.extend(arrived)
                    if settle:
                        records.extend(arrived)
                        consumer.settle(records)
                        records.clear()
                except Unavailable:
                    consumer.keep_alive()
            return until() and not any(left.values())

        wait_until(turn, "the members have it")

    def committed(self) -> int:
        """Return the sum of the group's positions, as a client of its own reads them."""
        from confluent_kafka import Consumer as Client
        from confluent_kafka import TopicPartition

        client: Any = Client({"bootstrap.servers": self.kafka.bootstrap, "group.id": "g", "log_level": 0})
        try:
            places = [TopicPartition(self.topic, number) for number in range(self.partitions)]
            return sum(max(each.offset, 0) for each in client.committed(places, timeout=30))
        finally:
            client.close()

    def test_member_joins(self) -> None:
        """A member that joins gets partitions; what the first held of these is its own no more: the other gets it."""
        self.publish([b"%d" % (number % 9) for number in range(200)], keys=True)
        first = self.opened()
        held: list[Record] = []
        self.fetch(first, until=lambda: len(held) == 200, into=held, settle=False)
        second = self.opened()
        others: list[Record] = []

        def turn() -> bool:
            first.keep_alive()
            others.extend(second.fetch(100, MiB, 0.05))
            lost = [record.origin for record in held if not first.is_ours(record)]
            return bool(lost) and sorted(lost) == sorted(record.origin for record in others)

        wait_until(turn, "the second has what the first has lost")

        first.settle(held)
        self.assertLess(self.committed(), 200)
        second.settle(others)
        self.assertEqual(200, self.committed())

    def test_away_for_long(self) -> None:
        """While the observer is away the member stays, gets nothing twice, and then goes on in order."""
        self.publish([b"a%03d" % number for number in range(100)], keys=True)
        consumer = self.opened()
        records: list[Record] = []
        self.fetch(consumer, until=lambda: len(records) >= 10, into=records, settle=False)
        for _ in range(50):
            consumer.keep_alive()
        self.publish([b"a%03d" % number for number in range(100, 150)], keys=True)

        self.fetch(consumer, until=lambda: len(records) >= 150, into=records, settle=False)

        self.assertEqual([b"a%03d" % number for number in range(150)], [record.value for record in records])
        self.assertTrue(all(map(consumer.is_ours, records)))

    def test_nothing_committed_that_is_not_settled(self) -> None:
        """Neither time nor a rebalance nor the end of a member commits anything by itself."""
        self.publish([b"%d" % number for number in range(50)], keys=True)
        first, second = self.opened(), self.opened()
        records: list[Record] = []
        self.fetch(
            first, second, until=lambda: len({each.origin for each in records}) == 50, into=records, settle=False
        )
        first.close()
        second.close()

        self.assertEqual(0, self.committed())

    def test_frozen(self) -> None:
        """While the cluster is frozen every call returns soon; then offsets are committed and records come."""
        self.publish([b"one"])
        consumer = self.opened()
        records: list[Record] = []
        self.fetch(consumer, until=lambda: bool(records), into=records, settle=False)
        self.kafka.freeze()
        wait_until(self.is_frozen, "the cluster stands still")
        try:
            self.assertRaises(Unavailable, consumer.settle, records)
            self.assertRaises(Unavailable, consumer.settle, records)
            consumer.keep_alive()
            self.assertEqual([], list(consumer.fetch(10, MiB, 0.2)))
        finally:
            self.kafka.thaw()

        def settles() -> bool:
            try:
                consumer.settle(records)
            except Unavailable:
                return False
            return True

        wait_until(settles, "the offset is committed")
        self.assertEqual(1, self.committed())
        self.publish([b"two"])
        self.fetch(consumer, until=lambda: len(records) == 2, into=records)

    def is_frozen(self) -> bool:
        """Tell whether the signal has arrived."""
        with open(f"/proc/{self.kafka.pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    def test_thrown_out(self) -> None:
        """A member that the coordinator has forgotten loses its records, joins again, and gets them again."""
        self.publish([b"one", b"two"])
        consumer = self.opened()
        records: list[Record] = []
        self.fetch(consumer, until=lambda: len(records) == 2, into=records, settle=False)
        self.kafka.fail(HEARTBEAT, UNKNOWN_MEMBER_ID)

        def is_lost() -> bool:
            consumer.keep_alive()
            return not consumer.is_ours(records[0])

        wait_until(is_lost, "the records are lost")
        consumer.settle(records)
        self.assertEqual(0, self.committed())

        again: list[Record] = []
        self.fetch(consumer, until=lambda: len(again) == 2, into=again)
        self.assertEqual({record.origin for record in records}, {record.origin for record in again})
        self.assertEqual(2, self.committed())

    def test_commit_refused(self) -> None:
        """A commit that is refused settles nothing, and the next one does."""
        self.publish([b"one"])
        consumer = self.opened()
        records: list[Record] = []
        self.fetch(consumer, until=lambda: bool(records), into=records, settle=False)
        self.kafka.fail(OFFSET_COMMIT, GROUP_AUTHORIZATION_FAILED)

        error = self.assertRaises(Unavailable, consumer.settle, records)

        self.assertIn("GROUP_AUTHORIZATION_FAILED", str(error))
        self.assertEqual(0, self.committed())
        consumer.settle(records)
        self.assertEqual(1, self.committed())

    def test_no_cluster(self) -> None:
        """Where nobody listens, a fetch says so, every time, and the end comes soon."""
        consumer = build_consumer("kafka:kafka://127.0.0.1:1/logs", "g")
        consumer.open()
        self.addCleanup(consumer.close)

        def complains() -> bool:
            try:
                consumer.fetch(10, MiB, 0.1)
            except Unavailable as error:
                return "127.0.0.1:1" in str(error)
            return False

        wait_until(complains, "it says why")
        self.assertTrue(all(complains() for _ in range(3)))
