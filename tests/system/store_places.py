"""
Real stores, each with the observer that writes there, what hinders it, and all that it holds in the end.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection
from typing import Any, ClassVar, NamedTuple

from tests import LONG
from tests.system.servers.clickhouse_front import ClickhouseFront
from tests.system.servers.clickhouse_server import ClickhouseServer
from tests.system.servers.hec_server import HECServer
from tests.system.servers.kafka_mock import KafkaMock
from tests.system.servers.moto_server import MotoServer
from tests.system.servers.nats_server import NatsServer
from tests.system.servers.postgresql_server import PostgresqlServer
from tests.system.servers.process import Server, ServerCase
from tests.system.servers.proxy import Proxy
from tests.system.servers.redis_server import RedisServer

PARTITIONS = 32


class Copy(NamedTuple):
    """A copy of a message in a store."""

    id: str
    text: str


def copy_of(line: bytes | str) -> Copy:
    """Read a message as observers write it."""
    values = json.loads(line)
    return Copy(values["RCPTID"], values["MESSAGE"].split(" ", 1)[0])


class Place:
    """
    A store.

    @cvar name: what it is called in figures.
    @cvar once: whether it keeps a message once that comes again under the same id.
    @cvar is_ordered: whether it keeps the order in which messages of one host come.
    @ivar spec: the spec string of its observer.
    @ivar chance: what decides how long it is away.
    """

    name: ClassVar[str]
    once: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    spec: str

    def __init__(self, case: ServerCase, chance: random.Random) -> None:
        self.case = case
        self.chance = chance
        self.start()

    def start(self) -> None:
        """Start the server, and set C{spec}."""
        raise NotImplementedError

    def hinder(self, number: int) -> None:
        """Let it fail for the so-manieth time, and come back."""
        raise NotImplementedError

    def copies(self) -> Iterable[Copy]:
        """Return all that it holds; copies of one host in its order, if it has one."""
        raise NotImplementedError


class KilledPlace(Place):
    """A store whose server is killed with C{kill -9}, behind a proxy that also loses answers."""

    server: Server
    proxy: Proxy

    def serve(self, kind: type[Server], *arguments: object) -> int:
        """Start a server with a proxy before it, and return the port of the proxy."""
        self.server = self.case.serve(kind, *arguments)
        self.proxy = Proxy(self.server.port)
        self.case.addCleanup(self.proxy.stop)
        return self.proxy.port

    def hinder(self, number: int) -> None:
        """
        Kill it. Every second time it loses its answers shortly before; else it stands still before, with requests in
        its sockets.
        """
        if number % 2:
            self.proxy.swallow_answers()
        else:
            self.server.freeze()
        time.sleep(self.chance.uniform(0.05, 0.5))
        self.server.kill()
        time.sleep(self.chance.uniform(0.0, 1.0))
        self.proxy.mend()
        self.server.start()


class RedisPlace(KilledPlace):
    """A stream of Redis that syncs each write."""

    name = "Redis"

    def start(self) -> None:
        """Start it."""
        port = self.serve(RedisServer)
        self.spec = f"redis:redis://127.0.0.1:{port}/0/logs:retry_for=5s:dedup=script"

    def copies(self) -> Iterator[Copy]:
        """Read the stream."""
        import redis

        with redis.Redis(port=self.server.port) as client:
            last = "-"
            while entries := client.xrange("logs", last, count=10_000):  # type: ignore[no-untyped-call]
                for _, fields in entries:
                    yield next(copy_of(value) for value in fields.values() if value.startswith(b"{"))
                last = f"({entries[-1][0].decode()}"


class NatsPlace(KilledPlace):
    """A stream of JetStream in files."""

    name = "NATS"

    def start(self) -> None:
        """Start it, and make the stream."""
        port = self.serve(NatsServer)
        asyncio.run(self._make_stream())
        self.spec = f"nats:nats://127.0.0.1:{port}/logs.${{HOST}}:retry_for=5s"

    def copies(self) -> list[Copy]:
        """Read the stream."""
        return asyncio.run(self._read())

    async def _make_stream(self) -> None:
        import nats
        from nats.js.api import StorageType, StreamConfig

        client = await nats.connect(f"nats://{self.server.address}")
        config = StreamConfig(name="LOGS", subjects=["logs.>"], storage=StorageType.FILE, duplicate_window=3600)
        await client.jetstream().add_stream(config)
        await client.close()

    async def _read(self) -> list[Copy]:
        import nats
        from nats.js.api import AckPolicy, ConsumerConfig

        client = await nats.connect(f"nats://{self.server.address}")
        stream = client.jetstream()
        count = (await stream.stream_info("LOGS")).state.messages
        reader = await stream.pull_subscribe("logs.>", config=ConsumerConfig(ack_policy=AckPolicy.NONE))
        copies: list[Copy] = []
        while len(copies) < count:
            for message in await reader.fetch(min(1000, count - len(copies)), timeout=30):
                copies.append(copy_of(message.data))
        await client.close()
        return copies


class PostgresqlPlace(KilledPlace):
    """A table of PostgreSQL, with a column of its own that numbers rows as they come."""

    name = "PostgreSQL"

    def start(self) -> None:
        """Start it, and make the table."""
        port = self.serve(PostgresqlServer)
        with self.connect() as connection:
            connection.execute(
                "CREATE TABLE webhooks (n bigserial, id text PRIMARY KEY, received timestamptz, source text,"
                " host text, message json)"
            )
        password = self.server.write("observer_password", f"{PostgresqlServer.PASSWORD}\n")
        self.spec = (
            f"postgresql:postgresql://127.0.0.1:{port}/{PostgresqlServer.DATABASE}/webhooks"
            f":user={PostgresqlServer.OWNER}:password_file={password}:tls=no:retry_for=5s"
        )

    def connect(self) -> Any:
        """Connect to the database, not through the proxy."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.server.port,
            dbname=PostgresqlServer.DATABASE,
            user=PostgresqlServer.OWNER,
            password=PostgresqlServer.PASSWORD,
        )

    def copies(self) -> list[Copy]:
        """Read the table."""
        with self.connect() as connection:
            return [copy_of(line) for (line,) in connection.execute("SELECT message::text FROM webhooks ORDER BY n")]


