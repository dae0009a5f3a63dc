"""
Reads a topic of Kafka for a group of relays. Offsets are committed by hand, after the records before them are stored.

librdkafka never commits by itself here, neither in time nor when partitions are revoked or it is closed. Members share
partitions by C{cooperative-sticky}: a relay that comes or goes takes only those from others that it gets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException

from webhookrx.errors import Unavailable
from webhookrx.observers.kafka.reports import describe, property_problem
from webhookrx.observers.retrying import STEP
from webhookrx.relay.consumer import Record
from webhookrx.relay.kafka_member import KafkaMember, group_properties, make_library_consumer

if TYPE_CHECKING:
    from webhookrx.observers.kafka.cluster import KafkaCluster, Properties
    from webhookrx.relay.kafka_member import Connect

COMMIT_WAIT: Final = 1.0
"""Seconds to wait for the answer to a commit; after that L{KafkaConsumer.settle} is to be called again."""
LEAVE_WAIT: Final = 2.5
"""Seconds to wait until the group is left."""
LAG_AGE: Final = 1.0
"""Seconds for which a lag is told without looking."""

_ID_HEADER: Final = "webhookrx-id"
_LONGEST_ID: Final = 512


class KafkaConsumer:
    """
    One member of a group, which provides L{webhookrx.relay.consumer.Consumer}.

    While the observer is away, L{keep_alive} pauses the partitions and goes on asking librdkafka for messages, of which
    it then has none: so the member stays in the group however long that takes (C{max.poll.interval.ms}).

    @param connect: makes librdkafka's consumer.
    """

    def __init__(
        self,
        spec: str,
        cluster: KafkaCluster,
        topic: str,
        group: str,
        connect: Connect = make_library_consumer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec = spec
        self._cluster = cluster
        self._topic = topic
        self._group = group
        self._connect = connect
        self._clock = clock
        self._hurried = Event()
        self._member: KafkaMember | None = None
        self._kept_alive = 0
        self._renew = False
        self._lag: int | None = None
        self._lag_until = clock()
        self._excerpt = not cluster.has_secret
        # In a closure: it holds secrets.
        self._properties: Callable[[], Properties] = dict

    def check(self) -> None:
        """
        Read the files, and let librdkafka judge the properties, without opening a connection.

        @raise ConfigError: a file is missing or wrong, or a property can't be used.
        """
        properties = self._read()
        del properties["bootstrap.servers"]
        try:
            self._connect(properties).close()
        except KafkaException as error:
            raise self._cluster.options.problem(property_problem(error.args[0], excerpt=self._excerpt)) from None

    def open(self) -> None:
        properties = self._read()
        self._properties = lambda: properties
        self._member = self._make()

    def fetch(self, messages: int, size: int, seconds: float) -> Sequence[Record]:
        self._kept_alive = 0
        member = self._usable()
        member.resume()
        records: list[Record] = []
        end = self._clock() + seconds
        while True:
            self._take(member, records, messages, size)
            left = end - self._clock()
            if records or left <= 0 or self._hurried.is_set():
                break
            member.serve(min(left, STEP))
        if not records and (problem := member.why_nothing_comes()):
            raise Unavailable(problem)
        return records

    def settle(self, records: Sequence[Record]) -> None:
        member = self._usable()
        # What is lost meanwhile is passed over.
        member.serve()
        end = self._clock() + COMMIT_WAIT
        while not member.commit(record.place for record in records):
            if self._clock() >= end or member.is_dead:
                problem = member.why_nothing_comes()
                raise Unavailable(f"it has not acknowledged offsets in time{problem and ': '}{problem}")
            member.serve(STEP)

    def keep_alive(self) -> None:
        self._kept_alive += 1
        member = self._usable()
        if self._kept_alive > 1:
            # In a row: the observer takes its time.
            member.pause()
        member.serve()

    def is_ours(self, record: Record) -> bool:
        return self._member is not None and self._member.partitions.is_ours(record.place)

    def lag(self) -> int | None:
        now = self._clock()
        if now >= self._lag_until and self._member is not None:
            self._lag_until = now + LAG_AGE
            self._lag = self._member.lag()
        return self._lag

    def reopen(self) -> None:
        properties = self._read()
        self._properties = lambda: properties
        if "sasl.password" in properties and self._member is not None:
            self._member.use_password(properties["sasl.username"], properties["sasl.password"])
        if self._cluster.tls is not None or self._cluster.librdkafka_file is not None:
            # librdkafka reads other files only once. The group is left, and joined again, when no record is out.
            self._renew = True

    def hurry(self) -> None:
        self._hurried.set()

    def close(self) -> None:
        member, self._member = self._member, None
        if member is not None:
            member.leave(LEAVE_WAIT)

    def _read(self) -> Properties:
        """
        @raise ConfigError: a file is missing or wrong.
        """
        return {**self._cluster.properties(), **group_properties(self._group)}

    def _make(self) -> KafkaMember:
        try:
            return KafkaMember(self._connect, self._properties(), self._topic, self._excerpt)
        except KafkaException as error:
            raise Unavailable(f"librdkafka: {describe(error.args[0], excerpt=self._excerpt)}") from None

    def _usable(self) -> KafkaMember:
        """Return the member, or another one if that is dead or has old files. Records of a dead one are lost."""
        member = self._member
        if member is None:
            raise Unavailable("it is closed")
        if member.is_dead or (self._renew and member.partitions.is_idle):
            self._renew = False
            member.leave(COMMIT_WAIT)
            member = self._member = self._make()
        return member

    def _take(self, member: KafkaMember, records: list[Record], messages: int, size: int) -> None:
        """Take records that are there, until there are enough."""
        room = size
        while len(records) < messages:
            if not member.ready:
                member.serve(messages=messages - len(records))
            # Only the first one may be larger.
            message = member.take(room if records else _ANY_SIZE)
            if message is None:
                return
            record = self._record(member, message)
            if record is not None:
                room -= record.size
                records.append(record)

    def _record(self, member: KafkaMember, message: Any) -> Record | None:
        """Return a message as a record that is delivered; None if its partition is not ours any more."""
        partition, offset = message.partition(), message.offset()
        place = member.partitions.delivered(partition, offset)
        if place is None:
            return None
        kind, milliseconds = message.timestamp()
        return Record(
            value=message.value() or b"",
            id=_id_of(message.headers()),
            origin=f"{self._topic}/{partition}/{offset}",
            received=milliseconds * 1_000_000 if kind else None,
            place=place,
        )


_ANY_SIZE: Final = 1 << 62


def _id_of(headers: Any) -> str:
    """Return the id that a header holds; nothing, if it is none of ours."""
    for name, value in headers or ():
        if name == _ID_HEADER and value is not None and len(value) <= _LONGEST_ID:
            with suppress(UnicodeDecodeError):
                return str(value, "utf-8")
    return ""
