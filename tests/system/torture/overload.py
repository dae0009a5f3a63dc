"""
Three times what it can take.

First it is measured how much the receiver acknowledges when senders post as fast as they are answered, of several
numbers of senders the best. Then three times as many requests a second are begun, whatever the answers. At least nine
tenths of the capacity must still get a 200, 99 % of those within a second; the rest is refused with 503 and
C{Retry-After}; memory stays within what the queue may hold; and when it is over, everybody is served at once. Once
the disk is what holds it up: C{strace} makes every sync slow. Once the processor is: C{strace} makes every piece of a
request that is read slow, so that a sender on the same machine can offer three times as much at all.

With a slow disk the senders are four thousand connections, so that it is the receiver that must keep them short. With a
slow processor they are four hundred: a request that nobody has read yet is answered by nobody, so it is the number of
connections that says how long requests wait. A request that is due while all of them wait for answers is not sent.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass

from tests.system.torture.crowd import Crowd, percentile
from tests.system.torture.proof import Effort, Figures, Skipped
from tests.system.torture.strace import slowing_prefix
from tests.system.torture.subject import OUTPUT, Output, Subject

#: What the queue may hold.
_QUEUE = 32 * 1024
#: KiB beside the queue: connections and their requests, and what the interpreter does not give back.
_BESIDE = 32 * 1024

#: Microseconds that a call takes longer, as C{strace} takes it.
_SLOW_DISK = "fsync,fdatasync:delay_exit=200000"
_SLOW_PROCESSOR = "recvfrom:delay_enter=300"

#: Bytes of bodies: what keeps a disk busy, and what keeps a processor busy.
_LARGE = (15_000, 25_000)
_SMALL = (100, 300)

#: How many senders may be the most that it can bear.
_CLIENTS = (200, 400, 800)

_LIMITS = ("body=1MiB", f"queue={_QUEUE}KiB", "connections_per_peer=5000")
_OPTIONS = ("--observer", f"file:{OUTPUT}", *(part for limit in _LIMITS for part in ("--limit", limit)))


def overload_disk(effort: Effort) -> Figures:
    """The disk is what holds it up."""
    return _overload(effort, _SLOW_DISK, _LARGE, effort.pick(1000, 4000))


def overload_processor(effort: Effort) -> Figures:
    """The processor is."""
    return _overload(effort, _SLOW_PROCESSOR, _SMALL, 400)


@dataclass
class Measured:
    """
    What was seen.

    @ivar capacity: 200s a second before; C{good}, under overload.
    @ivar grown: KiB that memory has grown by meanwhile.
    @ivar recovery: seconds from the end of the load to the first 200 for somebody new.
    """

    capacity: float
    good: float
    grown: int
    recovery: float


def _overload(effort: Effort, slowness: str, sizes: tuple[int, int], connections: int) -> Figures:
    seconds = effort.pick(2, 60)
    _allow_files(connections + 1000)
    with Subject(*_OPTIONS, prefix=slowing_prefix(slowness)) as subject:
        subject.start()
        trials = effort.pick((200,), _CLIENTS)
        capacity = max(_capacity(subject, clients, sizes, effort.pick(1, 5)) for clients in trials)
        subject.forget_peak()
        before = subject.resident()
        crowd = Crowd(subject.port, connections, rate=3 * capacity, sizes=sizes, seed=effort.seed, retry_refused=False)
        began = time.monotonic()
        crowd.start()
        time.sleep(seconds)
        crowd.stop()
        # What came after the end of the load does not count.
        good = sum(1 for at in crowd.acknowledged.values() if at <= began + seconds) / seconds
        grown = subject.peak() - before
        recovery, refused_afterwards = _afterwards(subject)
        subject.stop()
        output = Output(subject.path(OUTPUT))
        output.read()
    figures = Figures()
    figures.tell("sent a second", len(crowd.sent) / seconds)
    figures.tell("due a second", (len(crowd.sent) + crowd.skipped) / seconds)
    _judge(figures, crowd, set(output.order), Measured(capacity, good, grown, recovery), effort)
    if effort.long:
        figures.at_most("refused afterwards", refused_afterwards, 0)
    return figures


def _judge(figures: Figures, crowd: Crowd, stored: set[str], measured: Measured, effort: Effort) -> None:
    impolite = [each for each in crowd.refusals if not each.is_polite]
    figures.tell("capacity, 200s a second", measured.capacity)
    figures.tell("refused", sum(crowd.refused.values()))
    figures.none("acknowledged and missing", [token for token in crowd.acknowledged if token not in stored])
    figures.none("refused otherwise than by 503 with Retry-After", impolite)
    figures.at_most("memory grown by", measured.grown / 1024, (_QUEUE + _BESIDE) / 1024, "MiB")
    p99 = percentile(crowd.times, 0.99)
    if effort.long:
        figures.at_least("200s, part of capacity", measured.good / measured.capacity, 0.9)
        figures.at_most("99 % of 200s within", p99, 1.0, "s")
        figures.at_most("without an answer", len(crowd.unanswered), 0)
        figures.at_most("first 200 afterwards", measured.recovery, 2.0, "s")
    else:
        # On a machine that is busy with other things, speed is no proof of anything.
        figures.tell("200s, part of capacity", measured.good / measured.capacity)
        figures.tell("99 % of 200s within, seconds", p99)


def _afterwards(subject: Subject) -> tuple[float, int]:
    """Return how long somebody new waits for a 200, and how many are refused in half a second."""
    crowd = Crowd(subject.port, 16)
    at = time.monotonic()
    crowd.start()
    took = next(iter(crowd.acknowledged.values()), at + 60) - at
    time.sleep(0.5)
    crowd.stop()
    return took, sum(crowd.refused.values())


def _allow_files(count: int) -> None:
    """
    Let this process and its children open so many files.

    @raise Skipped: they may not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise Skipped(f"it needs {count} open files, and {hard} are allowed")
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def _capacity(subject: Subject, clients: int, sizes: tuple[int, int], seconds: float) -> float:
    """Return how many it acknowledges a second to so many senders that post as fast as they are answered."""
    crowd = Crowd(subject.port, clients, sizes=sizes).start()
    began = time.monotonic()
    time.sleep(seconds)
    ended = time.monotonic()
    crowd.stop()
    return sum(1 for at in crowd.acknowledged.values() if began <= at <= ended) / (ended - began)