class ClickhousePlace(KilledPlace):
    """A table of the old ClickHouse of Debian, which does not know inserts again."""

    name = "ClickHouse 18.16"
    once = False
    is_ordered = False

    def start(self) -> None:
        """Start it behind a front that takes from inserts what it does not know, and make the table."""
        self.server = self.case.serve(ClickhouseServer)
        self.front = ClickhouseFront(self.server.port)
        self.case.addCleanup(self.front.stop)
        self.proxy = Proxy(self.front.port)
        self.case.addCleanup(self.proxy.stop)
        columns = "id String, received DateTime, source String, host String, message String"
        self.ask(f"CREATE TABLE messages ({columns}) ENGINE = MergeTree ORDER BY (received, id)")
        self.spec = f"clickhouse:http://127.0.0.1:{self.proxy.port}/default.messages:retry_for=5s:timeout=5s"

    def ask(self, query: str) -> str:
        """Ask the server itself."""
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("POST", "/", query.encode())
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, text
        return text

    def copies(self) -> Iterator[Copy]:
        """Read the table."""
        for row in self.ask("SELECT message FROM messages FORMAT JSONEachRow").splitlines():
            yield copy_of(json.loads(row)["message"])


class SplunkPlace(KilledPlace):
    """A collector that answers before events are safe, and loses them when it is killed."""

    name = "Splunk (played)"
    once = False

    def start(self) -> None:
        """Start it."""
        port = self.serve(HECServer)
        token = self.server.write("token", "t0ken\n")
        self.spec = f"splunk-hec:http://127.0.0.1:{port}:token_file={token}:ack=indexer:retry_for=5s:timeout=5s"

    def copies(self) -> Iterator[Copy]:
        """Read what is indexed."""
        with open(self.server.path("index"), "rb") as file:
            for line in file:
                yield copy_of(line)


