"""The kafka observer against librdkafka's mock cluster, read by a second client."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any

from tests.contracts.played_store import Outcomes
from tests.system.receiver import wait_until
from tests.system.servers.kafka_mock import INIT_PRODUCER_ID, METADATA, PRODUCE, KafkaMock
from tests.system.servers.process import ServerCase
from tests.system.servers.proxy import Proxy
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.kafka.observer import KafkaObserver
from webhookrx.observers.kafka.options import read_kafka
from webhookrx.testing import make_message

_names = itertools.count()

TRANSPORT = -195
UNKNOWN_TOPIC_OR_PART, MSG_SIZE_TOO_LARGE, NOT_ENOUGH_REPLICAS, INVALID_RECORD = 3, 10, 19, 87
TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, POLICY_VIOLATION = 29, 31, 44
OUT_OF_ORDER_SEQUENCE_NUMBER, THROTTLING_QUOTA_EXCEEDED, SASL_AUTHENTICATION_FAILED = 45, 89, 58
HURRY_TIME = 3.0


class Reader:
    """A second client, which reads all partitions beside the observer, since the mock forgets."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.seen: list[tuple[int, str, str]] = []
        self.ids: list[str] = []
        self._stop = Event()
        # It commits nothing: at its end it would wait for brokers that a test has taken away.
        self._client: Any = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "log_level": 0}
        )
        self._client.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for message in self._client.consume(500, 0.1):
                if message.error() is None:
                    self.seen.append(
                        (message.partition(), message.key().decode(), json.loads(message.value())["MESSAGE"])
                    )
                    self.ids.append(dict(message.headers())["webhookrx-id"].decode())

    def stop(self) -> None:
        """End it."""
        self._stop.set()
        self._thread.join()
        self._client.close()

    def firsts(self) -> list[tuple[int, str, str]]:
        """Return the first copies."""
        return list(dict.fromkeys(self.seen))


class KafkaServerCase(ServerCase):
    """A topic of four partitions, an observer and a reader."""

    partitions = 4

    def setUp(self) -> None:
        """Start all."""
        self.kafka = self.serve(KafkaMock)
        self.topic = f"t{next(_names)}"
        self.kafka.make_topic(self.topic, self.partitions)
        self.reader = self.read()
        self.observer = self.make_observer()

    def read(self) -> Reader:
        """Start a reader."""
        reader = Reader(self.kafka.bootstrap, self.topic, self.partitions)
        self.addCleanup(reader.stop)
        return reader

    def make_observer(self, bootstrap: str = "", **options: str) -> KafkaObserver:
        """Make an open one."""
        url = f"kafka://{bootstrap or self.kafka.bootstrap}/{self.topic}"
        observer = KafkaObserver(f"kafka:{url}", read_kafka([url], options), report_topic=lambda *_: None)
        observer.open()
        self.addCleanup(observer.close)
        return observer

    def store(self, *texts: str) -> Outcomes:
        """Store messages whose hosts are the first words of their texts."""
        return self.store_with(self.observer, texts)

    def store_with(self, observer: KafkaObserver, texts: Sequence[str]) -> Outcomes:
        """Store by another observer."""
        prepared = [
            observer.prepare(make_message(text, {"HOST": text.split()[0], "RCPTID": f"id {text}"})) for text in texts
        ]
        return observer.store(prepared) or [None] * len(texts)

    def deliver(self, texts: Sequence[str], seconds: float = 90.0) -> None:
        """Offer messages as a spool does, until all are stored."""
        deadline = time.monotonic() + seconds
        left = list(texts)
        while left:
            self.assertLess(time.monotonic(), deadline, f"{len(left)} are left")
            outcomes = self.store(*left)
            self.assertFalse(any(isinstance(each, Rejected) for each in outcomes))
            left = [text for text, outcome in zip(left, outcomes, strict=True) if outcome is not None]

    def assert_read(self, texts: Sequence[str]) -> None:
        """The second client has all of them, and the first copies of each host in order."""
        wait_until(lambda: {*texts} <= {text for _, _, text in self.reader.seen}, "all are read")
        for host in {text.split()[0] for text in texts}:
            mine = [text for text in texts if text.split()[0] == host]
            read = [text for _, key, text in self.reader.firsts() if key == host]
            self.assertEqual(mine, read)
        for (_, _, text), own in zip(self.reader.seen, self.reader.ids, strict=True):
            self.assertEqual(f"id {text}", own)


def batch(name: str, count: int = 200, hosts: int = 8) -> list[str]:
    """Return texts of several hosts."""
    return [f"h{number % hosts} {name} {number:06}" for number in range(count)]


