"""
Tests for L{webhookrx.observers.kafka.observer} and L{webhookrx.observers.kafka.reports}.
"""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.contracts.store_contract import Record, Row, StoreContract
from tests.observers.kafka.kafka_broker import HELD, SILENT, Delivered, PlayedKafka, Sent, report, store_all
from webhookrx.errors import Rejected, Unavailable
from webhookrx.interfaces import IStoreObserver
from webhookrx.observers.kafka.observer import KafkaObserver
from webhookrx.observers.kafka.options import LARGEST_MESSAGE, read_kafka
from webhookrx.testing import make_message

URL = "kafka://127.0.0.1:1/logs"

LATER = (
    "_ALL_BROKERS_DOWN",
    "_AUTHENTICATION",
    "_BAD_MSG",
    "_FAIL",
    "_FATAL",
    "_GAPLESS_GUARANTEE",
    "_INVALID_DIFFERENT_RECORD",
    "_ISR_INSUFF",
    "_MSG_TIMED_OUT",
    "_OUTDATED",
    "_PURGE_INFLIGHT",
    "_PURGE_QUEUE",
    "_QUEUE_FULL",
    "_RESOLVE",
    "_SSL",
    "_STATE",
    "_TIMED_OUT",
    "_TRANSPORT",
    "_UNKNOWN_PARTITION",
    "_UNKNOWN_TOPIC",
    "_UNSUPPORTED_FEATURE",
    "BROKER_NOT_AVAILABLE",
    "CLUSTER_AUTHORIZATION_FAILED",
    "CONCURRENT_TRANSACTIONS",
    "COORDINATOR_NOT_AVAILABLE",
    "DUPLICATE_SEQUENCE_NUMBER",
    "FENCED_LEADER_EPOCH",
    "ILLEGAL_SASL_STATE",
    "INVALID_MSG",
    "INVALID_MSG_SIZE",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_REQUIRED_ACKS",
    "INVALID_TIMESTAMP",
    "KAFKA_STORAGE_ERROR",
    "LEADER_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "NOT_CONTROLLER",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_LEADER_FOR_PARTITION",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "POLICY_VIOLATION",
    "PRODUCER_FENCED",
    "RECORD_LIST_TOO_LARGE",
    "REQUEST_TIMED_OUT",
    "SASL_AUTHENTICATION_FAILED",
    "SECURITY_DISABLED",
    "THROTTLING_QUOTA_EXCEEDED",
    "TOPIC_AUTHORIZATION_FAILED",
    "TOPIC_EXCEPTION",
    "UNKNOWN",
    "UNKNOWN_PRODUCER_ID",
    "UNKNOWN_TOPIC_OR_PART",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "UNSUPPORTED_VERSION",
)


class KafkaTests(StoreContract, SynchronousTestCase):
    """The observer, and a cluster that is played to it."""

    once = False
    rows = (
        Row("no error", None, "stored"),
        Row("MSG_SIZE_TOO_LARGE", KafkaError.MSG_SIZE_TOO_LARGE, "rejected"),
        Row("INVALID_RECORD", KafkaError.INVALID_RECORD, "rejected"),
        *(Row(name, getattr(KafkaError, name), "later") for name in LATER),
        Row("a code of tomorrow", 9999, "later"),
    )
    nonsense = (SILENT, -9999)

    def setUp(self) -> None:
        """Make a cluster."""
        super().setUp()
        self.kafka = PlayedKafka(self.time)
        self.asked: list[tuple[Any, ...]] = []

    def make_observer(self, **options: str) -> KafkaObserver:
        """Make one."""
        return KafkaObserver(
            "kafka:kafka://127.0.0.1:1/logs",
            read_kafka([URL], options),
            self.kafka.connect,
            self.time,
            lambda: 1.0,
            self.time,
            lambda *about: self.asked.append(about),
        )

    def stored_records(self) -> list[Record]:
        """Return what the log holds."""
        return [record_of(sent) for sent in self.kafka.log]

    def answer_with(self, answer: Any) -> None:
        """Give this answer for each message."""
        self.kafka.judge = lambda messages: [answer] * len(messages)

    def mend(self) -> None:
        """Store all."""
        self.kafka.judge = store_all
        self.kafka.connection_errors = []

    def break_observer(self) -> None:
        """Let no broker be there."""
        self.kafka.connection_errors = [
            KafkaError(KafkaError._TRANSPORT, "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: refused"),
            KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
        ]

    def lose_answer(self) -> None:
        """Store the next request, and say nothing."""

        def judge(messages: list[Sent]) -> list[int | str | None]:
            self.kafka.judge = store_all
            self.kafka.log += messages
            return [HELD] * len(messages)

        self.kafka.judge = judge

    def store_half(self) -> None:
        """Fail in the middle of the next request."""

        def judge(messages: list[Sent]) -> list[int | str | None]:
            self.kafka.judge = store_all
            half = len(messages) // 2
            return [None] * half + [KafkaError.NOT_ENOUGH_REPLICAS] * (len(messages) - half)

        self.kafka.judge = judge

    def stall(self) -> None:
        """Take requests and answer none."""
        self.kafka.judge = lambda messages: [HELD] * len(messages)

    def refuse(self, text: str) -> None:
        """Refuse each request with such a message, as a whole."""

        def judge(messages: list[Sent]) -> list[int | str | None]:
            bad = any(text in record_of(each).text for each in messages)
            return [KafkaError.INVALID_RECORD if bad else None] * len(messages)

        self.kafka.judge = judge

    def make_secret_observer(self, path: str) -> KafkaObserver:
        """Make one with a password."""
        return self.make_observer(user="me", password_file=path)

    def shown_secret(self) -> str:
        """Return the password of the last producer."""
        return self.kafka.password

    def quote_secret(self) -> None:
        """Repeat the password in errors of a connection, which come before no message is acknowledged."""
        words = f"Authentication failed: {self.kafka.password} is wrong"
        self.kafka.connection_errors = [KafkaError(KafkaError._AUTHENTICATION, words)]