class KafkaPlace(Place):
    """A topic of a mock cluster: frozen, cut off, and robbed of its answers, never killed."""

    name = "Kafka (mock)"
    once = False

    def start(self) -> None:
        """Start it behind a proxy for each broker, and make the topic."""
        self.server = self.case.serve(KafkaMock)
        self.server.make_topic("logs", PARTITIONS)
        self.proxies = []
        for broker, address in enumerate(self.server.bootstrap.split(","), 1):
            proxy = Proxy(int(address.rpartition(":")[2]))
            self.case.addCleanup(proxy.stop)
            self.server.advertise(broker, proxy.port)
            self.proxies.append(proxy)
        self.brokers = ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies)
        self.spec = f"kafka:kafka://{self.brokers}/logs:key=${{HOST}}:timeout=2s:retry_for=5s"

    def hinder(self, number: int) -> None:
        """Freeze all brokers for longer than a try takes; or lose answers and cut all connections."""
        if number % 2 == 0:
            self.server.freeze()
            time.sleep(self.chance.uniform(1.0, 7.0 if LONG else 3.0))
            self.server.thaw()
        else:
            for proxy in self.proxies:
                proxy.swallow_answers(2)
            time.sleep(self.chance.uniform(0.2, 1.0))
            for proxy in self.proxies:
                proxy.refuse()
            time.sleep(self.chance.uniform(0.2, 3.0 if LONG else 1.0))
            for proxy in self.proxies:
                proxy.mend()

    def copies(self) -> Iterator[Copy]:
        """Read all partitions, each to its end."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        try:
            left = {}
            for partition in range(PARTITIONS):
                first, end = consumer.get_watermark_offsets(TopicPartition("logs", partition), timeout=30)
                assert first == 0, "the mock has dropped messages"
                if end:
                    left[partition] = end
            consumer.assign([TopicPartition("logs", partition, 0) for partition in left])
            while left:
                messages = consumer.consume(10_000, timeout=5)
                assert messages, f"nothing comes any more of {left}"
                for message in messages:
                    assert message.error() is None, message.error()
                    yield copy_of(message.value())
                    if message.offset() + 1 >= left.get(message.partition(), 1 << 62):
                        del left[message.partition()]
        finally:
            consumer.close()


class S3Place(Place):
    """A bucket of moto: frozen and cut off, never killed."""

    name = "S3 (moto)"

    def start(self) -> None:
        """Start it behind a proxy, and make the bucket."""
        self.server = self.case.serve(MotoServer)
        self.server.make_bucket("logs")
        self.proxy = Proxy(self.server.port)
        self.case.addCleanup(self.proxy.stop)
        keys = self.server.write("credentials", "[default]\naws_access_key_id = k\naws_secret_access_key = s\n")
        self.spec = (
            f"s3:s3://logs/in:endpoint=http\\://127.0.0.1\\:{self.proxy.port}:region=us-east-1"
            f":credentials_file={keys}:size=1MiB:age=2s"
        )

    def hinder(self, number: int) -> None:
        """Freeze it; or lose answers and cut all connections."""
        if number % 2 == 0:
            self.server.freeze()
            time.sleep(self.chance.uniform(1.0, 7.0 if LONG else 3.0))
            self.server.thaw()
        else:
            self.proxy.swallow_answers()
            time.sleep(self.chance.uniform(0.2, 1.0))
            self.proxy.refuse()
            time.sleep(self.chance.uniform(0.2, 3.0 if LONG else 1.0))
            self.proxy.mend()

    def copies(self) -> Iterator[Copy]:
        """Read all objects, in the order of their names."""
        import zstandard
        from obstore.store import S3Store

        store = S3Store(
            "logs",
            endpoint=f"http://127.0.0.1:{self.server.port}",
            region="us-east-1",
            access_key_id="k",
            secret_access_key="s",
            client_options={"allow_http": True},
        )
        names = sorted(each["path"] for batch in store.list() for each in batch)
        for name in names:
            content = bytes(store.get(name).bytes())
            if content.startswith(b"\x28\xb5\x2f\xfd"):
                content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
            for line in content.splitlines():
                yield copy_of(line)
