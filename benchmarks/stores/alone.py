"""
Each client alone: what a program would do with the library to have a batch as safe as the observer has it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TypeAlias, cast

from benchmarks.stores.messages import Ready

Store: TypeAlias = Callable[[Sequence[Ready]], object]
"""Stores a batch, or raises."""


def kafka(address: str) -> Store:
    """
    confluent-kafka with a callback for each delivery report, and with the settings without which it would not be as
    safe as the observer (L{webhookrx.observers.kafka.options.KafkaTarget.properties}); C{address}: the brokers.
    """
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "enable.idempotence": True,
            "enable.gapless.guarantee": True,
            "max.in.flight.requests.per.connection": 1,
            "compression.type": "zstd",
            "partitioner": "murmur2_random",
            "linger.ms": 0,
        }
    )
    reported: list[object] = []

    def store(batch: Sequence[Ready]) -> None:
        reported.clear()
        for each in batch:
            producer.produce(
                "logs",
                each.line,
                each.host,
                headers=[("webhookrx-id", each.id)],
                on_delivery=lambda error, _: reported.append(error),
            )
        producer.flush(10)
        assert reported == [None] * len(batch)

    return store


def nats(address: str) -> Store:
    """nats-py with a PubAck for each message."""
    import nats as library
    from nats.js import JetStreamContext

    loop = asyncio.new_event_loop()

    async def connect() -> JetStreamContext:
        return (await library.connect(address)).jetstream(publish_async_max_pending=1000)

    stream = loop.run_until_complete(connect())

    async def publish(batch: Sequence[Ready]) -> None:
        acks = [
            await stream.publish_async(f"logs.{each.host[-1]}", each.line, headers={"Nats-Msg-Id": each.id})
            for each in batch
        ]
        for ack in acks:
            await ack

    return lambda batch: loop.run_until_complete(publish(batch))


def redis(address: str) -> Store:
    """redis-py with a transaction of XADD."""
    import redis as library

    client = library.Redis.from_url(address)

    def store(batch: Sequence[Ready]) -> None:
        pipeline = client.pipeline(transaction=True)
        for each in batch:
            pipeline.xadd("logs", {"id": each.id, "message": each.line})
        assert all(pipeline.execute())

    return store


def postgresql(address: str) -> Store:
    """psycopg with COPY into a temporary table, and from there what is not yet there."""
    import psycopg

    connection = psycopg.connect(address, autocommit=True)
    connection.execute("CREATE TEMPORARY TABLE new (id text, received bigint, host text, message text)")

    def store(batch: Sequence[Ready]) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            with cursor.copy("COPY new FROM STDIN") as copy:
                for each in batch:
                    copy.write_row((each.id, each.received, each.host, each.line.decode()))
            cursor.execute(
                "INSERT INTO webhooks (id, received, source, host, message)"
                " SELECT id, to_timestamp(received / 1e9), 'default', host, message::json FROM new"
                " ON CONFLICT DO NOTHING"
            )
            assert cursor.rowcount == len(batch)
            cursor.execute("TRUNCATE new")

    return store


def s3(address: str) -> Store:
    """obstore with an object a batch, packed by zstd, that is named by what it holds and must not be there yet."""
    import zstandard
    from obstore.store import S3Store

    bucket = S3Store(
        "logs",
        endpoint=address,
        region="us-east-1",
        access_key_id="k",
        secret_access_key="s",
        client_options={"allow_http": True},
    )
    pack = zstandard.ZstdCompressor().compress

    def store(batch: Sequence[Ready]) -> None:
        body = b"".join([each.line + b"\n" for each in batch])
        name = f"alone/{batch[0].id}-{sha256(body).hexdigest()}.ndjson.zst"
        bucket.put(name, pack(body), mode="create")

    return store


def treq(address: str, make: Callable[[Sequence[bytes]], bytes]) -> Store:
    """
    treq with one connection that stays. It runs beside the reactor.

    @param make: makes the body of lines, as the observer does.
    """
    from treq.client import HTTPClient
    from twisted.internet import reactor
    from twisted.internet.defer import Deferred
    from twisted.internet.threads import blockingCallFromThread
    from twisted.web.client import Agent, HTTPConnectionPool
    from twisted.web.http_headers import Headers

    client = HTTPClient(Agent(reactor, pool=HTTPConnectionPool(reactor)))
    headers = Headers({"Content-Type": ["application/json"]})

    async def post(body: bytes) -> None:
        answer = await client.post(address, data=body, headers=headers)
        content = await answer.content()
        assert answer.code < 300
        if content.startswith(b"{"):
            json.loads(content)

    def store(batch: Sequence[Ready]) -> None:
        body = make([each.line for each in batch])
        call = cast("Callable[..., None]", blockingCallFromThread)
        call(reactor, Deferred.fromCoroutine, post(body))

    return store


#: All of them but that of HTTP stores, by name.
CLIENTS: dict[str, Callable[[str], Store]] = {
    "kafka": kafka,
    "nats": nats,
    "redis": redis,
    "postgresql": postgresql,
    "s3": s3,
}
