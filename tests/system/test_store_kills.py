"""
Real stores that are killed, frozen and cut off while messages come, see L{tests.system.kill_case}.
"""

from __future__ import annotations

from tests.system.kill_case import KillCase
from tests.system.store_places import (
    ClickhousePlace,
    KafkaPlace,
    NatsPlace,
    PostgresqlPlace,
    RedisPlace,
    S3Place,
    SplunkPlace,
)


class KillTests(KillCase):
    """Nothing that got a 200 is missing."""

    def test_redis(self) -> None:
        """Redis, which knows ids."""
        self.holds(RedisPlace, spool=False)

    def test_redis_spool(self) -> None:
        """Redis behind a spool."""
        self.holds(RedisPlace, spool=True)

    def test_nats(self) -> None:
        """NATS, which knows ids."""
        self.holds(NatsPlace, spool=False)

    def test_nats_spool(self) -> None:
        """NATS behind a spool."""
        self.holds(NatsPlace, spool=True)

    def test_postgresql(self) -> None:
        """PostgreSQL, whose primary key is the id."""
        self.holds(PostgresqlPlace, spool=False)

    def test_postgresql_spool(self) -> None:
        """PostgreSQL behind a spool."""
        self.holds(PostgresqlPlace, spool=True)

    def test_kafka(self) -> None:
        """Kafka, where a message may come twice."""
        self.holds(KafkaPlace, spool=False)

    def test_kafka_spool(self) -> None:
        """Kafka behind a spool."""
        self.holds(KafkaPlace, spool=True)

    def test_clickhouse(self) -> None:
        """ClickHouse, behind a spool."""
        self.holds(ClickhousePlace, spool=True)

    def test_splunk(self) -> None:
        """A collector of which only the acknowledgement of the indexer counts, behind a spool."""
        self.holds(SplunkPlace, spool=True)

    def test_s3(self) -> None:
        """S3 behind a spool, without which it does not work."""
        self.holds(S3Place, spool=True)
