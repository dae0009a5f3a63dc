"""
The process of the mock cluster: C{python -m tests.system.servers.kafka_mock_program PORT BROKERS}.

It takes commands on PORT, each a line: a JSON array with the name of a function of librdkafka's C{rdkafka_mock.h},
without C{rd_kafka_mock_} before it, and its arguments.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import socketserver
import sys
from typing import Any

import confluent_kafka

TEXT, NUMBER, SHORT = ctypes.c_char_p, ctypes.c_int, ctypes.c_int16

#: The arguments of each function, after the cluster.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "broker_set_down": (NUMBER,),
    "broker_set_host_port": (NUMBER, TEXT, NUMBER),
    "broker_set_rtt": (NUMBER, NUMBER),
    "broker_set_up": (NUMBER,),
    "clear_request_errors": (SHORT,),
    "group_initial_rebalance_delay_ms": (NUMBER,),
    "partition_set_leader": (TEXT, NUMBER, NUMBER),
    "set_apiversion": (SHORT, SHORT, SHORT),
    "topic_create": (TEXT, NUMBER, NUMBER),
    "topic_delete": (TEXT,),
    "topic_set_error": (TEXT, NUMBER),
}
#: Those of them that return an error code.
WITH_RESULT = {"broker_set_down", "broker_set_rtt", "broker_set_up", "partition_set_leader", "set_apiversion"} | {
    "topic_create",
    "topic_delete",
}
PRODUCER = 0


class Cluster:
    """A mock cluster of the librdkafka that confluent-kafka brings with it."""

    def __init__(self, brokers: int) -> None:
        beside = os.path.dirname(os.path.dirname(confluent_kafka.__file__))
        libraries = glob.glob(f"{beside}/confluent_kafka.libs/librdkafka*.so*") or ["librdkafka.so.1"]
        self._library = ctypes.CDLL(libraries[0])
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(self._library, name).restype = ctypes.c_void_p
        self._library.rd_kafka_mock_cluster_bootstraps.restype = TEXT
        problem = ctypes.create_string_buffer(512)
        conf = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        client = self._library.rd_kafka_new(PRODUCER, conf, problem, ctypes.c_size_t(len(problem)))
        assert client, problem.value
        self._cluster = ctypes.c_void_p(self._library.rd_kafka_mock_cluster_new(ctypes.c_void_p(client), brokers))

    def call(self, name: str, *arguments: Any) -> object:
        """Call a function."""
        if name == "bootstraps":
            return self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        if name == "push_request_errors_array":
            request, *errors = arguments
            array = (NUMBER * len(errors))(*errors)
            self._library.rd_kafka_mock_push_request_errors_array(
                self._cluster, SHORT(request), ctypes.c_size_t(len(errors)), array
            )
            return None
        types = FUNCTIONS[name]
        values = [kind(value.encode() if kind is TEXT else value) for kind, value in zip(types, arguments, strict=True)]
        result = getattr(self._library, f"rd_kafka_mock_{name}")(self._cluster, *values)
        if name in WITH_RESULT and result:
            raise ValueError(f"{name}{arguments}: error {result}")
        return None


class Commands(socketserver.StreamRequestHandler):
    """Takes the commands of one connection."""

    cluster: Cluster

    def handle(self) -> None:
        """Answer each line with one."""
        for line in self.rfile:
            answer: dict[str, object]
            try:
                answer = {"result": self.cluster.call(*json.loads(line))}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Serve commands until the process ends."""
    port, brokers = (int(text) for text in sys.argv[1:])
    Commands.cluster = Cluster(brokers)
    socketserver.TCPServer.allow_reuse_address = True
    with socketserver.TCPServer(("127.0.0.1", port), Commands) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
