"""
A Kafka of several brokers: the mock cluster of librdkafka, in a process of its own.

It keeps all in memory, and of a partition the last 5 MiB or 100,000 messages (C{mpart->max_size} and C{max_cnt} in
librdkafka's C{rdkafka_mock.c}): tests read beside, or use many partitions. It is frozen or cut off, never killed. It
has no CreateTopics and no DescribeConfigs.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

from tests.system.receiver import PATIENCE
from tests.system.servers.process import Server, ask

#: Requests by their keys in the protocol (https://kafka.apache.org/protocol, "Api Keys").
PRODUCE, FETCH, METADATA, INIT_PRODUCER_ID = 0, 1, 3, 22


class KafkaMock(Server):
    """
    Brokers 1 to C{brokers}; C{port} is the one that takes our own commands.

    @ivar bootstrap: host and port of each broker, for C{bootstrap.servers}.
    """

    name = "kafka"

    def __init__(self, brokers: int = 3) -> None:
        super().__init__()
        self.brokers = brokers
        self.bootstrap = ""

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        found = find_spec("confluent_kafka")
        return "" if found else "no librdkafka: pip install confluent-kafka"

    def command(self) -> list[str]:
        """Run the program."""
        return [sys.executable, "-m", "tests.system.servers.kafka_mock_program", str(self.port), str(self.brokers)]

    def is_ready(self) -> bool:
        """Tell whether it has its brokers, and learn their ports."""
        self.bootstrap = str(self.tell("bootstraps", seconds=1.0))
        return bool(self.bootstrap)

    def tell(self, *command: object, seconds: float = PATIENCE) -> object:
        """
        Have it do something, and return the result.

        @raise AssertionError: librdkafka refuses.
        """
        answer = json.loads(ask(self.port, json.dumps(command).encode() + b"\n", b"\n", seconds))
        assert "error" not in answer, answer
        return answer["result"]

    def join_soon(self) -> None:
        """Give the first member of a group its partitions after a tenth of a second, instead of three."""
        self.tell("group_initial_rebalance_delay_ms", 100)

    def make_topic(self, name: str, partitions: int = 4) -> None:
        """Make a topic with a copy at each of three brokers, or at as many as there are."""
        self.tell("topic_create", name, partitions, min(3, self.brokers))

    def down(self, broker: int) -> None:
        """Cut all connections of a broker, and let it take none; the leaders of partitions stay the same."""
        self.tell("broker_set_down", broker)

    def up(self, broker: int) -> None:
        """Let it take connections again."""
        self.tell("broker_set_up", broker)

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Make a broker the leader of a partition; -1 for none."""
        self.tell("partition_set_leader", topic, partition, broker)

    def delay(self, milliseconds: int) -> None:
        """Let each answer take so long."""
        for broker in range(1, self.brokers + 1):
            self.tell("broker_set_rtt", broker, milliseconds)

    def fail(self, request: int, *errors: int) -> None:
        """
        Answer the next requests of a kind with errors.

        @param errors: codes of C{rd_kafka_resp_err_t}; -195 (C{_TRANSPORT}) cuts the connection instead.
        """
        self.tell("push_request_errors_array", request, *errors)

    def fail_topic(self, topic: str, error: int) -> None:
        """Answer requests for the metadata of a topic with an error."""
        self.tell("topic_set_error", topic, error)

    def advertise(self, broker: int, port: int) -> None:
        """Name another port of 127.0.0.1 to clients, such as that of a proxy."""
        self.tell("broker_set_host_port", broker, "127.0.0.1", port)
