"""A Kafka that is played in the place of C{confluent_kafka.Producer}: one log, and errors as told."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from tests.contracts.fake_time import FakeTime
from webhookrx.observers.kafka.cluster import Properties

PARTITIONS = 4

#: Says what becomes of a request, a list of messages: for each None, an error code, or C{SILENT}.
Judge = Callable[[list["Sent"]], "list[int | str | None]"]
SILENT = "silent"
"""Nothing is ever heard of the message."""
HELD = "held"
"""No answer as long as it is played so: librdkafka fails the message when it is purged, or its time is up."""


class Sent(NamedTuple):
    """A message as it was sent."""

    topic: str
    value: bytes
    key: bytes | None
    headers: dict[str, bytes]
    on_delivery: Callable[[KafkaError | None, Any], None]
    expires: float

    @property
    def partition(self) -> int:
        """Of the key, or the first one."""
        return zlib.crc32(self.key) % PARTITIONS if self.key else 0


class Delivered(NamedTuple):
    """The message of a delivery report."""

    number: int | None

    def partition(self) -> int | None:
        """Return it; None for a message that never got one."""
        return self.number


def store_all(messages: list[Sent]) -> list[int | str | None]:
    """Store every message."""
    return [None] * len(messages)


class PlayedKafka:
    """
    A cluster.

    @ivar log: the messages that it has stored, in order.
    @ivar producers: all that were ever made.
    @ivar request: how many messages one request holds.
    @ivar room: how many messages the queue of a producer takes.
    @ivar refuse_to_connect: raised when a producer is made.
    """

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self.log: list[Sent] = []
        self.producers: list[PlayedProducer] = []
        self.judge: Judge = store_all
        self.request = 1000
        self.room = 100_000
        self.connection_errors: list[KafkaError] = []

    def connect(self, properties: Properties, on_error: Callable[[KafkaError], object]) -> PlayedProducer:
        """Make a producer."""
        producer = PlayedProducer(self, properties, on_error)
        self.producers.append(producer)
        return producer

    @property
    def password(self) -> str:
        """The password of the last producer."""
        return str(self.producers[-1].properties["sasl.password"])


class PlayedProducer:
    """A producer of a L{PlayedKafka}: whatever waits is sent by C{poll}, a request at a time."""

    def __init__(self, kafka: PlayedKafka, properties: Properties, on_error: Callable[[KafkaError], object]) -> None:
        self.properties = properties
        self.queue: list[Sent] = []
        self.held: list[Sent] = []
        self.is_closed = False
        self.most = 0
        self._kafka = kafka
        self._on_error = on_error

    def produce(
        self, topic: str, value: bytes, key: bytes | None, partition: int, on_delivery: Any, /, *, headers: Any
    ) -> None:
        """Take a message into the queue."""
        assert not self.is_closed
        assert partition == -1, "the key decides"
        if len(value) > self.properties["message.max.bytes"]:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if len(self) >= self._kafka.room:
            raise BufferError("Local: Queue full")
        expires = self._kafka.time() + self.properties["message.timeout.ms"] / 1000
        self.queue.append(Sent(topic, value, key, dict(headers), on_delivery, expires))
        self.most = max(self.most, len(self))

    def poll(self, timeout: float) -> int:
        """Send requests, take errors, or let time go by."""
        assert timeout <= 0.1, "a wait that does not look at the event"
        if self._kafka.connection_errors:
            for error in self._kafka.connection_errors:
                self._on_error(error)
            self._kafka.time.sleep(timeout)
            return self._expire()
        if not self.queue:
            self._kafka.time.sleep(timeout)
            return self._expire()
        request, self.queue = self.queue[: self._kafka.request], self.queue[self._kafka.request :]
        reports = 0
        for message, said in zip(request, self._kafka.judge(request), strict=True):
            if said is None:
                self._kafka.log.append(message)
            if said == HELD:
                self.held.append(message)
            elif said != SILENT:
                assert said is None or isinstance(said, int)
                report(message, said)
                reports += 1
        return reports

    def _expire(self) -> int:
        late = [each for each in [*self.held, *self.queue] if each.expires <= self._kafka.time()]
        self.held = [each for each in self.held if each not in late]
        self.queue = [each for each in self.queue if each not in late]
        for message in late:
            report(message, KafkaError._MSG_TIMED_OUT)
        return len(late)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Fail what is asked for."""
        assert not blocking, "it would wait"
        queue, held = self.queue, self.held
        if in_queue:
            self.queue = []
            for message in queue:
                report(message, KafkaError._PURGE_QUEUE)
        if in_flight:
            self.held = []
            for message in held:
                report(message, KafkaError._PURGE_INFLIGHT)

    def close(self) -> bool:
        """Note it."""
        assert not len(self), "it would wait for ever"
        self.is_closed = True
        return True

    def __len__(self) -> int:
        """Return how many messages wait."""
        return len(self.queue) + len(self.held)


def report(message: Sent, code: int | None) -> None:
    """Report what became of a message."""
    error = None if code is None else KafkaError(code, f"words about {message.headers['webhookrx-id'].decode()}")
    message.on_delivery(error, Delivered(message.partition))
