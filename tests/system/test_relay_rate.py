"""
How fast a relay moves what waits in a broker, and how much memory that takes.

C{WEBHOOKRX_LONG=1} moves 200,000 messages.
"""

from __future__ import annotations

import random
import time
from typing import Any

from tests import LONG
from tests.system.receiver import wait_until
from tests.system.relays import RelayCase, relay_metric
from tests.system.servers.process import ServerCase
from tests.system.store_places import KafkaPlace, NatsPlace, Place, RedisPlace
from webhookrx.config.observers import parse_observer
from webhookrx.observers import registry
from webhookrx.testing import make_message

MESSAGES = 200_000 if LONG else 5_000

_BATCH = 500
#: MiB; what Python, the client of a broker and one batch take.
_MOST_MEMORY = 160


class RateTests(RelayCase, ServerCase):
    """A broker with many messages of 400 bytes, and one relay that writes them to a file."""

    def test_kafka(self) -> None:
        """Kafka."""
        place = KafkaPlace(self, random.Random(1))
        self.moves(place, f"kafka:kafka://{place.brokers}/logs")

    def test_nats(self) -> None:
        """NATS JetStream."""
        place = NatsPlace(self, random.Random(1))
        self.moves(place, f"nats:nats://127.0.0.1:{place.proxy.port}/LOGS")

    def test_redis(self) -> None:
        """Redis."""
        place = RedisPlace(self, random.Random(1))
        self.moves(place, f"redis:redis://127.0.0.1:{place.proxy.port}/0/logs")

    def moves(self, place: Place, source: str) -> None:
        """Fill the broker, start a relay, print figures; all is there once, in bounded memory."""
        observer: Any = registry.build(parse_observer(place.spec, registry.find_spec), "durable")
        observer.open()
        filler = "x" * 250
        for first in range(0, MESSAGES, _BATCH):
            numbers = range(first, min(first + _BATCH, MESSAGES))
            values = [{"RCPTID": f"id-{number:09}", "HOST": f"h{number % 50}"} for number in numbers]
            batch = [observer.prepare(make_message(f"{each['RCPTID']} {filler}", dict(each))) for each in values]
            self.assertIn(observer.store(batch), (None, [None] * len(batch)))
        observer.close()
        relay = self.relay("--from", source, "--group", "g", "--to", "file:messages.jsonl", "--dead", "file:dead.jsonl")
        wait_until(lambda: relay_metric(relay, "relay_stored_messages_total") > 0, "the first batch is stored")
        began, cpu = time.monotonic(), relay.processor_time()
        count = relay_metric(relay, "relay_stored_messages_total")
        wait_until(lambda: relay_metric(relay, "relay_stored_messages_total") >= MESSAGES, "all is stored", 600)
        took, cpu = time.monotonic() - began, relay.processor_time() - cpu
        moved = MESSAGES - count
        peak = relay.peak() / 1024
        self.assertEqual(0, relay.stop())
        print(
            f"{place.name}: {moved / took:,.0f} messages/s, {cpu / max(moved, 1) * 1e6:.0f} µs of processor time each, "
            f"at most {peak:.0f} MiB"
        )
        self.assertEqual(MESSAGES, len(relay.lines()) - 1)
        self.assertLess(peak, _MOST_MEMORY)
