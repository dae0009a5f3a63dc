"""
kafka:URL, to relay from: the spec string of a topic, without the package that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.observers.kafka.cluster import (
    CLUSTER_FILES,
    CLUSTER_OPTIONS,
    CLUSTER_SECRETS,
    CLUSTER_TEXTS,
    PACKAGE,
    read_cluster,
)
from webhookrx.observers.packages import package_for
from webhookrx.relay.consumer import BrokerOptions, ConsumerKind

if TYPE_CHECKING:
    from webhookrx.relay.consumer import Consumer


def build_kafka_consumer(spec: str, args: Sequence[str], given: Mapping[str, str], group: str) -> Consumer:
    """
    Make a consumer of a topic; see L{ConsumerKind}.

    @raise webhookrx.errors.ConfigError: an argument, an option or a file is wrong, or the package is missing.
    """
    options = BrokerOptions("kafka", given)
    cluster, topic = read_cluster(args, options)
    with package_for("kafka", PACKAGE, kind="broker"):
        from webhookrx.relay.kafka_consumer import KafkaConsumer
    consumer = KafkaConsumer(spec, cluster, topic, group)
    consumer.check()
    return consumer


CONSUMER: Final = ConsumerKind(
    ObserverSpec(CLUSTER_OPTIONS, Argument.URL, CLUSTER_FILES, CLUSTER_SECRETS, texts=CLUSTER_TEXTS),
    build_kafka_consumer,
)
