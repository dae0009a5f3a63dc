"""
kafka:URL: sends messages to a topic of Kafka.

A message is stored when librdkafka reports that it is acknowledged, by all in-sync replicas with C{acks=all}. A report
that does not come in time counts as none. So silent discards (U{https://github.com/vectordotdev/vector/issues/21031}),
messages purged when a broker is bounced (24193 there) and restarts of a whole cluster (10398) lose nothing: a report
without an error settles a message, and nothing else does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, cast

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Producer as LibraryProducer
from zope.interface import implementer

from webhookrx.backoff import Random
from webhookrx.errors import Unavailable
from webhookrx.interfaces import IStoreObserver
from webhookrx.observers.kafka.cluster import SilentLog
from webhookrx.observers.kafka.options import SMALLEST_BATCH, KafkaTarget, read_kafka
from webhookrx.observers.kafka.reports import KafkaDelivery, Problem, Producer, describe, property_problem
from webhookrx.observers.kafka.topic import Ask, ask_topic, report_in_thread
from webhookrx.observers.retrying import Retries
from webhookrx.store_counts import StoreCounts

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared, Wants
    from webhookrx.observers.kafka.cluster import Properties

    #: Makes a producer of properties and of what is called with its errors.
    Connect = Callable[[Properties, Callable[[KafkaError], object]], Producer]

ANSWER_WAIT: Final = 1.0
"""Seconds that what was sent may still be acknowledged, once a message has failed."""
PURGE_WAIT: Final = 0.5
"""Seconds that the reports of purged messages may take; librdkafka makes them itself."""
CLOSE_WAIT: Final = 0.5
"""Seconds to wait for the end of a producer. It may still look up a name; then it ends in a thread."""

_CLIENT_PREFIXES: Final = ("bootstrap.", "client.", "enable.metrics", "enable.ssl", "log", "sasl.", "security.", "ssl.")


def make_producer(properties: Properties, on_error: Callable[[KafkaError], object]) -> Producer:
    """
    Make a producer. It connects by itself.

    @raise KafkaException: a property can't be used.
    """
    made: Any = LibraryProducer({**properties, "error_cb": on_error}, logger=SilentLog())
    return cast("Producer", made)


@implementer(IStoreObserver)
class KafkaObserver:
    """
    Sends messages to a topic, a batch at a time, and waits for all of its delivery reports.

    After a failure the producer is thrown away, with what it knows: an error of a topic that was deleted and made
    anew, or whose ACL was gone for a while, stays with a producer for as long as it lives (vector#25746).

    @param connect: makes a producer.
    @param ask: asks about the topic; returns soon.
    """

    wants: Wants | None = None

    def __init__(
        self,
        spec: str,
        target: KafkaTarget,
        connect: Connect = make_producer,
        clock: Callable[[], float] = time.monotonic,
        random: Random = random.random,
        stopping: Event | None = None,
        report_topic: Callable[[Ask, str, Properties, str, bool], None] = report_in_thread,
    ) -> None:
        self.spec = spec
        self.promise = "durable" if target.acks == "all" else "written"
        self.promise_reason = (
            "" if target.acks == "all" else "acks=1: only the leader of the partition has it; acks=all for its replicas"
        )
        self.counts = StoreCounts()
        self.prepare = target.format.encode
        self.takes_lines = target.format.keyed.takes_lines
        self._target = target
        self._connect = connect
        self._clock = clock
        self._retries = Retries(target.retry_for, clock, random, stopping)
        self._report_topic = report_topic
        self._excerpt = not target.cluster.has_secret
        # In a closure: it holds secrets, which no repr of this object may show.
        self._properties: Callable[[], Properties] | None = None
        self._producer: Producer | None = None
        self._connection_error = ""
        self._is_asked = False
        self._batch_size: int | None = None

    def check(self) -> None:
        """
        Read the files, and let librdkafka judge the properties, without opening a connection.

        @raise ConfigError: a file is missing or wrong, or a property can't be used.
        """
        properties = self._target.properties()
        # Without servers it does not try to connect.
        del properties["bootstrap.servers"]
        try:
            producer = self._connect(properties, lambda _: None)
        except KafkaException as error:
            raise self._target.cluster.options.problem(property_problem(error.args[0], excerpt=self._excerpt)) from None
        _end(producer)

    def open(self) -> None:
        """
        Read the files. The first batch connects: the cluster may be away at the start.

        @raise ConfigError: a file is missing or wrong.
        """
        self._retries.resume()
        self.reopen()

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Send a batch, and again in order what was not acknowledged, for up to C{retry_for}.

        @return: None, or for each message None, L{webhookrx.errors.Rejected} or L{Unavailable}.
        """
        delivery = KafkaDelivery(cast("Sequence[bytes]", batch), excerpt=self._excerpt)
        give_up_at = self._retries.begin()
        try:
            self._retries.call(lambda: self._deliver(delivery, give_up_at), give_up_at)
        except Unavailable as problem:
            delivery.give_up(problem)
        return delivery.outcomes if any(delivery.outcomes) else None

    def hurry(self) -> None:
        """End a pause between two tries, and shorten waits for delivery reports."""
        self._retries.hurry()

    def reopen(self) -> None:
        """
        Read the files again, and connect anew.

        @raise ConfigError: a file is wrong; the contents read before stay in use.
        """
        properties = self._target.properties()
        self._properties = lambda: properties
        self._discard()

    def close(self) -> None:
        """Close the connections."""
        self._discard()
        self._properties = None

    def _deliver(self, delivery: KafkaDelivery, give_up_at: float) -> None:
        """
        Send all that is left, until it is settled; again at once after a refusal, of which there are only so many.

        @raise Unavailable: not all of it is settled.
        """
        while True:
            problem = self._send(delivery, give_up_at)
            if problem is None:
                break
            self._discard()
            if not delivery.refused or self._retries.stopping.is_set() or self._clock() >= give_up_at:
                raise Unavailable(self._describe(problem))
        if delivery.sending.fatal is not None:
            # The last one was refused, alone, and there are no gaps.
            self._discard()
        if delivery.shrink:
            # The topic takes less than librdkafka puts into a request (max.message.bytes below batch.size).
            now = self._batch_size or int(self._require_properties()["batch.size"])
            self._batch_size = max(now // 2, min(now, SMALLEST_BATCH))
            self._discard()
        if not self._is_asked and self._target.acks == "all":
            self._is_asked = True
            properties = self._require_properties()
            self._report_topic(ask_topic, self.spec, _of_any_client(properties), self._target.topic, self._excerpt)

    def _send(self, delivery: KafkaDelivery, give_up_at: float) -> Problem | None:
        """Produce all that is left, and wait for the reports; end as soon as one message has failed."""
        sending = delivery.begin()
        steps = self._retries.steps(give_up_at - self._clock())
        producer = self._get_producer()
        if self._produce(delivery, producer, steps) and sending.waiting:
            # Nothing else is sent behind what has failed. What is on its way may still arrive.
            producer.purge(in_queue=True, in_flight=False, blocking=False)
            seconds = 0.0 if self._retries.stopping.is_set() else ANSWER_WAIT
            self._wait(delivery, producer, self._retries.steps(seconds), lambda: not sending.waiting)
        if sending.waiting:
            producer.purge(in_queue=True, in_flight=True, blocking=False)
            self._wait(delivery, producer, self._retries.steps(PURGE_WAIT), lambda: not sending.waiting)
        return delivery.end()

    def _produce(self, delivery: KafkaDelivery, producer: Producer, steps: Iterator[float]) -> bool:
        """Produce all that is left and wait for its reports, or for a failure; return whether it was in time."""
        sending = delivery.sending

        def is_over() -> bool:
            return sending.failed or not sending.waiting

        begin = 0
        while begin < len(delivery.left) and not sending.failed:
            end = delivery.produce(producer, self._target.topic, begin)
            if end == begin:
                # Nothing but this batch is in the queue, so there will be room.
                in_time = self._wait_once(delivery, producer, steps)
            else:
                in_time = end == len(delivery.left) or self._wait(delivery, producer, steps, is_over)
            if not in_time:
                return False
            begin = end
        return self._wait(delivery, producer, steps, is_over)

    def _wait(
        self, delivery: KafkaDelivery, producer: Producer, steps: Iterator[float], is_over: Callable[[], bool]
    ) -> bool:
        """Take reports until it is over; return whether it was in time."""
        while not is_over():
            if not self._wait_once(delivery, producer, steps):
                return False
        return True

    def _wait_once(self, delivery: KafkaDelivery, producer: Producer, steps: Iterator[float]) -> bool:
        step = next(steps, None)
        if step is None:
            return False
        delivery.sending.poll(producer, step)
        return True

    def _get_producer(self) -> Producer:
        if self._producer is None:
            properties = self._require_properties()
            if self._batch_size is not None:
                properties["batch.size"] = self._batch_size
            self._connection_error = ""
            self._producer = self._connect(properties, self._note_error)
        return self._producer

    def _require_properties(self) -> Properties:
        """
        @raise Unavailable: it is not open.
        """
        if self._properties is None:
            raise Unavailable("it is closed")
        return dict(self._properties())

    def _note_error(self, error: KafkaError) -> None:
        """Remember why there is no connection. That all brokers are down says less."""
        if error.name() != "_ALL_BROKERS_DOWN":
            self._connection_error = describe(error, excerpt=self._excerpt)

    def _describe(self, problem: Problem) -> str:
        if problem.is_late and self._connection_error:
            return f"{problem.text}: {self._connection_error}"
        return problem.text

    def _discard(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            _end(producer)


def _end(producer: Producer) -> None:
    """End a producer, which should be empty; if it takes longer, in a thread."""

    def run() -> None:
        with suppress(KafkaException, SystemError):
            producer.purge(blocking=False)
            producer.close()

    thread = Thread(target=run, name="webhookrx-kafka-end", daemon=True)
    thread.start()
    thread.join(CLOSE_WAIT)


def _of_any_client(properties: Properties) -> Properties:
    """Return the properties without those of producers."""
    return {name: value for name, value in properties.items() if name.startswith(_CLIENT_PREFIXES)}


def build_kafka(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> KafkaObserver:
    """
    Make a kafka observer from its spec string. It works at any C{--ack} level.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    observer = KafkaObserver(spec, read_kafka(args, options))
    observer.check()
    return observer
