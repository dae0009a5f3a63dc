"""
Tests for L{webhookrx.relay.kafka_consumer} and L{webhookrx.relay.kafka_member}, with a consumer of librdkafka that is
played.
"""

from __future__ import annotations

import json
import os
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError, Unavailable
from webhookrx.observers.kafka.cluster import Properties, read_cluster
from webhookrx.relay import kafka_member
from webhookrx.relay.kafka_consumer import KafkaConsumer

MiB = 1024 * 1024


class PlayedMessage:
    """A message."""

    def __init__(
        self, value: bytes | None, partition: int = 0, offset: int = 0, error: KafkaError | None = None
    ) -> None:
        self._value = value
        self._place = partition, offset
        self._error = error
        self.given_headers: list[tuple[str, bytes | None]] | None = None
        self.given_key: bytes | None = None
        self.time = (1, 1234)

    def value(self) -> bytes | None:
        return self._value

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def error(self) -> KafkaError | None:
        return self._error

    def key(self) -> bytes | None:
        return self.given_key

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.given_headers

    def timestamp(self) -> tuple[int, int]:
        return self.time

    def __len__(self) -> int:
        return len(self._value or b"")


class PlayedConsumer:
    """librdkafka's consumer: hands over what the test has put into C{queue}; a callable is called, as a callback is."""

    def __init__(self, properties: Properties) -> None:
        self.properties = properties
        self.queue: list[Any] = []
        self.paused: set[int] = set()
        self.commits: list[dict[int, int]] = []
        self.answers = True
        self.refusal: KafkaError | None = None
        self.is_closed = False
        self.consumed = 0
        self.credentials: tuple[str, str] | None = None
        self.callbacks: dict[str, Any] = {}
        self.watermarks = (0, 10)

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def consume(self, count: int, timeout: float) -> list[Any]:
        assert timeout <= 0.1, "a wait that does not look at the event"
        self.consumed += 1
        taken: list[Any] = []
        while self.queue and len(taken) < count:
            item = self.queue.pop(0)
            if isinstance(item, Exception):
                raise item
            if callable(item):
                item()
            else:
                taken.append(item)
        return taken

    def assign(self, *numbers: int) -> None:
        """Let the coordinator give partitions."""
        self.queue.append(lambda: self.callbacks["on_assign"](self, [TopicPartition("logs", n) for n in numbers]))

    def revoke(self, *numbers: int, how: str = "on_revoke") -> None:
        """Let it take them."""
        self.queue.append(lambda: self.callbacks[how](self, [TopicPartition("logs", n) for n in numbers]))

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.commits.append({each.partition: each.offset for each in offsets})
        if self.answers:
            self.queue.insert(0, lambda: self.properties["on_commit"](self.refusal, offsets))

    def pause(self, places: list[TopicPartition]) -> None:
        self.paused |= {each.partition for each in places}

    def resume(self, places: list[TopicPartition]) -> None:
        self.paused -= {each.partition for each in places}

    def get_watermark_offsets(self, place: TopicPartition, cached: bool) -> tuple[int, int]:
        assert cached
        return self.watermarks

    def set_sasl_credentials(self, user: str, password: str) -> None:
        self.credentials = user, password

    def close(self) -> None:
        self.is_closed = True


