"""
The whole chain on one machine: senders, three receivers with spools, a broker, three relays of one group and what they
store in. Any of them is killed with C{kill -9} at random; the broker that keeps all in memory is frozen and cut off.
What got a 200 is there in the end.

C{WEBHOOKRX_LONG=1} goes on for five minutes.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tests import LONG
from tests.system.kill_case import count_late
from tests.system.numbered_senders import NumberedSenders
from tests.system.receiver import Receiver, wait_until
from tests.system.relays import RelayCase, RelayProcess, page, relay_metric
from tests.system.servers.process import ServerCase, free_port
from tests.system.store_places import Copy, KafkaPlace, NatsPlace, Place, PostgresqlPlace, copy_of

SECONDS = 300.0 if LONG else 8.0

#: Each receiver has hosts of its own.
HOSTS = 20
#: Seconds between two messages of a host: the mock gives few at a time, and forgets all but 5 MiB of a partition.
PACE = 0.1
#: More than will be sent.
ENDLESS = 100_000_000

#: After which NATS gives what a dead relay held to another one.
_ACK_WAIT = "5s"
#: Seconds without anything new after which no more is awaited: a broker may wait half a minute for what a dead relay
#: held. How long all of it takes depends on how much has piled up.
_QUIET = 120.0


class Files:
    """Files of lines, one of each relay, read while they grow."""

    def __init__(self, relays: Iterable[Receiver]) -> None:
        self.copies: list[Copy] = []
        self._read = {relay.path("messages.jsonl"): 0 for relay in relays}

    def look(self) -> list[Copy]:
        """Return all copies so far."""
        for path, begin in self._read.items():
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                file.seek(begin)
                data, _, rest = file.read().rpartition(b"\n")
                self._read[path] = file.tell() - len(rest)
                self.copies += [copy_of(line) for line in data.split(b"\n") if is_whole(line)]
        return self.copies


def is_whole(line: bytes) -> bool:
    """Tell whether a line is JSON: one that was being written when a relay was killed may not be."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


