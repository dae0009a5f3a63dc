"""
A spool that has been large gives its room back while senders post.

It is filled before the receiver starts, as a long absence leaves it. Then the HTTP server behind it is back, the spool
is drained, and what it took of the file system is given back; all the while senders post at a fixed rate. The long run
bounds how long any of them waits for its 200: on the disk as it is, and on one that is slow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.system.receiver import NotReached, wait_until
from tests.system.torture.crowd import Crowd, percentile
from tests.system.torture.other_end import OtherEnd
from tests.system.torture.proof import Effort, Figures, Skipped
from tests.system.torture.strace import slowing_prefix
from tests.system.torture.subject import Subject
from webhookrx.filesystem import DiskSpace
from webhookrx.message.encoders import encode_stored
from webhookrx.message.message import Message
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.quota import Quota

#: Requests a second, so few on a slow disk that nothing waits now and then.
RATE, SLOW_RATE = 200, 20

#: Seconds that the slowest 200 may take.
SLOWEST = 0.25

#: What the slow disk is: some 50 MB/s, and 10 ms for a sync.
_SLOW = ("pwrite64:delay_enter=50", "fdatasync:delay_enter=10000")

#: What a spool may keep when nothing waits, and its log beside it.
_KEPT = 26 * 1024**2

_SIZE = 10_000
_TOGETHER = 500


def giving_back(effort: Effort) -> Figures:
    """Prove it on both disks."""
    figures = Figures()
    _give_back("the disk as it is", (), RATE, effort, figures)
    with suppress(Skipped):
        _give_back("a slow disk", slowing_prefix(*_SLOW), SLOW_RATE, effort, figures)
    return figures


def _give_back(disk: str, prefix: Sequence[str], rate: int, effort: Effort, figures: Figures) -> None:
    other_end = OtherEnd()
    url = f"http://127.0.0.1:{other_end.port}/in"
    with Subject("--observer", f"spool:spool:observer=http:{url}", prefix=prefix) as subject:
        waited = _fill(subject.path("spool"), effort.pick(60, 400) * 1024**2 // _SIZE)
        before = _taken(subject)
        subject.start()
        crowd = Crowd(subject.port, rate=rate, seed=effort.seed).start()
        time.sleep(1)
        other_end.open()
        began = time.monotonic()
        _wait(lambda: len(other_end.order) >= len(waited))
        drained = time.monotonic() - began
        _wait(lambda: _taken(subject) <= _KEPT)
        took = time.monotonic() - began
        time.sleep(1)
        crowd.stop()
        _wait(lambda: crowd.acknowledged.keys() <= set(other_end.order))
        after = _taken(subject)
        subject.stop()
    other_end.close()
    arrived = set(other_end.order)
    figures.tell(f"{disk}: MiB on it before", before / 1024**2)
    figures.at_most(f"{disk}: MiB on it after", after / 1024**2, _KEPT / 1024**2)
    figures.tell(f"{disk}: acknowledged", len(crowd.acknowledged))
    figures.at_most(f"{disk}: failed requests", sum(crowd.refused.values()) + len(crowd.unanswered), 0)
    figures.none(f"{disk}: missing", [token for token in [*waited, *crowd.acknowledged] if token not in arrived])
    figures.tell(f"{disk}: drained after (s)", drained)
    figures.tell(f"{disk}: room given back after (s)", took)
    figures.tell(f"{disk}: half acknowledged within (s)", percentile(crowd.times, 0.5))
    figures.tell(f"{disk}: 99 % acknowledged within (s)", percentile(crowd.times, 0.99))
    if effort.long:
        figures.at_most(f"{disk}: slowest acknowledgement", max(crowd.times), SLOWEST, "s")
    else:
        figures.tell(f"{disk}: slowest acknowledgement (s)", max(crowd.times))


def _wait(condition: Callable[[], bool]) -> None:
    """Wait for what a figure tells about if it does not come."""
    with suppress(NotReached):
        wait_until(condition, "it is so", 120)


def _fill(path: str, count: int) -> list[str]:
    """Let so many messages wait in a spool, and return their tokens."""
    tokens = [f"~0.0.{number}~" for number in range(count)]
    queue = SpoolQueue(SpoolDirectory(path), Quota(1 << 40), DiskSpace(path, 0))
    queue.open()
    try:
        for first in range(0, count, _TOGETHER):
            queue.append(
                [
                    encode_stored(Message({"MESSAGE": token.ljust(_SIZE, "x")}, time.time_ns()))
                    for token in tokens[first : first + _TOGETHER]
                ]
            )
    finally:
        queue.close()
    return tokens


def _taken(subject: Subject) -> int:
    """Return what the files of the spool have in bytes."""
    return sum(file.stat().st_size for file in os.scandir(subject.path("spool")))