class KafkaConsumerTests(SynchronousTestCase):
    """One consumer."""

    def setUp(self) -> None:
        """Make one with two partitions."""
        self.now = 0.0
        self.made: list[PlayedConsumer] = []
        self.consumer = self.make()
        self.played.assign(0, 1)

    @property
    def played(self) -> PlayedConsumer:
        """The last one of librdkafka."""
        return self.made[-1]

    def make(self, **options: str) -> KafkaConsumer:
        """Make an open one."""
        cluster, topic = read_cluster(["kafka://127.0.0.1:1/logs"], SpecOptions("kafka", options))
        consumer = KafkaConsumer("kafka:spec", cluster, topic, "g", self.connect, self.clock)
        consumer.open()
        return consumer

    def connect(self, properties: Properties) -> PlayedConsumer:
        """Make one of librdkafka."""
        self.made.append(PlayedConsumer(properties))
        return self.made[-1]

    def clock(self) -> float:
        """Let some time go by at each look."""
        self.now += 0.05
        return self.now

    def put(self, *values: bytes, partition: int = 0, begin: int = 0) -> None:
        """Let messages arrive."""
        self.played.queue += [PlayedMessage(value, partition, begin + n) for n, value in enumerate(values)]

    def values(self, messages: int = 100, size: int = MiB) -> list[bytes]:
        """Fetch."""
        return [record.value for record in self.consumer.fetch(messages, size, 0.3)]

    def test_never_by_itself(self) -> None:
        """librdkafka is told to commit nothing by itself, and to skip nothing."""
        properties = self.played.properties
        for name, value in {
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "group.id": "g",
            "check.crcs": True,
            # Of what it has fetched librdkafka counts neither keys nor headers.
            "queued.min.messages": 300,
        }.items():
            self.assertEqual(value, properties[name], name)

    def test_file_changes_no_group(self) -> None:
        """What a file of properties says does not change the group's."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w") as file:
            file.write("receive.message.max.bytes=1000\nclient.rack=a\n")
        self.make(librdkafka_file=path)

        self.assertGreater(self.played.properties["receive.message.max.bytes"], MiB)
        self.assertEqual("a", self.played.properties["client.rack"])

    def test_record(self) -> None:
        """A record has value, id, origin and time."""
        message = PlayedMessage(b"v", 1, 7)
        message.given_headers = [("other", b"x"), ("webhookrx-id", b"an-id")]
        self.played.queue.append(message)

        (record,) = self.consumer.fetch(10, MiB, 0.3)

        self.assertEqual((b"v", "an-id", "logs/1/7", 1_234_000_000), record[:4])

    def test_odd_headers(self) -> None:
        """An id that can't be one of ours is none; without value and time there are none."""
        cases: list[list[tuple[str, bytes | None]] | None] = [None, []]
        cases += [[("webhookrx-id", own)] for own in (None, b"\xff", b"x" * 600)]
        for headers in cases:
            message = PlayedMessage(None)
            message.given_headers = headers
            message.time = (0, 0)
            self.played.queue.append(message)
            (record,) = self.consumer.fetch(10, MiB, 0.3)
            self.assertEqual((b"", "", None), (record.value, record.id, record.received))

    def test_sizes(self) -> None:
        """What does not fit comes next, in order; a larger one comes alone."""
        self.put(b"a" * 100, b"b" * 100, b"c" * 1000, b"d")

        self.assertEqual([b"a" * 100, b"b" * 100], self.values(size=250))
        self.assertEqual([b"c" * 1000], self.values(size=250))
        self.assertEqual([b"d"], self.values(size=250))

    def test_commits_once(self) -> None:
        """What is settled is committed once, up to the first record that is not."""
        self.put(b"a", b"b", b"c")
        records = self.consumer.fetch(10, MiB, 0.3)
        self.consumer.settle([records[1]])
        self.assertEqual([], self.played.commits)
        self.consumer.settle([records[0]])
        self.consumer.settle(records[:2])
        self.consumer.close()

        self.assertEqual([{0: 2}], self.played.commits)

    def test_commit_without_answer(self) -> None:
        """While a commit is not answered, settle says so in about a second, commits nothing else, and then goes on."""
        self.put(b"a", b"b")
        records = self.consumer.fetch(10, MiB, 0.3)
        self.played.answers = False
        self.assertRaises(Unavailable, self.consumer.settle, records[:1])
        began = self.now
        self.assertRaises(Unavailable, self.consumer.settle, records[:1])
        self.assertLess(self.now - began, 1.5)
        self.assertEqual([{0: 1}], self.played.commits)
        self.played.answers = True
        self.played.queue.append(lambda: self.played.properties["on_commit"](None, [TopicPartition("logs", 0, 1)]))
        self.consumer.settle(records)

        self.assertEqual([{0: 1}, {0: 2}], self.played.commits)

    def test_commit_refused(self) -> None:
        """A refused commit is told, for one partition too, and made again."""
        self.put(b"a")
        records = self.consumer.fetch(10, MiB, 0.3)
        self.played.refusal = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
        error = self.assertRaises(Unavailable, self.consumer.settle, records)
        self.assertIn("GROUP_AUTHORIZATION_FAILED", str(error))
        self.played.refusal = None

        self.consumer.settle(records)

        self.assertEqual([{0: 1}, {0: 1}], self.played.commits)

    def test_revoked(self) -> None:
        """What is lost with its partition is not ours, not committed, and not delivered from what was ready."""
        for how in ("on_revoke", "on_lost"):
            with self.subTest(how):
                self.setUp()
                self.put(b"a", b"b")
                self.put(b"c", partition=1)
                records = self.consumer.fetch(1, MiB, 0.3)
                kept = self.consumer.fetch(2, MiB, 0.3)
                self.played.revoke(0, how=how)
                self.put(b"late", begin=9)
                self.consumer.keep_alive()

                self.assertFalse(self.consumer.is_ours(records[0]))
                self.consumer.settle([*records, *kept])
                self.assertEqual([{1: 1}], self.played.commits)
                self.assertEqual([], self.values())

    def test_keep_alive(self) -> None:
        """While the observer is away, partitions are paused, new ones too, and asked; then they go on."""
        self.put(b"a", b"b")
        self.values(messages=1)
        self.consumer.keep_alive()
        self.assertEqual(set(), self.played.paused)
        self.consumer.keep_alive()
        self.assertEqual({0, 1}, self.played.paused)
        self.played.assign(2)
        self.consumer.keep_alive()
        before = self.played.consumed
        self.consumer.keep_alive()
        self.assertGreater(self.played.consumed, before)
        self.assertEqual({0, 1, 2}, self.played.paused)
        self.played.revoke(2)
        self.consumer.keep_alive()

        self.assertEqual([b"b"], self.values())
        self.assertEqual(set(), self.played.paused)

    def test_ready_is_bounded(self) -> None:
        """While a commit is waited for, what arrives is bounded."""
        self.patch(kafka_member, "READY_MESSAGES", 50)
        self.put(b"a")
        records = self.consumer.fetch(10, MiB, 0.3)
        self.played.answers = False
        self.put(*[b"x"] * 1000, begin=1)
        for _ in range(20):
            if not self.played.paused:
                self.assertRaises(Unavailable, self.consumer.settle, records)

        self.assertEqual({0, 1}, self.played.paused)

    def test_ready_counts_keys_and_headers(self) -> None:
        """What is ready is bounded in bytes, with keys and headers, which may be all that a message holds."""
        for name, given in (("given_key", bytes(MiB)), ("given_headers", [("x", bytes(MiB)), ("y", None)])):
            with self.subTest(name):
                self.consumer = self.make()
                self.played.assign(0, 1)
                self.put(b"a")
                records = self.consumer.fetch(10, MiB, 0.3)
                self.played.answers = False
                self.put(*[b""] * 1000, begin=1)
                for message in self.played.queue:
                    setattr(message, name, given)
                for _ in range(20):
                    if not self.played.paused:
                        self.assertRaises(Unavailable, self.consumer.settle, records)

                self.assertEqual({0, 1}, self.played.paused)
                self.assertGreater(len(self.played.queue), 900)

    def test_no_connection(self) -> None:
        """Without any broker every fetch says why, until statistics say that one is up; of one of several none does."""
        note = self.played.properties["error_cb"]
        self.played.queue.append(lambda: note(KafkaError(KafkaError._TRANSPORT, "b1 refused (after 1ms in state X)")))
        self.assertEqual([], self.values())
        self.played.queue.append(lambda: note(KafkaError(KafkaError._ALL_BROKERS_DOWN)))
        for _ in range(2):
            error = self.assertRaises(Unavailable, self.values)
            self.assertTrue(str(error).endswith("b1 refused"), str(error))
        statistics = self.played.properties["stats_cb"]
        self.played.queue.append(lambda: statistics('{"brokers": {"x": {"state": "DOWN"}}}'))
        self.assertRaises(Unavailable, self.values)
        self.played.queue.append(lambda: statistics('{"brokers": {"x": {"state": "UP"}}}'))

        self.assertEqual([], self.values())

    def test_topic_problem(self) -> None:
        """What is wrong with the topic is said, until there are partitions."""
        self.consumer = self.make()
        error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        self.played.queue.append(PlayedMessage(None, error=error))
        for _ in range(2):
            self.assertIn("UNKNOWN_TOPIC_OR_PART", str(self.assertRaises(Unavailable, self.values)))
        self.played.assign(0)

        self.assertEqual([], self.values())

    def test_fatal(self) -> None:
        """After a fatal error there is another member; the records of the dead one are lost."""
        self.put(b"a")
        (record,) = self.consumer.fetch(10, MiB, 0.3)
        self.played.queue.append(KafkaException(KafkaError(KafkaError._FATAL, "fenced", True)))
        self.assertRaises(Unavailable, self.values)
        self.assertEqual([], self.values())

        first, second = self.made
        self.assertTrue(first.is_closed)
        self.assertFalse(second.is_closed)
        self.assertFalse(self.consumer.is_ours(record))

    def test_password(self) -> None:
        """Another password is used from the next connection on; a file that is gone changes nothing."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w") as file:
            file.write("first\n")
        self.consumer = self.make(user="me", password_file=path)
        with open(path, "w") as file:
            file.write("second\n")
        self.consumer.reopen()
        self.assertEqual(("me", "second"), self.played.credentials)
        os.unlink(path)

        self.assertRaises(ConfigError, self.consumer.reopen)

        self.assertNotIn("second", repr(vars(self.consumer)))

    def test_other_files(self) -> None:
        """Other files are used by another member, as soon as no record is out."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w") as file:
            file.write("client.rack=a\n")
        self.consumer = self.make(librdkafka_file=path)
        self.played.assign(0)
        self.put(b"a")
        records = self.consumer.fetch(10, MiB, 0.3)
        count = len(self.made)
        self.consumer.reopen()
        self.values()
        self.assertEqual(count, len(self.made))
        self.consumer.settle(records)
        self.values()

        self.assertEqual(count + 1, len(self.made))

    def test_lag(self) -> None:
        """The lag is the sum over partitions, behind what is settled, as last heard."""
        self.assertIsNone(self.consumer.lag())
        self.put(b"a", b"b", begin=3)
        self.put(b"c", partition=1, begin=9)
        records = self.consumer.fetch(10, MiB, 0.3)
        self.consumer.settle(records[:1])
        self.now += 10

        self.assertEqual(6 + 1, self.consumer.lag())
        self.played.watermarks = (-1001, -1001)
        self.now += 10
        self.assertIsNone(self.consumer.lag())

    def test_lag_of_idle_partitions(self) -> None:
        """A partition that has delivered nothing counts from where statistics have the group, or from its beginning."""
        self.put(b"a", begin=3)
        self.values()
        self.now += 10
        self.assertIsNone(self.consumer.lag())
        statistics = self.played.properties["stats_cb"]
        for committed, lag in ((8, 7 + 2), (10, 7), (-1001, 7 + 10)):
            with self.subTest(committed):
                partitions = {"-1": {"committed_offset": -1001}, "1": {"committed_offset": committed}}
                statistics(json.dumps({"topics": {"logs": {"partitions": partitions}}}))
                self.now += 10

                self.assertEqual(lag, self.consumer.lag())

    def test_hurry(self) -> None:
        """After hurry a fetch returns without waiting."""
        self.consumer.hurry()
        before = self.played.consumed
        self.assertEqual([], self.values())
        self.assertLessEqual(self.played.consumed - before, 1)

    def test_closed(self) -> None:
        """Once closed it has left, and has nothing."""
        self.consumer.close()

        self.assertTrue(self.played.is_closed)
        self.assertRaises(Unavailable, self.values)
