"""
Asks a Kafka topic once how many brokers keep its messages, and warns where a message may be on one broker alone.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, admin
from twisted.logger import Logger

from webhookrx.observers.kafka.cluster import Properties
from webhookrx.observers.kafka.reports import describe

ASK_TIME: Final = 5.0
"""Seconds for each of the two questions."""
_MIN_ISR: Final = "min.insync.replicas"

#: The package exports it without saying so to type checkers.
_RESOURCE: Final[Any] = vars(admin)["ConfigResource"]

_log = Logger()


class TopicSettings(NamedTuple):
    """
    How many brokers keep a topic.

    @ivar replication: of the partition with the fewest replicas.
    @ivar min_isr: C{min.insync.replicas}: how many of them must have a message before it is acknowledged.
    """

    replication: int
    min_isr: int


class NoSettings(Exception):
    """The cluster does not say. The text says why, in one line."""


#: Asks the cluster, by its properties, about a topic. The last argument: whether texts may quote the cluster.
Ask = Callable[[Properties, str, bool], TopicSettings]


def ask_topic(properties: Properties, topic: str, excerpt: bool) -> TopicSettings:
    """
    Ask the cluster about a topic; blocks for up to twice L{ASK_TIME}.

    @raise NoSettings: there was no answer, or none that can be understood.
    """
    client: Any = admin.AdminClient(properties)
    try:
        partitions = client.list_topics(topic, timeout=ASK_TIME).topics[topic].partitions.values()
        resource = _RESOURCE(_RESOURCE.Type.TOPIC, topic)
        (answer,) = client.describe_configs([resource], request_timeout=ASK_TIME).values()
        min_isr = int(answer.result(ASK_TIME)[_MIN_ISR].value)
        return TopicSettings(min(len(each.replicas) for each in partitions), min_isr)
    except KafkaException as error:
        raise NoSettings(describe(error.args[0], excerpt=excerpt)) from None
    except TimeoutError:
        raise NoSettings("no answer") from None
    except (KeyError, TypeError, ValueError) as error:
        raise NoSettings(f"an answer without {_MIN_ISR} or replicas ({type(error).__name__})") from None


def report_topic(ask: Ask, spec: str, properties: Properties, topic: str, excerpt: bool) -> None:
    """Ask, and write one line when an acknowledged message may be on one broker alone, or when nobody knows."""
    try:
        settings = ask(properties, topic, excerpt)
    except NoSettings as problem:
        _log.info(
            "Observer {spec}: the cluster does not tell replication and min.insync.replicas of the topic {topic}: "
            "{problem}. With both at 2 or more, an acknowledged message outlives a broker",
            spec=spec,
            topic=topic,
            problem=str(problem),
        )
        return
    if min(settings) < 2:
        _log.warn(
            "Observer {spec}: the topic {topic} has replication {replication} and min.insync.replicas {min_isr}: an "
            "acknowledged message may be on one broker alone, in its memory. Set both to 2 or more, such as 3 and 2",
            spec=spec,
            topic=topic,
            replication=settings.replication,
            min_isr=settings.min_isr,
        )


def report_in_thread(ask: Ask, spec: str, properties: Properties, topic: str, excerpt: bool) -> None:
    """Do L{report_topic} beside everything else: the answer is for people, and no batch waits for it."""

    def run() -> None:
        try:
            report_topic(ask, spec, properties, topic, excerpt)
        except Exception:
            _log.failure("Observer {spec} could not ask about its topic", spec=spec)

    Thread(target=run, name="webhookrx-kafka-topic", daemon=True).start()
