"""
A member of a group of Kafka: librdkafka's consumer, the partitions that it has, and its commits.

Everything happens in the calls of L{KafkaMember}, callbacks too, so it is used in one thread. Commits are asynchronous:
beside one that waits for its answer librdkafka does not even answer C{poll} (seen with 2.16).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import msgspec
from confluent_kafka import Consumer as LibraryConsumer
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from webhookrx.errors import Unavailable
from webhookrx.observers.kafka.cluster import SilentLog
from webhookrx.observers.kafka.options import LARGEST_MESSAGE
from webhookrx.observers.kafka.reports import describe
from webhookrx.relay.kafka_partitions import KafkaPlace, Partitions
from webhookrx.settings import MiB

if TYPE_CHECKING:
    from webhookrx.observers.kafka.cluster import Properties

    #: Makes librdkafka's consumer of its properties.
    Connect = Callable[[Properties], Any]

READY: Final = 4 * MiB
"""
Bytes of values that librdkafka fetches ahead; and again as many bytes, of keys and headers too, that it has handed over
while something else was waited for. One larger batch of a partition may come on top.
"""
READY_MESSAGES: Final = 10_000
FETCH_BELOW: Final = 300
"""
Messages that are ready in librdkafka below which it fetches more. Of their bytes it counts values only (measured with
2.16), so this is what bounds a topic of large keys and headers: so many messages, each as large as the broker takes.
"""
STATISTICS: Final = 2.0
"""Seconds between two statistics of librdkafka, by which a connection is known to be back, and a lag is known."""

#: What is wrong as long as no broker is connected.
_CONNECTION: Final = frozenset({"_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE", "_SSL", "_AUTHENTICATION", "_BAD_MSG"})
#: Passing states of a group, of which librdkafka takes care itself.
_PASSING: Final = frozenset({"_MAX_POLL_EXCEEDED", "_PARTITION_EOF", "REBALANCE_IN_PROGRESS"})

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def make_library_consumer(properties: Properties) -> Any:
    """
    Make librdkafka's consumer. It connects by itself.

    @raise KafkaException: a property can't be used.
    """
    return LibraryConsumer(properties, logger=SilentLog())


def group_properties(group: str) -> Properties:
    """Return the properties that make a member of a group. What a file of the operator says can't change them."""
    return {
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # Without a position, or with one that is gone, nothing is skipped.
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "check.crcs": True,
        "partition.assignment.strategy": "cooperative-sticky",
        # What a killed relay has held goes to others after this.
        "session.timeout.ms": 15_000,
        "heartbeat.interval.ms": 3_000,
        "max.poll.interval.ms": 300_000,
        "queued.min.messages": FETCH_BELOW,
        "queued.max.messages.kbytes": READY // 1024,
        "fetch.queue.backoff.ms": 5,
        "fetch.max.bytes": READY,
        "receive.message.max.bytes": LARGEST_MESSAGE + READY,
        "allow.auto.create.topics": False,
        "socket.timeout.ms": 10_000,
        "statistics.interval.ms": round(STATISTICS * 1000),
    }


def size_of(message: Any) -> int:
    """Return the bytes that a message holds: key and headers, too, of which its length knows nothing."""
    headers = message.headers() or ()
    return len(message) + len(message.key() or b"") + sum(len(name) + len(value or b"") for name, value in headers)


