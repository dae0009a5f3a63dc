"""
The stores to measure at: each started for a measurement, with nothing in it.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar
from unittest import SkipTest

from benchmarks.lab import free_port
from benchmarks.tools import ROOT, Unavailable
from tests.system.receiver import wait_until
from tests.system.servers.kafka_mock import KafkaMock
from tests.system.servers.moto_server import MotoServer
from tests.system.servers.nats_server import NatsServer
from tests.system.servers.postgresql_server import PostgresqlServer
from tests.system.servers.process import Server, can_connect
from tests.system.servers.redis_server import RedisServer

PARTITIONS = 32
"""Of the topic: librdkafka's mock keeps only so much of each."""


class Served(NamedTuple):
    """
    A store that is up.

    @ivar address: what the client alone takes.
    @ivar spec: the spec string of the observer.
    """

    address: str
    spec: str


@dataclass(frozen=True)
class Place:
    """
    A store to measure at.

    @ivar name: in tables.
    @ivar client: the one of L{benchmarks.stores.alone}; C{treq} for HTTP stores.
    @ivar serve: starts it.
    @ivar batch: messages in a batch.
    """

    name: str
    client: str
    serve: Callable[[], AbstractContextManager[Served]]
    batch: int = 500


_AnyServer = TypeVar("_AnyServer", bound=Server)


@contextmanager
def up(kind: type[_AnyServer]) -> Iterator[_AnyServer]:
    """
    Start a server, and end it behind the block.

    @raise Unavailable: it can't run here.
    """
    try:
        server = kind()
    except SkipTest as reason:
        raise Unavailable(str(reason)) from None
    try:
        yield server.start()
    finally:
        server.clean_up()


@contextmanager
def kafka() -> Iterator[Served]:
    """librdkafka's mock of three brokers."""
    with up(KafkaMock) as server:
        server.make_topic("logs", PARTITIONS)
        yield Served(server.bootstrap, f"kafka:kafka://{server.bootstrap}/logs:key=${{HOST}}")


@contextmanager
def nats() -> Iterator[Served]:
    """nats-server with a stream in files."""

    async def make_stream(address: str) -> None:
        import nats as library

        client = await library.connect(address)
        await client.jetstream().add_stream(name="LOGS", subjects=["logs.>"])
        await client.close()

    with up(NatsServer) as server:
        address = f"nats://{server.address}"
        asyncio.run(make_stream(address))
        yield Served(address, f"nats:{address}/logs.${{HOST}}")


@contextmanager
def redis(options: str) -> Iterator[Served]:
    """redis-server that syncs each write."""
    with up(RedisServer) as server:
        address = f"redis://{server.address}/0"
        yield Served(address, f"redis:{address}/logs{options}")


@contextmanager
def postgresql() -> Iterator[Served]:
    """PostgreSQL with a table of the columns that the observer writes."""
    import psycopg

    with up(PostgresqlServer) as server:
        database, user, password = server.DATABASE, server.OWNER, server.PASSWORD
        address = f"host=127.0.0.1 port={server.port} dbname={database} user={user} password={password}"
        with psycopg.connect(address) as connection:
            columns = "id text PRIMARY KEY, received timestamptz, source text, host text, message json"
            connection.execute(f"CREATE TABLE webhooks ({columns})")
        file = server.write("observer_password", f"{password}\n")
        spec = f"postgresql:postgresql://{server.address}/{database}/webhooks:user={user}:password_file={file}:tls=no"
        yield Served(address, spec)


@contextmanager
def s3() -> Iterator[Served]:
    """moto's server."""
    with up(MotoServer) as server:
        server.make_bucket("logs")
        keys = server.write("credentials", "[default]\naws_access_key_id = k\naws_secret_access_key = s\n")
        endpoint = f"http\\://127.0.0.1\\:{server.port}"
        spec = f"s3:s3://logs/in:endpoint={endpoint}:region=us-east-1:credentials_file={keys}"
        yield Served(f"http://{server.address}", spec)


@contextmanager
def http(kind: str, path: str, options: str = "") -> Iterator[Served]:
    """
    A program that answers as the store does, and stores nothing.

    @param kind: of L{benchmarks.stores.answering}, and the name of the observer.
    @param path: behind the URL, in the spec string.
    @param options: in the spec string; C{TOKEN} stands for a file with a token.
    """
    port = free_port()
    command = (sys.executable, "-m", "benchmarks.stores.answering", str(port), kind)
    with tempfile.NamedTemporaryFile("w") as token, subprocess.Popen(command, cwd=ROOT) as process:
        try:
            token.write("token\n")
            token.flush()
            wait_until(lambda: _listens(port), "it listens")
            address = f"http://127.0.0.1:{port}"
            yield Served(f"{address}/in", f"{kind}:{address}{path}{options.replace('TOKEN', token.name)}")
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    try:
        return can_connect(port)
    except OSError:
        return False


PLACES = (
    Place("Kafka", "kafka", kafka),
    Place("NATS", "nats", nats),
    Place("Redis", "redis", partial(redis, ":dedup=off")),
    Place("PostgreSQL", "postgresql", postgresql),
    Place("S3", "s3", s3, batch=10_000),
    Place("HTTP", "treq", partial(http, "http", "/in", ":batch=500")),
    Place("ClickHouse", "treq", partial(http, "clickhouse", "/default.logs"), batch=5_000),
    Place("Elasticsearch", "treq", partial(http, "elasticsearch", "/logs")),
    Place("Loki", "treq", partial(http, "loki", "")),
    Place("OTLP", "treq", partial(http, "otlp", ""), batch=100),
    Place("Splunk HEC", "treq", partial(http, "splunk-hec", "", ":token_file=TOKEN")),
)