def record_of(sent: Sent) -> Record:
    """Return the id and text of a message."""
    return Record(sent.headers["webhookrx-id"].decode(), json.loads(sent.value)["MESSAGE"])


class KafkaOrderTests(SynchronousTestCase):
    """Failures in the middle of a batch."""

    def setUp(self) -> None:
        """Make an observer and its cluster."""
        self.played = KafkaTests()
        self.played.setUp()
        self.kafka = self.played.kafka
        self.time = self.played.time
        self.observer = self.played.make_observer()
        self.observer.open()
        self.addCleanup(lambda: self.observer.close())

    def send(self, *messages: str) -> list[str]:
        """Send messages of the hosts that their first letters name; return what became of each."""
        prepared = [self.observer.prepare(make_message(text, {"HOST": text[0]})) for text in messages]
        outcomes = self.observer.store(prepared) or [None] * len(messages)
        return ["stored" if each is None else type(each).__name__ for each in outcomes]

    def try_once(self) -> None:
        """Let the observer try once only, as it does when the receiver stops."""
        self.observer.hurry()

    def fail_once(self, **codes: int) -> None:
        """Answer once with these errors, by the texts of messages."""

        def judge(messages: list[Sent]) -> list[int | str | None]:
            self.kafka.judge = store_all
            return [codes.get(record_of(each).text) for each in messages]

        self.kafka.judge = judge

    def log(self) -> list[str]:
        """Return the texts of all copies."""
        return [record_of(sent).text for sent in self.kafka.log]

    def texts(self, host: str) -> list[str]:
        """Return the texts of a host in the order of their first copies."""
        texts = [record_of(sent).text for sent in self.kafka.log]
        return list(dict.fromkeys(text for text in texts if text.startswith(host)))

    def test_interface(self) -> None:
        """It provides the interface of stores."""
        self.assertTrue(verifyObject(IStoreObserver, self.observer))

    def test_behind_a_failure(self) -> None:
        """All of the same partition behind a message that is not stored goes again; others are stored."""
        self.try_once()
        self.fail_once(a2=KafkaError.NOT_ENOUGH_REPLICAS)

        fates = self.send("a1", "b1", "a2", "b2", "a3", "b3")

        self.assertEqual(["stored", "stored", "Unavailable", "stored", "Unavailable", "stored"], fates)
        self.send("a2", "a3")
        self.assertEqual(["a1", "a3", "a2", "a3"], [text for text in self.log() if text.startswith("a")])
        self.assertEqual(["b1", "b2", "b3"], self.texts("b"))

    def test_behind_a_refusal(self) -> None:
        """What is refused for good holds up nothing behind it, and nothing behind it changes its order."""
        self.played.refuse("a2")

        fates = self.send("a1", "a2", "a3", "b1")

        self.assertEqual(["stored", "Rejected", "stored", "stored"], fates)
        self.assertEqual(["a1", "a3"], self.texts("a"))

    def test_without_key(self) -> None:
        """Without a key, all behind a message that never got a partition goes again."""
        self.observer = self.played.make_observer(key="")
        self.observer.open()
        self.try_once()
        prepare = self.observer.prepare

        def judge(messages: list[Sent]) -> list[int | str | None]:
            messages[1].on_delivery(KafkaError(KafkaError._UNKNOWN_TOPIC), Delivered(None))
            return [None, SILENT, None]

        self.kafka.judge = judge
        outcomes = self.observer.store([prepare(make_message(text)) for text in "abc"])

        self.assertEqual([None, Unavailable, Unavailable], [each and type(each) for each in outcomes or ()])

    def test_nothing_sent_behind_a_failure(self) -> None:
        """Once a message has failed, those that are still in the queue are not sent, so that they come once."""
        self.try_once()
        self.kafka.request = 2
        self.fail_once(a2=KafkaError.POLICY_VIOLATION)

        fates = self.send("a1", "a2", "b1", "b2", "c1")

        self.assertEqual(["stored", "Unavailable", "Unavailable", "Unavailable", "Unavailable"], fates)
        self.assertEqual(["a1"], [record_of(sent).text for sent in self.kafka.log])

    def test_new_producer(self) -> None:
        """After a failure there is another producer, which remembers no error (vector#25746); the old one is closed."""
        self.try_once()
        self.fail_once(a1=KafkaError.TOPIC_AUTHORIZATION_FAILED)
        self.send("a1")
        self.send("a1")

        first, second = self.kafka.producers
        self.assertTrue(first.is_closed)
        self.assertFalse(second.is_closed)

    def test_one_producer(self) -> None:
        """As long as nothing fails there is one producer, and its queue never holds more than a batch."""
        for _ in range(5):
            self.send("a1", "a2", "a3")

        (producer,) = self.kafka.producers
        self.assertEqual(3, producer.most)
        self.assertEqual(0, len(producer))

    def test_fatal(self) -> None:
        """A fatal error, which librdkafka raises in the midst of callbacks, loses nothing and makes a new producer."""
        self.try_once()
        for error in (KafkaException(KafkaError(KafkaError._FATAL, "words", True)), SystemError("a callback")):
            with self.subTest(type(error).__name__):
                self.kafka.log.clear()

                def judge(messages: list[Sent], error: Exception = error) -> list[int | str | None]:
                    self.kafka.judge = store_all
                    report(messages[0], None)
                    self.kafka.log.append(messages[0])
                    raise error

                self.kafka.judge = judge
                count = len(self.kafka.producers)
                self.assertEqual(["stored", "Unavailable"], self.send("a1", "b1"))
                self.assertEqual(["stored"], self.send("b1"))
                self.assertEqual(["a1", "b1"], [record_of(sent).text for sent in self.kafka.log])
                self.assertLess(count, len(self.kafka.producers))

    def test_waits_for_reports(self) -> None:
        """
        A batch is stored once each message has its delivery report, not when librdkafka has taken it, nor when some
        have theirs (U{https://github.com/fluent/fluent-bit/issues/1701}).
        """
        self.kafka.judge = lambda messages: [None, HELD, HELD]
        began = self.time.now
        acknowledged: list[float] = []

        def acknowledge() -> None:
            (producer,) = self.kafka.producers
            held, producer.held = producer.held, []
            for each in held:
                self.kafka.log.append(each)
                report(each, None)
            acknowledged.append(self.time.now - began)

        self.time.at(2.0, acknowledge)

        self.assertEqual(["stored"] * 3, self.send("a1", "a2", "a3"))

        self.assertEqual([2.0], acknowledged)
        self.assertEqual(["a1", "a2", "a3"], self.log())

    def test_late_report(self) -> None:
        """A report that comes after its round has ended settles nothing in the next one."""
        self.try_once()
        late: list[Sent] = []

        def judge(messages: list[Sent]) -> list[int | str | None]:
            late.extend(messages)
            self.kafka.judge = judge_again
            return [SILENT] * len(messages)

        def judge_again(messages: list[Sent]) -> list[int | str | None]:
            for each in late:
                report(each, None)
            return [KafkaError.NOT_ENOUGH_REPLICAS] * len(messages)

        self.kafka.judge = judge
        self.assertEqual(["Unavailable"], self.send("a1"))
        self.assertEqual(["Unavailable"], self.send("a1"))

    def test_full_queue(self) -> None:
        """When librdkafka has no room, the batch goes on as soon as there is some."""
        self.kafka.room = 2
        self.kafka.request = 1

        self.assertEqual(["stored"] * 5, self.send("a1", "a2", "a3", "a4", "a5"))
        self.assertEqual(["a1", "a2", "a3", "a4", "a5"], self.texts("a"))

    def test_full_queue_for_ever(self) -> None:
        """When there never is any room, nothing counts as stored."""
        self.kafka.room = 0

        self.assertEqual(["Unavailable"] * 2, self.send("a1", "a2"))

    def test_too_large_together(self) -> None:
        """When the topic takes less than a request, no message is refused, and requests become smaller for good."""
        self.kafka.judge = lambda messages: [
            KafkaError.MSG_SIZE_TOO_LARGE if len(messages) > 1 else None for _ in messages
        ]

        self.assertEqual(["stored"] * 3, self.send("a1", "a2", "a3"))

        self.assertEqual(["a1", "a2", "a3"], self.texts("a"))
        self.assertEqual(["stored"], self.send("a4"))
        sizes = [producer.properties["batch.size"] for producer in self.kafka.producers]
        self.assertEqual([1_000_000, 1_000_000, 500_000], sizes)

    def test_innocent(self) -> None:
        """Beside an invalid record the others of its request are stored (KIP-467)."""

        def judge(messages: list[Sent]) -> list[int | str | None]:
            bad = [record_of(each).text == "a2" for each in messages]
            other = KafkaError._INVALID_DIFFERENT_RECORD if any(bad) else None
            return [KafkaError.INVALID_RECORD if each else other for each in bad]

        self.kafka.judge = judge

        self.assertEqual(["stored", "Rejected", "stored"], self.send("a1", "a2", "a3"))
        self.assertEqual({1_000_000}, {producer.properties["batch.size"] for producer in self.kafka.producers})

    def test_larger_than_librdkafka_takes(self) -> None:
        """What no broker would answer is refused for good at once, and alone."""
        prepared = [self.observer.prepare(make_message(text)) for text in ("one", "x" * (LARGEST_MESSAGE + 1), "two")]

        outcomes = self.observer.store(prepared) or ()

        self.assertEqual([None, Rejected, None], [each and type(each) for each in outcomes])

    def test_text(self) -> None:
        """The error names the code, says what to do, and repeats the words of Kafka, without what varies."""
        self.kafka.connection_errors = [
            KafkaError(KafkaError._TRANSPORT, "b1:9092/1: Disconnected (after 7ms in state UP)"),
            KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
        ]

        (outcome,) = self.observer.store([self.observer.prepare(make_message())]) or ()

        self.assertEqual(
            "it has not acknowledged them in time: _TRANSPORT (no connection, or it was cut): b1:9092/1: Disconnected",
            str(outcome),
        )

    def test_headers(self) -> None:
        """Id and source go as headers, the host as key, the line as value."""
        message = make_message("text", {"HOST": "web1", "RCPTID": "an-id", "SOURCE": "hooks"})
        self.observer.store([self.observer.prepare(message)])

        (sent,) = self.kafka.log
        self.assertEqual({"webhookrx-id": b"an-id", "source": b"hooks"}, sent.headers)
        self.assertEqual((b"web1", "logs"), (sent.key, sent.topic))
        self.assertEqual("text", json.loads(sent.value)["MESSAGE"])

    def test_asks_once(self) -> None:
        """The settings of the topic are asked for once, after the first batch that is stored; not with acks=1."""
        self.try_once()
        self.fail_once(a1=KafkaError.POLICY_VIOLATION)
        self.send("a1")
        self.assertEqual([], self.played.asked)
        self.send("a1")
        self.send("a2")
        self.assertEqual(1, len(self.played.asked))
        properties = self.played.asked[0][2]
        self.assertEqual("127.0.0.1:1", properties["bootstrap.servers"])
        self.assertNotIn("acks", properties)

        other = self.played.make_observer(acks="1")
        other.open()
        other.store([other.prepare(make_message())])
        self.assertEqual(1, len(self.played.asked))

    def test_promise(self) -> None:
        """The promise is weaker with acks=1, and it says why."""
        self.assertEqual(("durable", ""), (self.observer.promise, self.observer.promise_reason))
        weak = self.played.make_observer(acks="1")
        self.assertEqual("written", weak.promise)
        self.assertIn("leader", weak.promise_reason)

    def test_closed(self) -> None:
        """A closed one stores nothing."""
        self.observer.close()

        (outcome,) = self.observer.store([self.observer.prepare(make_message())]) or ()

        self.assertIsInstance(outcome, Unavailable)
