"""
A store that fails while messages come, real or played: what got a 200 is there in the end, in order.

C{WEBHOOKRX_LONG=1} sends 200,000 messages, while the store is away five times.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from itertools import pairwise

from tests import LONG
from tests.system.numbered_senders import NumberedSenders, Sent, host_of
from tests.system.receiver import PATIENCE, Connection, Receiver, ReceiverCase, wait_until
from tests.system.servers.process import ServerCase
from tests.system.store_places import Copy, Place

MESSAGES = 200_000 if LONG else 6_000
TIMES = 5 if LONG else 2

#: Seconds that all messages may take.
_LONG_TIME = 10 * PATIENCE


class KillCase(ReceiverCase, ServerCase):
    """Nothing that got a 200 is missing from a store that failed meanwhile, and came back each time."""

    def holds(self, kind: type[Place], *, spool: bool) -> None:
        """Send while the store fails, print figures, and compare what it holds."""
        seed = random.randrange(1 << 32)
        place = kind(self, random.Random(seed))
        observer = f"spool:spool:observer={place.spec}" if spool else place.spec
        receiver = self.start("--admin", "unix:admin.sock", "--observer", observer)
        began = time.monotonic()
        sent = self._send(receiver, place, spool=spool)
        took = time.monotonic() - began
        self.assertEqual(0, receiver.stop())
        copies = list(place.copies())
        missing = sent.acknowledged - {copy.text for copy in copies}
        twice = sum(count - 1 for count in Counter(copy.id for copy in copies).values())
        resent = len({copy.id for copy in copies}) - len({copy.text for copy in copies})
        late = count_late(copies)
        print(
            f"{place.name}{' behind a spool' if spool else ''}, {TIMES} times away: "
            f"{len(sent.acknowledged)} acknowledged in {took:.0f} s; missing {len(missing)}; twice by id {twice}; "
            f"refused with 503 though stored {resent}; out of order {late} (seed {seed})"
        )
        self.assertEqual(MESSAGES, len(sent.acknowledged))
        self.assertEqual(set(), missing, f"seed {seed}")
        if place.is_ordered:
            self.assertEqual(0, late, f"seed {seed}")
        if place.once:
            self.assertEqual(0, twice, f"seed {seed}")

    def _send(self, receiver: Receiver, place: Place, *, spool: bool) -> Sent:
        """Send all, hinder the store by and by, and wait until the store should have all."""
        senders = NumberedSenders(receiver.port, MESSAGES).start()

        def has_stored(count: int) -> bool:
            waiting = metric(receiver, "spool_messages") if spool else 0
            return senders.acknowledged - waiting >= count

        for number in range(TIMES):
            count = MESSAGES * (number + 1) // (TIMES + 2)
            wait_until(lambda count=count: has_stored(count), f"{count} are stored", _LONG_TIME)
            place.hinder(number)
        sent = senders.wait(_LONG_TIME)
        if spool:
            wait_until(lambda: has_stored(MESSAGES), "the spool is empty", _LONG_TIME)
            self.assertEqual(0, metric(receiver, "spool_dead_messages"))
        return sent


def count_late(copies: list[Copy]) -> int:
    """Return how many messages came after a later one of their host; of several copies the first one counts."""
    by_host: dict[str, list[int]] = {}
    for text in dict.fromkeys(copy.text for copy in copies):
        host, number = host_of(text)
        by_host.setdefault(host, []).append(number)
    return sum(later < before for numbers in by_host.values() for before, later in pairwise(numbers))


def metric(receiver: Receiver, name: str) -> float:
    """Return a metric of its spool."""
    with Connection(receiver.path("admin.sock")) as connection:
        # Without chunks, and closed at the end.
        connection.send(b"GET /metrics HTTP/1.0\r\n\r\n")
        with connection.socket.makefile("rb") as file:
            page = file.read().decode()
    found = re.search(rf"^webhookrx_{name}{{.*}} (\S+)$", page, re.MULTILINE)
    assert found is not None, page
    return float(found[1])
