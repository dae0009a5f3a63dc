"""
The spec string of the kafka observer, and the properties of its producer.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.message.message import Message
from webhookrx.message.template import Template
from webhookrx.observers.kafka.cluster import (
    CLUSTER_FILES,
    CLUSTER_OPTIONS,
    CLUSTER_SECRETS,
    CLUSTER_TEXTS,
    KafkaCluster,
    Properties,
    read_cluster,
)
from webhookrx.observers.keyed_record import KeyedFormat, read_keyed_format
from webhookrx.settings import MiB
from webhookrx.yield_point import encode_utf_8

KAFKA_SPEC: Final = ObserverSpec(
    options=("template", "id", "key", "acks", "compression", "partitioner", "timeout", "retry_for", *CLUSTER_OPTIONS),
    argument=Argument.URL,
    files=CLUSTER_FILES,
    secrets=CLUSTER_SECRETS,
    texts={
        **CLUSTER_TEXTS,
        "key": OptionText(
            "`${HOST}`",
            "[template](messages.md#templates) of the key: messages of one key are in one partition, in order; empty "
            "spreads messages over all partitions, in no order",
        ),
        "acks": OptionText("`all`", "`1` has only the leader acknowledge; then a 200 is `written`"),
        "compression": OptionText("`zstd`", "`lz4`, `snappy`, `gzip` or `none`"),
        "partitioner": OptionText(
            "`murmur2_random`",
            "which partition a key belongs to; the default is that of Java's client. Others are `murmur2`, "
            "`consistent_random`, `consistent`, `fnv1a_random`, `fnv1a` and `random`",
        ),
        "timeout": OptionText("`5s`", "time limit of requests that are not about messages, such as for metadata"),
        "retry_for": OptionText(
            "`10s`", "how long a batch may take until it is acknowledged, retries included; 1s or more"
        ),
    },
)

COMPRESSIONS: Final = ("zstd", "lz4", "snappy", "gzip", "none")
PARTITIONERS: Final = (
    "murmur2_random",
    "murmur2",
    "consistent_random",
    "consistent",
    "fnv1a_random",
    "fnv1a",
    "random",
)
DEFAULT_TIMEOUT: Final = 5.0
DEFAULT_RETRY_FOR: Final = 10.0
SHORTEST_TIMEOUT: Final = 0.1
LONGEST_TIMEOUT: Final = 300.0

LARGEST_MESSAGE: Final = 64 * MiB
"""
Bytes of a message that goes to the broker, which decides whether it takes it (C{max.message.bytes} of the topic). One
larger than C{socket.request.max.bytes}, 100 MiB, it would not answer: it closes the connection.
"""
SMALLEST_BATCH: Final = 16 * 1024
"""Bytes below which a request is not made smaller (C{batch.size})."""
_BATCH: Final = 1_000_000

_SOURCE: Final = Template.parse("${SOURCE}")
#: How long source, id and key are, which follow; then the value.
_HEAD: Final = struct.Struct(">HHI")
_LONGEST_SOURCE: Final = 512


@dataclass(frozen=True, slots=True)
class KafkaFormat:
    """
    How messages become records of Kafka. They have a frame of their own, beside L{webhookrx.observers.keyed_record}: it
    has the source, too, and is taken apart in half the time.

    @ivar keyed: makes id, key and value.
    """

    keyed: KeyedFormat

    def encode(self, message: Message) -> bytes:
        """Return a message as bytes for L{decode}: what C{prepare} of the observer returns."""
        keyed = self.keyed
        source = encode_utf_8(_SOURCE.render(message))[:_LONGEST_SOURCE]
        own = keyed.identify(message).encode()
        key = b"" if keyed.key is None else encode_utf_8(keyed.key.render(message))
        return b"".join((_HEAD.pack(len(source), len(own), len(key)), source, own, key, keyed.render_line(message)))


def decode(prepared: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return source, id, key and value, without its line end, of what L{KafkaFormat.encode} has made."""
    source, own, key = _HEAD.unpack_from(prepared)
    own += 8 + source
    key += own
    return prepared[8 : 8 + source], prepared[8 + source : own], prepared[own:key], prepared[key:-1]


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """
    Where messages go, and in which form.

    @ivar acks: C{"all"} or C{"1"}.
    @ivar timeout: seconds for one request that is not about messages, such as for metadata.
    @ivar retry_for: seconds from the beginning of a C{store} in which its messages must be acknowledged.
    """

    cluster: KafkaCluster
    topic: str
    acks: str = "all"
    compression: str = COMPRESSIONS[0]
    partitioner: str = PARTITIONERS[0]
    timeout: float = DEFAULT_TIMEOUT
    retry_for: float = DEFAULT_RETRY_FOR
    format: KafkaFormat = field(default_factory=lambda: KafkaFormat(KeyedFormat()))

    def properties(self) -> Properties:
        """
        Read the files, and return the properties of a producer.

        One request at a time is under way on a connection. A broker takes any first sequence of a producer that it does
        not know in a partition (ProducerAppendInfo.checkSequence), so behind a first request that has failed it would
        take a second one, and librdkafka would report the first as stored, too: a silent loss, seen with its mock. And
        librdkafka stops at the first request that fails for good (C{gapless}), instead of going on behind it.

        @raise ConfigError: a file is missing or wrong.
        """
        is_safe = self.acks == "all"
        milliseconds = round(self.retry_for * 1000)
        return {
            "linger.ms": 0,
            "batch.size": _BATCH,
            **self.cluster.properties(),
            "acks": self.acks,
            "enable.idempotence": is_safe,
            "enable.gapless.guarantee": is_safe,
            "max.in.flight.requests.per.connection": 1,
            "compression.type": self.compression,
            "partitioner": self.partitioner,
            "message.max.bytes": LARGEST_MESSAGE,
            "message.timeout.ms": milliseconds,
            "socket.timeout.ms": round(self.timeout * 1000),
            # As long as a message may wait, or the default: the broker gives up on its replicas no later than we do.
            "request.timeout.ms": min(milliseconds, 30_000),
            # A topic that is not there is said to be so before the messages time out.
            "topic.metadata.propagation.max.ms": min(milliseconds // 2, 30_000),
            "delivery.report.only.error": False,
        }


def read_kafka(args: Sequence[str], given: Mapping[str, str]) -> KafkaTarget:
    """
    Read C{kafka:kafka://HOST:PORT,…/TOPIC[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    options = SpecOptions("kafka", given)
    cluster, topic = read_cluster(args, options)
    return KafkaTarget(
        cluster=cluster,
        topic=topic,
        acks=options.choice("acks", ("all", "1"), "all"),
        compression=options.choice("compression", COMPRESSIONS, COMPRESSIONS[0]),
        partitioner=options.choice("partitioner", PARTITIONERS, PARTITIONERS[0]),
        timeout=options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT, at_most=LONGEST_TIMEOUT),
        retry_for=options.duration("retry_for", DEFAULT_RETRY_FOR, at_least=1.0, at_most=LONGEST_TIMEOUT),
        format=KafkaFormat(read_keyed_format(options, "${HOST}")),
    )
