"""The servers that other tests break: each keeps its port and data over a kill, and stands still while it is frozen."""

from __future__ import annotations

import socket
import subprocess
import sys
from http.client import HTTPConnection, HTTPException
from unittest import SkipTest

from tests.system.http_server import PostServer
from tests.system.receiver import wait_until
from tests.system.servers.clickhouse_server import ClickhouseServer
from tests.system.servers.kafka_mock import KafkaMock
from tests.system.servers.moto_server import MotoServer
from tests.system.servers.nats_server import NatsServer
from tests.system.servers.postgresql_server import PostgresqlServer
from tests.system.servers.process import Server, ServerCase, ask, can_connect, free_port
from tests.system.servers.proxy import Proxy
from tests.system.servers.redis_server import RedisServer

SERVERS: tuple[type[Server], ...] = (
    RedisServer,
    NatsServer,
    PostgresqlServer,
    ClickhouseServer,
    MotoServer,
    KafkaMock,
)


def is_ready(server: Server) -> bool:
    """Tell whether it answers in time."""
    try:
        return server.is_ready()
    except (OSError, HTTPException, ValueError, subprocess.TimeoutExpired):
        return False


class ServerTests(ServerCase):
    """Every server."""

    def lives(self, kind: type[Server]) -> None:
        """Let it live, freeze, thaw, die, live again and end."""
        server = self.serve(kind)
        port = server.port
        self.assertTrue(is_ready(server))
        server.freeze()
        self.assertFalse(is_ready(server))
        server.thaw()
        wait_until(lambda: is_ready(server), "it goes on")
        server.kill()
        self.assertRaises(OSError, can_connect, port)
        server.start()
        self.assertEqual(port, server.port)
        self.assertTrue(is_ready(server))
        server.stop()
        self.assertRaises(OSError, can_connect, port)

    def test_redis(self) -> None:
        """Redis."""
        self.lives(RedisServer)

    def test_nats(self) -> None:
        """NATS."""
        self.lives(NatsServer)

    def test_postgresql(self) -> None:
        """PostgreSQL."""
        self.lives(PostgresqlServer)

    def test_clickhouse(self) -> None:
        """ClickHouse."""
        self.lives(ClickhouseServer)

    def test_moto(self) -> None:
        """S3 of moto."""
        self.lives(MotoServer)

    def test_kafka(self) -> None:
        """The mock cluster."""
        self.lives(KafkaMock)

    def test_keeps_data(self) -> None:
        """What Redis has acknowledged is there after a kill."""
        server = self.serve(RedisServer)
        self.assertEqual(b"+OK\r\n", ask(server.port, b"SET one 1\r\n", b"\r\n"))
        server.kill()
        server.start()

        self.assertEqual(b"$1\r\n1\r\n", ask(server.port, b"GET one\r\n", b"1\r\n"))

    def test_missing(self) -> None:
        """One that can't run here is a skip with a sentence."""

        class Absent(RedisServer):
            @classmethod
            def missing(cls) -> str:
                return "no such server"

        error = self.assertRaises(SkipTest, self.serve, Absent)
        self.assertEqual("no such server", str(error))

    def test_port_taken(self) -> None:
        """A port that somebody else took meanwhile is left for another."""
        taken = free_port()
        with socket.create_server(("127.0.0.1", taken)):
            ports = [taken]
            self.patch(
                sys.modules["tests.system.servers.process"], "free_port", lambda: ports.pop() if ports else free_port()
            )
            server = self.serve(RedisServer)

        self.assertNotEqual(taken, server.port)


class KafkaMockTests(ServerCase):
    """What the mock cluster can be told."""

    def test_brokers(self) -> None:
        """It has several brokers, topics with partitions, brokers that go down, and errors to give."""
        server = self.serve(KafkaMock)
        self.assertEqual(3, len(server.bootstrap.split(",")))
        server.make_topic("logs", 7)
        from confluent_kafka import Producer

        told: list[object] = []
        producer = Producer({"bootstrap.servers": server.bootstrap, "acks": "all", "log_level": 0})
        self.assertEqual(7, len(producer.list_topics("logs", timeout=20).topics["logs"].partitions))
        server.down(1)
        server.lead("logs", 0, 2)
        server.fail(0, 7, -195)
        producer.produce("logs", b"one", partition=0, on_delivery=lambda error, message: told.append(error))
        self.assertEqual(0, producer.flush(30))
        self.assertEqual([None], told)
        server.up(1)
        self.assertRaises(AssertionError, server.tell, "topic_create", "logs", 0, 3)
        # It would go on to look for its brokers.
        del producer


class ProxyTests(ServerCase):
    """The proxy."""

    def setUp(self) -> None:
        """Put it before a server."""
        self.server = PostServer()
        self.addCleanup(self.server.stop)
        self.proxy = Proxy(self.server.port)
        self.addCleanup(self.proxy.stop)

    def post(self, body: bytes = b"one", seconds: float = 20.0) -> int:
        """Post something through it."""
        connection = HTTPConnection("127.0.0.1", self.proxy.port, timeout=seconds)
        try:
            connection.request("POST", "/", body)
            return connection.getresponse().status
        finally:
            connection.close()

    def bodies(self) -> list[bytes]:
        """Return what the server has got whole."""
        return [posted.body for posted in self.server.posted]

    def test_passes(self) -> None:
        """It passes requests and answers on."""
        self.assertEqual(200, self.post(b"x" * 1_000_000))
        self.assertEqual([b"x" * 1_000_000], self.bodies())

    def test_swallows(self) -> None:
        """A swallowed answer is one that the server gave: it has got the request."""
        self.proxy.swallow_answers()

        self.assertRaises((OSError, HTTPException), self.post, b"one")

        self.assertEqual([b"one"], self.bodies())
        self.assertGreater(self.proxy.swallowed, 0)
        self.assertEqual(200, self.post(b"two"))

    def test_stalls(self) -> None:
        """While it stalls nothing comes back; then all goes on."""
        self.proxy.stall()
        self.assertRaises(TimeoutError, self.post, b"one", 0.2)
        self.proxy.mend()

        self.assertEqual(200, self.post(b"two"))

    def test_refuses(self) -> None:
        """Refused connections never reach the server."""
        self.proxy.refuse()
        self.assertRaises((OSError, HTTPException), self.post)
        self.assertEqual([], self.bodies())
        self.proxy.mend()

        self.assertEqual(200, self.post())

    def test_cuts_after(self) -> None:
        """A request that is cut in its middle does not come in whole."""
        self.proxy.cut_after(100_000)

        self.assertRaises((OSError, HTTPException), self.post, b"x" * 1_000_000)

        self.assertLess(max(map(len, self.bodies()), default=0), 1_000_000)
        self.assertEqual(200, self.post())

    def test_cuts(self) -> None:
        """Cut connections end at once, for a client that waits, too."""
        with socket.create_connection(("127.0.0.1", self.proxy.port), timeout=20) as sock:
            wait_until(lambda: self.server.connections, "it is connected")
            self.proxy.cut()
            try:
                heard = sock.recv(1)
            except ConnectionResetError:
                heard = b""
        self.assertEqual(b"", heard)