class KafkaAnswerTests(KafkaServerCase):
    """Answers of brokers."""

    def test_stored(self) -> None:
        """All is stored once, by key, in order, under its own id."""
        texts = batch("a", 3000)

        self.assertEqual([None] * 3000, self.store(*texts))

        self.assert_read(texts)
        self.assertEqual(3000, len(self.reader.seen))

    def later(self, *codes: int) -> None:
        """Check that errors which are not about the message refuse nothing; the same observer stores after them."""
        self.observer = self.make_observer(retry_for="1s")
        for code in codes:
            with self.subTest(code):
                self.kafka.fail(PRODUCE, *[code] * 500)
                texts = [f"h{code} {number:02}" for number in range(40)]
                self.assertTrue(all(isinstance(each, Unavailable) for each in self.store(*texts)))
                self.kafka.tell("clear_request_errors", PRODUCE)
                self.deliver(texts)
                self.assert_read(texts)

    # In three tests, which can run side by side: nearly all of their time is waiting.

    def test_no_right(self) -> None:
        """A missing right refuses nothing."""
        self.later(
            TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, POLICY_VIOLATION, SASL_AUTHENTICATION_FAILED
        )

    def test_cluster_in_trouble(self) -> None:
        """A cluster that can't take it now refuses nothing."""
        self.later(NOT_ENOUGH_REPLICAS, OUT_OF_ORDER_SEQUENCE_NUMBER, THROTTLING_QUOTA_EXCEEDED)

    def test_unknown_errors(self) -> None:
        """An error that is unknown, or of the connection, refuses nothing."""
        self.later(UNKNOWN_TOPIC_OR_PART, 9999, TRANSPORT)

    def test_first_request_fails(self) -> None:
        """A first request that fails, and is tried again by librdkafka, is not taken for stored when a later one is."""
        for number in range(20):
            observer = self.make_observer()
            self.kafka.fail(PRODUCE, *[UNKNOWN_TOPIC_OR_PART] * 4)
            texts = [f"f{number} {place:02}" for place in range(40)]
            outcomes = self.store_with(observer, texts)
            self.assertEqual([None] * 40, outcomes)
            self.assert_read(texts)
            observer.close()

    def test_refused(self) -> None:
        """A refusal of a request is of none of its messages; one that was alone is refused for good."""
        for code in (MSG_SIZE_TOO_LARGE, INVALID_RECORD):
            with self.subTest(code):
                self.kafka.fail(PRODUCE, code)
                texts = [f"h{code} {number}" for number in range(20)]
                outcomes = self.store(*texts)
                self.assertEqual([None] * 20, outcomes)
                self.assert_read(texts)
        self.kafka.fail(PRODUCE, INVALID_RECORD, INVALID_RECORD)

        (outcome,) = self.store("h0 alone")

        self.assertIsInstance(outcome, Rejected)
        self.assertIn("INVALID_RECORD", str(outcome))
        self.deliver(["h0 next"])
        self.assert_read(["h0 next"])

    def test_acl_gone(self) -> None:
        """A topic that may not be written for a while needs no restart (vector#25746)."""
        observer = self.observer = self.make_observer(retry_for="1s")
        self.deliver(batch("before", 8))
        self.kafka.fail_topic(self.topic, TOPIC_AUTHORIZATION_FAILED)
        self.kafka.fail(PRODUCE, *[TOPIC_AUTHORIZATION_FAILED] * 50)
        (outcome,) = self.store("h0 while")
        self.assertIsInstance(outcome, Unavailable)
        self.assertIn("TOPIC_AUTHORIZATION_FAILED", str(outcome))
        self.kafka.fail_topic(self.topic, 0)
        self.kafka.tell("clear_request_errors", PRODUCE)

        self.deliver(["h0 while"])

        self.assertIs(observer, self.observer)
        self.assert_read(["h0 before 000000", "h0 while"])

    def test_topic_deleted(self) -> None:
        """A topic that is deleted and made anew needs no restart (vector#25746)."""
        self.observer = self.make_observer(retry_for="2s")
        self.deliver(batch("before", 8))
        wait_until(lambda: len(self.reader.seen) == 8, "it is read")
        self.kafka.tell("topic_delete", self.topic)
        self.kafka.fail_topic("other", 0)
        self.kafka.fail(METADATA, *[UNKNOWN_TOPIC_OR_PART] * 3)
        self.store("h0 while")
        self.kafka.tell("clear_request_errors", METADATA)

        self.deliver(["h0 after"])

        again = self.read()
        wait_until(lambda: "h0 after" in [text for _, _, text in again.seen], "it is in the new topic")

    def test_unknown_topic(self) -> None:
        """A topic that is not there is named in a sentence, and comes later."""
        self.observer = self.make_observer(retry_for="2s")
        self.kafka.fail_topic(self.topic, UNKNOWN_TOPIC_OR_PART)

        (outcome,) = self.store("h0 early")

        self.assertIsInstance(outcome, Unavailable)
        self.assertIn("create the topic", str(outcome))
        self.kafka.fail_topic(self.topic, 0)
        self.deliver(["h0 early"])
        self.assert_read(["h0 early"])

    def test_no_right_to_be_idempotent(self) -> None:
        """Without the right to write idempotently, which is fatal in librdkafka, nothing is lost (a new producer)."""
        self.observer = self.make_observer(retry_for="2s")
        self.kafka.fail(INIT_PRODUCER_ID, *[CLUSTER_AUTHORIZATION_FAILED] * 100)

        (outcome,) = self.store("h0 early")

        self.assertIsInstance(outcome, Unavailable)
        self.assertIn("CLUSTER_AUTHORIZATION_FAILED", str(outcome))
        self.kafka.tell("clear_request_errors", INIT_PRODUCER_ID)
        self.deliver(["h0 early"])
        self.assert_read(["h0 early"])


