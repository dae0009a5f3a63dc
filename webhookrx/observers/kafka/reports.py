"""
What Kafka says of each message of a batch: the delivery reports of librdkafka, and what they mean.

An error of the broker is about a whole request, which librdkafka makes of many messages. So one that speaks against a
message counts only when the message was alone. Whatever is behind a message that is not stored goes again, in the same
partition, even where it is stored already: it comes twice, but never before the other.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException

from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.excerpts import excerpt_of
from webhookrx.observers.kafka.options import decode

#: About the message itself. INVALID_RECORD: the broker has validated the records (KIP-467).
_REFUSALS: Final = frozenset({"MSG_SIZE_TOO_LARGE", "INVALID_RECORD"})
#: Another message of the same request was refused.
_INNOCENT: Final = "_INVALID_DIFFERENT_RECORD"
#: No word of the broker: the time is up, or we have given up.
_LATE: Final = frozenset({"_MSG_TIMED_OUT", "_PURGE_QUEUE", "_PURGE_INFLIGHT"})

#: What an operator can check.
_HINTS: Final = {
    "UNKNOWN_TOPIC_OR_PART": "create the topic, or look at its name",
    "_UNKNOWN_TOPIC": "create the topic, or look at its name",
    "_UNKNOWN_PARTITION": "the topic has become smaller",
    "TOPIC_AUTHORIZATION_FAILED": "the user may not write to the topic",
    "CLUSTER_AUTHORIZATION_FAILED": "the user may not write idempotently to the cluster",
    "POLICY_VIOLATION": "a policy of the cluster is against it",
    "SASL_AUTHENTICATION_FAILED": "look at user= and password_file=",
    "_AUTHENTICATION": "look at user= and password_file=",
    "_SSL": "look at tls=, ca_file=, cert_file= and the names in the server's certificate",
    "_RESOLVE": "look at the names of the servers",
    "_TRANSPORT": "no connection, or it was cut",
    "_BAD_MSG": "is it Kafka, and does it expect TLS?",
    "NOT_ENOUGH_REPLICAS": "fewer replicas are in sync than min.insync.replicas",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "fewer replicas are in sync than min.insync.replicas",
    "THROTTLING_QUOTA_EXCEEDED": "a quota of the cluster",
}
#: How long it took, and how often, would make each text another one.
_VARIES: Final = re.compile(r" \((?:after|after \d+ms) [^()]*(?:\([^()]*\)[^()]*)*\)")


#: The number of no partition: C{RD_KAFKA_PARTITION_UA}.
_BY_KEY: Final = -1

_PROPERTY_NAME: Final = re.compile(r'configuration property "([a-z][a-z0-9._]*)"')


class Producer(Protocol):
    """What is needed of C{confluent_kafka.Producer}."""

    def produce(
        self, topic: str, value: bytes, key: bytes | None, partition: int, on_delivery: Any, /, *, headers: Any
    ) -> None:
        """Copy a message into the queue."""

    def poll(self, timeout: float) -> int:
        """Call callbacks; wait for the first one."""

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Fail what is in the queue, or sent and not acknowledged."""

    def close(self) -> bool:
        """End it; blocks while anything is in the queue."""

    def __len__(self) -> int:
        """Return how many messages and reports wait."""


class Problem(NamedTuple):
    """
    Why a message goes again.

    @ivar is_late: no word of the broker came in time; what librdkafka says of the connection tells more.
    """

    text: str
    is_late: bool


class DeliveryReport(NamedTuple):
    """Why a message is not stored; the partition is None if it never got one."""

    partition: int | None
    error: KafkaError


def describe(error: KafkaError, *, excerpt: bool = True) -> str:
    """
    Return an error in one line.

    @param excerpt: quote its text, which is the broker's or librdkafka's: not after a secret was shown.
    """
    name = str(error.name())
    # librdkafka reports a handshake that fails as _TRANSPORT, with the words of OpenSSL.
    hint = _HINTS["_SSL" if "SSL routines" in error.str() else name] if name in _HINTS else None
    text = name if hint is None else f"{name} ({hint})"
    shown = excerpt_of(_VARIES.sub("", " ".join(error.str().split()))) if excerpt else ""
    return f"{text}: {shown}" if shown else text


class Sending:
    """
    The reports of one round. Those of an earlier producer may still come while it ends, and change no other round.

    @ivar waiting: how many messages are produced and not reported.
    @ivar failed: one of them is not stored, so that those behind it are better not sent.
    @ivar fatal: why this producer does nothing more.
    """

    def __init__(self, alone: Container[int]) -> None:
        self.waiting = 0
        self.failed = False
        self.fatal: KafkaError | None = None
        self.stored: dict[int, int | None] = {}
        self.errors: dict[int, DeliveryReport] = {}
        self._alone = alone

    def take(self, index: int, error: KafkaError | None, message: Any) -> None:
        """Take the report of a message that was produced."""
        self.waiting -= 1
        if error is None:
            self.stored[index] = message.partition()
        else:
            self.note(index, DeliveryReport(message.partition(), error))

    def poll(self, producer: Producer, seconds: float) -> None:
        """
        Take reports, or wait for the first one.

        A fatal error is raised in the midst of callbacks, one of which may fail by it; then its message counts as not
        reported. The others are reported by further calls.
        """
        try:
            producer.poll(seconds)
        except KafkaException as error:
            self.fatal = self.fatal or error.args[0]
            self.failed = True
        except SystemError:
            self.failed = True

    def note(self, index: int, report: DeliveryReport) -> None:
        """Note that a message is not stored."""
        self.errors[index] = report
        if not (index in self._alone and is_refusal(report.error)):
            self.failed = True