class KafkaMember:
    """
    One member. Records that it has delivered belong to it until L{commit}, or until their partition is lost.

    @param connect: makes librdkafka's consumer.
    @param excerpt: texts may quote the broker: no secret was shown to it.
    @raise KafkaException: a property can't be used.
    @ivar partitions: those that are ours.
    @ivar ready: messages that librdkafka has handed over.
    @ivar is_dead: a fatal error: it does nothing more.
    """

    def __init__(self, connect: Connect, properties: Properties, topic: str, excerpt: bool) -> None:
        self.partitions = Partitions()
        self.ready: deque[Any] = deque()
        self.is_dead = False
        self._topic = topic
        self._excerpt = excerpt
        self._ready_bytes = 0
        self._paused: set[int] = set()
        self._committed: dict[int, int] = {}
        self._committing: dict[KafkaPlace, int] | None = None
        self._refused: KafkaError | None = None
        self._problem = self._no_connection = self._last_error = ""
        callbacks = {
            "error_cb": self._note_error,
            "stats_cb": self._note_statistics,
            "on_commit": self._note_commit,
        }
        self._consumer = connect({**properties, **callbacks})
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def serve(self, seconds: float = 0.0, messages: int = 1) -> None:
        """
        Let callbacks be called, tell the group that we are alive, and take messages that are there.

        @param seconds: how long to wait for the first of either.
        @param messages: at most so many.
        """
        try:
            arrived = self._consumer.consume(messages, seconds)
        except KafkaException as error:
            self._problem = describe(error.args[0], excerpt=self._excerpt)
            self.is_dead = bool(error.args[0].fatal())
            return
        for message in arrived:
            wrong = message.error()
            if wrong is None:
                self.ready.append(message)
                self._ready_bytes += size_of(message)
            elif wrong.name() not in _PASSING:
                self._problem = describe(wrong, excerpt=self._excerpt)

    def take(self, room: int) -> Any:
        """Return the next message, if its value is no longer than that; else None."""
        if not self.ready or len(self.ready[0]) > room:
            return None
        message = self.ready.popleft()
        self._ready_bytes -= size_of(message)
        return message

    def pause(self) -> None:
        """Get no further messages. What librdkafka has fetched ahead is fetched again later."""
        # Those that were assigned since the last call, too.
        self._paused.update(self.partitions.numbers)
        with suppress(KafkaException):
            self._consumer.pause(self._places(self._paused))

    def resume(self) -> None:
        """Get messages again, once most of what is ready was taken."""
        if self._paused and not self._is_full(2):
            # Those that were lost meanwhile, too: librdkafka would remember the pause when they are assigned again.
            with suppress(KafkaException):
                self._consumer.resume(self._places(self._paused))
            self._paused.clear()

    def commit(self, places: Iterable[KafkaPlace]) -> bool:
        """
        Note that records are done with, and have the group know. What is lost is passed over.

        @return: whether it knows; if not, the answer comes in one of the next calls of L{serve}, and this is to be
            called again.
        @raise Unavailable: it does not take the positions.
        """
        self.partitions.settled(places)
        if self._committing is None:
            refused, self._refused = self._refused, None
            if refused is not None:
                raise Unavailable(f"it does not take offsets: {describe(refused, excerpt=self._excerpt)}")
            positions = self.partitions.positions()
            if not positions:
                return True
            offsets = [TopicPartition(self._topic, place.partition, position) for place, position in positions.items()]
            try:
                self._consumer.commit(offsets=offsets, asynchronous=True)
            except KafkaException as error:
                raise Unavailable(f"it takes no offsets: {describe(error.args[0], excerpt=self._excerpt)}") from None
            self._committing = positions
        if self._is_full():
            self.pause()
        return False

    def why_nothing_comes(self) -> str:
        """Return what is wrong, as last heard; C{""} when nothing is."""
        problem = self._problem or self._no_connection
        if self.partitions.numbers:
            # It is said once. It is said again when it happens again.
            self._problem = ""
        return problem

    def lag(self) -> int | None:
        """Return how many messages lie behind the positions of our partitions, as last heard."""
        total = 0
        for number, begin in self.partitions.begins().items():
            try:
                low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), cached=True)
            except KafkaException:
                return None
            if begin is None:
                # Nothing was delivered yet, perhaps for lack of records; the group is where statistics have it.
                begin = self._committed.get(number)
            if high < 0 or begin is None:
                return None
            total += max(high - max(begin, low), 0)
        return total if self.partitions.numbers else None

    def use_password(self, user: str, password: str) -> None:
        """Show these from the next connection on."""
        self._consumer.set_sasl_credentials(user, password)

    def leave(self, seconds: float) -> None:
        """Leave the group, and wait so long for it; nothing else may be called then."""
        self.partitions.lost_all()

        def run() -> None:
            with suppress(KafkaException, SystemError, RuntimeError):
                self._consumer.close()

        thread = Thread(target=run, name="webhookrx-kafka-leave", daemon=True)
        thread.start()
        thread.join(seconds)

    def _is_full(self, part: int = 1) -> bool:
        return self._ready_bytes * part > READY or len(self.ready) * part > READY_MESSAGES

    def _places(self, numbers: Iterable[int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, number) for number in numbers]

    # -- callbacks -------------------------------------------------------------------------------------------------

    def _assigned(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        self.partitions.assigned(each.partition for each in partitions)
        if partitions:
            self._problem = ""

    def _revoked(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        numbers = {each.partition for each in partitions}
        self.partitions.lost(numbers)
        self.ready = deque(each for each in self.ready if each.partition() not in numbers)
        self._ready_bytes = sum(map(size_of, self.ready))

    def _note_commit(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        committing, self._committing = self._committing or {}, None
        taken = {each.partition: each.offset for each in partitions if error is None and each.error is None}
        self.partitions.committed({place: at for place, at in committing.items() if taken.get(place.partition) == at})
        self._refused = error or next((each.error for each in partitions if each.error is not None), None)

    def _note_error(self, error: KafkaError) -> None:
        name = error.name()
        if name not in _CONNECTION:
            self._problem = describe(error, excerpt=self._excerpt)
        elif name == "_ALL_BROKERS_DOWN":
            self._no_connection = self._last_error or describe(error, excerpt=self._excerpt)
        else:
            # As long as there is another broker, librdkafka takes care of it.
            self._last_error = describe(error, excerpt=self._excerpt)

    def _note_statistics(self, text: str) -> None:
        statistics = _decode(text)
        topic = statistics.get("topics", {}).get(self._topic, {}).get("partitions", {})
        # Those that the group has no offset of (-1001) are read from their beginning. Partition -1 is librdkafka's own
        # (https://github.com/confluentinc/librdkafka/blob/master/STATISTICS.md).
        self._committed = {int(number): partition["committed_offset"] for number, partition in topic.items()}
        if self._no_connection:
            brokers = statistics.get("brokers", {}).values()
            if any(broker.get("state") == "UP" for broker in brokers):
                self._no_connection = ""
