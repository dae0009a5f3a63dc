"""
The observer behind the spool is away.

Senders post at a fixed rate while the HTTP server behind C{spool:DIR:observer=http:URL} comes and goes, and is then
away for ten minutes. No request may fail meanwhile. Once the server is back it must get all that was acknowledged,
and in order: a message that was acknowledged before another was sent comes first.
"""

from __future__ import annotations

import time
from contextlib import suppress

from tests.system.receiver import NotReached, wait_until
from tests.system.torture.crowd import Crowd
from tests.system.torture.other_end import OtherEnd
from tests.system.torture.proof import Effort, Figures
from tests.system.torture.subject import Subject

#: Requests a second.
RATE = 500


def away(effort: Effort) -> Figures:
    """Prove it."""
    other_end = OtherEnd()
    url = f"http://127.0.0.1:{other_end.port}/in"
    with Subject("--observer", f"spool:spool:observer=http:{url}") as subject:
        subject.start()
        other_end.open()
        crowd = Crowd(subject.port, rate=effort.pick(200, RATE), seed=effort.seed).start()
        for _ in range(effort.pick(2, 20)):
            time.sleep(0.3)
            other_end.close()
            time.sleep(0.1)
            other_end.open()
        time.sleep(1)
        other_end.close()
        before = len(other_end.order)
        time.sleep(effort.pick(2, 600))
        arrived_meanwhile = len(other_end.order) - before
        waiting = len(crowd.acknowledged) - len(set(other_end.order))
        other_end.open()
        back = time.monotonic()
        crowd.stop()
        with suppress(NotReached):
            wait_until(lambda: crowd.acknowledged.keys() <= set(other_end.order), "all is there", effort.pick(60, 300))
        took = time.monotonic() - back
        other_end.close()
        subject.stop()
    arrived = list(dict.fromkeys(other_end.order))
    known = set(arrived)
    figures = Figures()
    figures.tell("acknowledged", len(crowd.acknowledged))
    figures.tell("arrived while it was away", arrived_meanwhile)
    figures.tell("waiting when it was back", waiting)
    figures.tell("seconds until all had arrived", took)
    figures.at_most("failed requests", sum(crowd.refused.values()) + len(crowd.unanswered), 0)
    figures.none("acknowledged and missing", [token for token in crowd.acknowledged if token not in known])
    figures.none("out of order", out_of_order(arrived, crowd))
    figures.tell("arrived twice", len(other_end.order) - len(arrived))
    return figures


def out_of_order(arrived: list[str], crowd: Crowd) -> list[str]:
    """Return each that arrived before one that had been acknowledged before it was sent."""
    found = []
    earliest = float("inf")
    for token in reversed(arrived):
        if earliest < crowd.sent.get(token, 0.0):
            found.append(token)
        earliest = min(earliest, crowd.acknowledged.get(token, float("inf")))
    return found