def is_refusal(error: KafkaError) -> bool:
    """Tell whether an error is about the message itself, if it was alone."""
    return error.name() in _REFUSALS


def property_problem(error: KafkaError, *, excerpt: bool) -> str:
    """Return why librdkafka does not take its properties. Of a value that may be secret only the name is told."""
    found = _PROPERTY_NAME.search(error.str())
    if found is None or excerpt:
        return f"librdkafka: {describe(error, excerpt=excerpt)}"
    return f"librdkafka does not take the value of {found[1]}"


class KafkaDelivery:
    """
    The delivery of one batch.

    @ivar sending: the present round.
    @ivar left: the messages that are neither stored nor refused, in order.
    @ivar outcomes: as C{store} returns them.
    @ivar refused: messages of the last round were refused. Those that were not alone are to be sent alone, and the
        others at once.
    """

    def __init__(self, batch: Sequence[bytes], *, excerpt: bool = True) -> None:
        self._alone: set[int] = set()
        self.sending = Sending(self._alone)
        self.left: Sequence[int] = range(len(batch))
        self.outcomes: list[Exception | None] = [None] * len(batch)
        self.refused = False
        self._batch = batch
        self._excerpt = excerpt
        self._was_too_large = False
        self._last: Problem | None = None

    def begin(self) -> Sending:
        """Begin another round with all that is left."""
        self.sending = Sending(self._alone)
        self.refused = False
        return self.sending

    @property
    def shrink(self) -> bool:
        """Whether requests were refused as too large, though no message is."""
        return self._was_too_large and not any(self.outcomes)

    def produce(self, producer: Producer, topic: str, begin: int) -> int:
        """
        Hand messages over, from a place in C{left} on. One that must be alone is handed over as the first one, and
        nothing behind it: wait in between until nothing is under way.

        @return: the place of the first one that is not handed over; the same as C{begin} when the queue is full.
        """
        send, batch = producer.produce, self._batch
        sending, take, left, alone = self.sending, self.sending.take, self.left, self._alone
        for place in range(begin, len(left)):
            index = left[place]
            is_alone = index in alone
            if is_alone and place > begin:
                return place
            source, own, key, value = decode(batch[index])
            try:
                # The library takes a name of an argument for a tenth of what it needs here.
                send(
                    topic,
                    value,
                    key or None,
                    _BY_KEY,
                    partial(take, index),
                    headers=[("webhookrx-id", own), ("source", source)],
                )
                sending.waiting += 1
            except BufferError:
                return place
            except KafkaException as problem:
                if is_refusal(problem.args[0]):
                    # librdkafka itself refuses what is larger than message.max.bytes, whatever else is in the queue.
                    alone.add(index)
                    is_alone = True
                sending.note(index, DeliveryReport(None, problem.args[0]))
                if sending.failed:
                    return place + 1
            if is_alone:
                return place + 1
        return len(left)

    def end(self) -> Problem | None:
        """
        End a round: note what is settled, and what goes again.

        @return: why messages go again; None when none does.
        """
        sending = self.sending
        if len(sending.stored) == len(self.left) and not sending.failed:
            self.left = ()
            return None
        left: list[int] = []
        partitions: set[int] = set()
        keys: set[bytes] = set()
        is_lost = False
        problem: Problem | None = None
        for index in self.left:
            key = decode(self._batch[index])[2]
            report = sending.errors.get(index)
            error = None if report is None else report.error
            if index in sending.stored:
                if not (is_lost or sending.stored[index] in partitions or key in keys):
                    continue
            elif error is not None and index in self._alone and is_refusal(error):
                self.refused = True
                self.outcomes[index] = Rejected(f"it refuses the message: {describe(error, excerpt=self._excerpt)}")
                continue
            else:
                if problem is None or problem.is_late:
                    problem = self._problem(error)
                self._suspect(index, error)
                # Of the same key, since the partition of a message that never got one is not known.
                if key:
                    keys.add(key)
                partition = None if report is None else report.partition
                if partition is not None and partition >= 0:
                    partitions.add(partition)
                elif not key:
                    is_lost = True
            left.append(index)
        self.left = left
        fatal = self.sending.fatal
        if fatal is not None and left and (problem is None or problem.is_late):
            problem = Problem(describe(fatal, excerpt=self._excerpt), False)
        if problem is not None and not problem.is_late:
            self._last = problem
        # The last try may have had too little time to hear it again.
        return problem and (self._last or problem)

    def _problem(self, error: KafkaError | None) -> Problem:
        if error is None or error.name() in _LATE:
            return Problem("it has not acknowledged them in time", True)
        return Problem(describe(error, excerpt=self._excerpt), False)

    def _suspect(self, index: int, error: KafkaError | None) -> None:
        if error is None or index in self._alone:
            return
        if is_refusal(error) or error.name() == _INNOCENT:
            self._alone.add(index)
            self._was_too_large |= error.name() == "MSG_SIZE_TOO_LARGE"
            self.refused = True

    def give_up(self, problem: Unavailable) -> None:
        """Say of all that is left that it may come later."""
        for index in self.left:
            self.outcomes[index] = problem