class KafkaOutageTests(KafkaServerCase):
    """Brokers that are away."""

    def beside(self, call: Callable[[], object]) -> Thread:
        """Call something in a thread that the test waits for."""
        thread = Thread(target=call)
        thread.start()
        self.addCleanup(thread.join)
        return thread

    def test_bounced(self) -> None:
        """Brokers that go down and come back, one after the other, lose nothing (vector#24193)."""
        self.observer = self.make_observer(retry_for="1s")
        texts: list[str] = []
        for number in range(6):
            broker = number % 3 + 1
            self.kafka.down(broker)
            more = batch(f"b{number}", 100)
            self.store(*more[:50])  # as far as it goes
            self.kafka.up(broker)
            more = batch(f"c{number}", 100)
            self.deliver(more)
            texts += more

        wait_until(lambda: {*texts} <= {text for _, _, text in self.reader.seen}, "all are read")

    def test_whole_cluster(self) -> None:
        """The whole cluster goes down for longer than retry_for; all is stored when it is back (vector#10398)."""
        self.observer = self.make_observer(retry_for="1s")
        texts = batch("a", 400)
        self.deliver(texts[:200])
        self.kafka.down(-1)
        for _ in range(2):
            outcomes = self.store(*texts[200:])
            self.assertTrue(all(isinstance(each, Unavailable) for each in outcomes))
        self.assertIn("_TRANSPORT", str(outcomes[0]))
        self.kafka.up(-1)

        self.deliver(texts[200:])

        self.assert_read(texts)

    def test_frozen(self) -> None:
        """A cluster that stands still for longer than retry_for: nothing missing, first copies in order."""
        self.observer = self.make_observer(retry_for="1s")
        texts = batch("a", 6000)
        self.deliver(texts[:100])
        self.kafka.freeze()
        began = time.monotonic()
        outcomes = self.store(*texts[100:])
        took = time.monotonic() - began
        self.kafka.thaw()

        left = [text for text, outcome in zip(texts[100:], outcomes, strict=True) if outcome is not None]
        self.deliver(left)

        self.assertTrue(left)
        self.assertLess(took, 10.0)
        self.assert_read(texts)

    def test_throttled(self) -> None:
        """Answers that take longer than retry_for lose nothing (vector#22026)."""
        self.observer = self.make_observer(retry_for="1s")
        self.deliver(batch("a", 40))
        self.kafka.delay(1500)
        self.store(*batch("b", 40))
        self.kafka.delay(0)

        self.deliver(batch("b", 40))

        self.assert_read([*batch("a", 40), *batch("b", 40)])

    def test_answers_swallowed(self) -> None:
        """Answers that never arrive, and requests that are cut, lose nothing (vector#21031)."""
        proxies = [Proxy(int(each.rpartition(":")[2])) for each in self.kafka.bootstrap.split(",")]
        for number, proxy in enumerate(proxies, 1):
            self.addCleanup(proxy.stop)
            self.kafka.advertise(number, proxy.port)
        self.observer = self.make_observer(",".join(f"127.0.0.1:{proxy.port}" for proxy in proxies), retry_for="3s")
        self.deliver(batch("a", 40))
        for proxy in proxies:
            proxy.swallow_answers()

        self.deliver(batch("b", 40))
        for proxy in proxies:
            proxy.cut_after(2000)
        self.deliver(batch("c", 400))

        self.assert_read([*batch("a", 40), *batch("b", 40), *batch("c", 400)])

    def test_hurry(self) -> None:
        """While the cluster stands still, hurry ends a store within three seconds, and the end comes soon."""
        self.deliver(batch("a", 8))
        self.kafka.freeze()
        self.addCleanup(self.kafka.thaw)
        ended = Event()

        def store() -> None:
            self.store(*batch("b", 500))
            ended.set()

        self.beside(store)
        self.assertFalse(ended.wait(0.5))
        began = time.monotonic()
        self.observer.hurry()

        self.assertTrue(ended.wait(60))
        self.assertLess(time.monotonic() - began, HURRY_TIME + 0.5)
        began = time.monotonic()
        self.observer.close()
        self.assertLess(time.monotonic() - began, 1.5)

    def test_nobody_there(self) -> None:
        """Where nobody listens, the error says so, in time."""
        observer = self.make_observer("127.0.0.1:1", retry_for="1s")

        (outcome,) = self.store_with(observer, ["h0 a"])

        self.assertIn("127.0.0.1:1", str(outcome))
        self.assertIn("refused", str(outcome))