class ChainTests(RelayCase, ServerCase):
    """Nothing that got a 200 is missing at the end of the chain, whatever was killed."""

    def setUp(self) -> None:
        self.seed = random.randrange(1 << 32)
        self.chance = random.Random(self.seed)

    def test_nats_to_files(self) -> None:
        """By NATS with a file store, to a file of each relay: what comes twice has the same id."""
        place = NatsPlace(self, self.chance)
        source = f"nats:nats://127.0.0.1:{place.proxy.port}/LOGS:ack_wait={_ACK_WAIT}"
        self.chain(place, source, ["file:messages.jsonl"] * 3, [], Files)

    def test_nats_to_postgresql(self) -> None:
        """By NATS to PostgreSQL, which is killed, too: what comes twice is there once."""
        place, store = NatsPlace(self, self.chance), PostgresqlPlace(self, self.chance)
        source = f"nats:nats://127.0.0.1:{place.proxy.port}/LOGS:ack_wait={_ACK_WAIT}"
        copies = self.chain(place, source, [store.spec] * 3, [store], lambda _: Table(store))
        self.assertEqual(len(copies), len({copy.id for copy in copies}))

    def test_kafka_to_postgresql(self) -> None:
        """By a Kafka that freezes and loses answers, to PostgreSQL: each once, and each host in its order."""
        place, store = KafkaPlace(self, self.chance), PostgresqlPlace(self, self.chance)
        source = f"kafka:kafka://{place.brokers}/logs"
        copies = self.chain(place, source, [store.spec] * 3, [store], lambda _: Table(store), PACE)
        self.assertEqual(len(copies), len({copy.id for copy in copies}))
        self.assertEqual(0, count_late(copies), f"seed {self.seed}")

    def chain(
        self,
        broker: Place,
        source: str,
        targets: list[str],
        stores: list[Place],
        reader: Callable[[list[Receiver]], Any],
        pace: float = 0.0,
    ) -> list[Copy]:
        """Send while parts of the chain fail, print figures, compare, and return all copies at its end."""
        receivers = [
            self.start(
                "--admin",
                "unix:admin.sock",
                "--observer",
                f"spool:spool:observer={broker.spec}",
                port=f"tcp:{free_port()}:interface=127.0.0.1",
            )
            for _ in range(3)
        ]
        relays: list[Receiver] = [
            self.relay("--from", source, "--group", "chain", "--to", target, "--dead", "file:dead.jsonl")
            for target in targets
        ]
        end = reader(relays)
        senders = [
            NumberedSenders(receiver.port, ENDLESS, HOSTS, first=1 + HOSTS * number, pace=pace).start()
            for number, receiver in enumerate(receivers)
        ]
        began = time.monotonic()
        kills = self.torment([*receivers, *relays], [broker, *stores], began + SECONDS)
        sent = [each.stop() for each in senders]
        took = time.monotonic() - began
        acknowledged = set().union(*(each.acknowledged for each in sent))

        def missing() -> set[str]:
            return acknowledged - {copy.text for copy in end.look()}

        self.assertEqual(0, wait_for_last(lambda: sum(waiting(each) for each in receivers)), "the spools are empty")
        wait_for_last(lambda: len(missing()))
        lost = missing()
        wait_until(lambda: all(page(each, "/readyz").startswith("HTTP/1.1 200") for each in relays), "all are ready")
        for each in relays:
            self.assertEqual(0, relay_metric(each, "relay_dead_messages_total"))
            self.assertEqual(0, each.stop())
        copies: list[Copy] = end.look()
        by_id = Counter(copy.id for copy in copies)
        print(
            f"{self.id().rpartition('.')[2]}: {took:.0f} s, {kills}: {len(acknowledged)} acknowledged "
            f"({len(acknowledged) / took:.0f}/s); missing {len(lost)}; twice by id {sum(by_id.values()) - len(by_id)}; "
            f"sent again by senders {len(by_id) - len({copy.text for copy in copies})} (seed {self.seed})"
        )
        self.assertEqual(set(), lost, f"seed {self.seed}")
        self.assertGreater(len(acknowledged), 100)
        for process in (*receivers, *relays):
            self.assertNotIn("Traceback", process.log())
        return copies

    def torment(self, processes: list[Receiver], places: list[Place], end: float) -> str:
        """Let something fail, again and again until a time; return how often what did."""
        kills: Counter[str] = Counter()
        while time.monotonic() < end:
            time.sleep(self.chance.uniform(0.2, 1.5))
            victim = self.chance.choice([*processes, *places])
            if isinstance(victim, Place):
                kills[victim.name] += 1
                victim.hinder(kills[victim.name])
                continue
            kills["relays" if isinstance(victim, RelayProcess) else "receivers"] += 1
            victim.kill()
            time.sleep(self.chance.uniform(0.0, 1.5))
            victim.start()
        return ", ".join(f"{count} × {name}" for name, count in sorted(kills.items()))


class Table:
    """A table of PostgreSQL that all relays write to."""

    def __init__(self, store: PostgresqlPlace) -> None:
        self._store = store

    def look(self) -> list[Copy]:
        """Return all copies so far."""
        return self._store.copies()


def waiting(receiver: Receiver) -> int:
    """Return how many messages wait in the spool of a receiver, which has refused none."""
    assert relay_metric(receiver, "spool_dead_messages") == 0
    return int(relay_metric(receiver, "spool_messages"))


def wait_for_last(count: Callable[[], int]) -> int:
    """Wait until nothing is left, as long as it becomes less now and then; return how many are left."""
    least = left = count()
    since = time.monotonic()
    while left and time.monotonic() - since < _QUIET:
        # Not again at once: it reads all there is.
        time.sleep(0.5)
        left = count()
        if left < least:
            least, since = left, time.monotonic()
    return left
