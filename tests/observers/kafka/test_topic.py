"""
Tests for L{webhookrx.observers.kafka.topic}, with a cluster that is played: librdkafka's mock has no DescribeConfigs.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import admin as library_admin
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.secret_contract import all_texts
from webhookrx.observers.kafka.topic import NoSettings, TopicSettings, ask_topic, report_topic


class PlayedAdmin:
    """Answers C{list_topics} and C{describe_configs}."""

    def __init__(self, replicas: tuple[int, ...], min_isr: object, error: Exception | None = None) -> None:
        self.closed = False
        self._replicas = replicas
        self._min_isr = min_isr
        self._error = error

    def list_topics(self, topic: str, timeout: float) -> Any:
        """Return the partitions."""
        partitions = {
            number: SimpleNamespace(replicas=list(range(count))) for number, count in enumerate(self._replicas)
        }
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=partitions)})

    def describe_configs(self, resources: list[Any], request_timeout: float) -> Any:
        """Return a future of the configuration."""

        def result(timeout: float) -> Any:
            if self._error is not None:
                raise self._error
            return {} if self._min_isr is None else {"min.insync.replicas": SimpleNamespace(value=self._min_isr)}

        return {resources[0]: SimpleNamespace(result=result)}


class TopicTests(SynchronousTestCase):
    """What is asked, and what is said."""

    def ask(self, admin: PlayedAdmin, excerpt: bool = True) -> TopicSettings:
        """Ask a played cluster."""
        self.patch(library_admin, "AdminClient", lambda properties: admin)
        return ask_topic({}, "logs", excerpt)

    def said(self, settings: TopicSettings | NoSettings) -> list[str]:
        """Return the lines for an answer."""

        def ask(*_: object) -> TopicSettings:
            if isinstance(settings, NoSettings):
                raise settings
            return settings

        with all_texts() as texts:
            report_topic(ask, "kafka:spec", {}, "logs", True)
        return [text for text in texts if "Observer kafka:spec: the" in text]

    def test_answer(self) -> None:
        """The partition with the fewest replicas counts."""
        self.assertEqual(TopicSettings(2, 1), self.ask(PlayedAdmin((3, 2, 3), "1")))

    def test_no_answer(self) -> None:
        """An error, no time, or an answer without what was asked for, is no settings, in one short line."""
        quoting = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "words"))
        for admin, words in (
            (PlayedAdmin((3,), "2", quoting), "TOPIC_AUTHORIZATION_FAILED"),
            (PlayedAdmin((3,), "2", TimeoutError()), "no answer"),
            (PlayedAdmin((3,), None), "KeyError"),
            (PlayedAdmin((3,), "two"), "ValueError"),
            (PlayedAdmin((), "2"), "ValueError"),
        ):
            with self.subTest(words):
                self.assertIn(words, str(self.assertRaises(NoSettings, self.ask, admin)))
        error = self.assertRaises(NoSettings, self.ask, PlayedAdmin((3,), "2", quoting), excerpt=False)
        self.assertNotIn("words", str(error))

    def test_lines(self) -> None:
        """One line names both where one of them is 1, one line says that nobody tells, and none where all is well."""
        self.assertEqual([], self.said(TopicSettings(3, 2)))
        for settings in (TopicSettings(1, 1), TopicSettings(3, 1), TopicSettings(1, 2)):
            (line,) = self.said(settings)
            self.assertIn(f"replication {settings.replication} and min.insync.replicas {settings.min_isr}", line)
        (line,) = self.said(NoSettings("no answer"))
        self.assertIn("does not tell", line)
