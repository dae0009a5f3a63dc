"""
Load shedding while more is sent than can be read, and unread requests queue up in the sockets.

First in, first out would make all senders wait as long as their patience lasts, and then all work would be for senders
that have left. So while the queue stands, the youngest are served first. In a small share of the time the oldest are
refused with 503, and those that have left are dropped.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Sequence
from typing import Protocol

from zope.interface import implementer

from webhookrx.wire_interfaces import IOverload, IStandingQueue

#: Connections that are served in one turn.
SERVED = 128
#: Seconds of processor time after which a turn ends though there are more.
TURN = 0.01
#: Seconds after which an unread request counts as old: it is refused, or dropped if its sender has ended.
OLD = 1.0
#: Connections that are served between two readings of the clock.
AT_ONCE = 16
#: Connections of senders that have ended that are handled in one turn; new ones must not wait for more.
DROPPED = 16
#: The part of the processor time that goes into refusing old requests.
REFUSING = 0.1
#: Seconds of processor time that are saved up before refusing: many at once are cheaper than one now and then.
GROUP = 0.001
#: One new connection is accepted for this many served requests, since it costs as much as several of them.
SERVED_PER_NEW = 32
#: New connections that are accepted after a turn with time to spare; with TLS each is a handshake.
NEW = 8


class UnreadConnections(Protocol):
    """
    Connections with something unread, by their descriptors.
    """

    def read(self, fds: Sequence[int]) -> None:
        """Let connections read."""

    def unread_for(self, fd: int) -> float | None:
        """Return the seconds for which a connection has had something unread; None if that is unknown."""

    def rest(self, fd: int) -> None:
        """Stop watching the input of a connection, which is in the queue."""

    def wake(self, fd: int) -> None:
        """Watch the input of a connection again, which has left the queue."""

    def has_ended(self, fd: int) -> bool:
        """Return whether its sender sends no more."""

    def drop(self, fd: int) -> None:
        """End a connection."""


@implementer(IOverload)
class Overload:
    """
    Decides whether the queue of unread requests stands, and serves it then.

    @param rule: decides by the age of the queue.
    @param dropped: called for each dropped connection.
    @param clock: seconds on the monotonic clock.
    @param processor_time: seconds that this thread has run.
    @ivar refusing: see L{IOverload.refusing}.
    @ivar age: seconds that the oldest request is unread; 0 when that is not worth a system call.
    @ivar behind: see L{IOverload.behind}.
    @ivar new: connections that may be accepted until the next turn.
    """

    def __init__(
        self,
        rule: IStandingQueue,
        dropped: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self.refusing = False
        self.behind = False
        self.age = 0.0
        self.new = 0
        self.queue = UnreadQueue()
        self._rule = rule
        self._dropped = dropped
        self._clock = clock
        self._processor_time = processor_time
        self._credit = 0.0  # processor time that may go into refusing
        self._pause_ends = 0.0  # no connection is dropped before
        self._looked = False  # since the last sweep

    @property
    def stands(self) -> bool:
        """Whether the queue stands."""
        return self._rule.stands

    def saw(self, age: float) -> bool:
        """Note how long the first of many has waited, and return whether the queue stands."""
        self._looked = True
        self.age = age
        return self._rule.observe(self._clock(), age, age)

    def has_unread(self, fd: int) -> bool:
        return fd in self.queue

    def sweep(self) -> None:
        """Note that nothing waits, if no turn has looked since the last call."""
        if not self._looked and not self.queue:
            self.saw(0.0)
        self._looked = False

    def turn(self, unread: UnreadConnections, ready: list[int], ended: Sequence[int] = ()) -> float:
        """
        Serve the youngest of the ready connections and of the queue, and refuse some of the oldest.

        @param ready: connections with something unread that are not in the queue, oldest first as far as known.
        @param ended: connections whose senders send no more, which come after all others.
        @return: seconds until the next turn, unless a request comes; 0: there is more to do now.
        """
        queue, processor_time = self.queue, self._processor_time
        now = self._clock()
        began = processor_time()
        served, dropped, spent, only_ended = 0, 0, 0.0, False
        while ready and served < SERVED and spent < TURN:
            some = ready[: -min(AT_ONCE, SERVED - served) - 1 : -1]
            del ready[-len(some) :]
            unread.read(some)
            served += len(some)
            spent = processor_time() - began
        for fd in (*ready, *ended):
            age = unread.unread_for(fd)
            if age is None:
                unread.read((fd,))
            else:
                queue.put(fd, now - age)
                unread.rest(fd)
        while queue and served < SERVED and spent < TURN:
            fd, came = queue.take_youngest()
            if not unread.has_ended(fd):
                served += 1
            elif served or dropped == DROPPED or now < self._pause_ends:
                # Served and new senders wait for the end of this turn.
                queue.put(fd, came)
                only_ended = True
                break
            else:
                dropped += 1
                if now - came > OLD:
                    self._drop(unread, fd)
                    continue
            unread.wake(fd)
            unread.read((fd,))
            spent = processor_time() - began
        is_full = served >= SERVED or spent >= TURN
        self.new = max(1, served // SERVED_PER_NEW) if is_full else NEW
        if served:
            self._credit += spent * REFUSING / (1 - REFUSING)
        if self._credit > GROUP:
            self._refuse(unread, now)
        oldest = queue.oldest()
        self.saw(0.0 if oldest is None else now - oldest)
        ends = self._clock()
        if dropped:
            # No sender waits for connections to be dropped: new requests have the processor meanwhile.
            self._pause_ends = ends + (ends - now) * (1 - REFUSING) / REFUSING
        return max(0.0, self._pause_ends - ends) if only_ended else 0.0

    def release(self, unread: UnreadConnections) -> None:
        """The queue stands no more: leave its connections to the usual turns."""
        for fd in self.queue.take_all():
            unread.wake(fd)

    def _refuse(self, unread: UnreadConnections, now: float) -> None:
        """Refuse the oldest while there is time for it."""
        queue = self.queue
        while self._credit > 0:
            oldest = queue.oldest()
            if oldest is None or now - oldest <= OLD:
                self._credit = 0.0
                return
            began = self._processor_time()
            fd = queue.take_oldest()
            if unread.has_ended(fd):
                self._drop(unread, fd)
            else:
                self.refusing = True
                try:
                    unread.wake(fd)
                    unread.read((fd,))
                finally:
                    self.refusing = False
            self._credit -= self._processor_time() - began

    def _drop(self, unread: UnreadConnections, fd: int) -> None:
        unread.drop(fd)
        self._dropped()


#: Stale entries that are left in place before the queue is rebuilt.
_MOST_STALE = 4096


class UnreadQueue:
    """
    The descriptors of connections with something unread, each at most once, in the order in which it came. Times are
    seconds on the monotonic clock.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[float, int]] = []
        self._came: dict[int, float] = {}  # without stale entries

    def __len__(self) -> int:
        return len(self._came)

    def __contains__(self, fd: int) -> bool:
        return fd in self._came

    def put(self, fd: int, came: float) -> None:
        """Add a connection that is not in the queue."""
        entries = self._entries
        if not entries or entries[-1][0] <= came:
            entries.append((came, fd))
        else:
            insort(entries, (came, fd))
        self._came[fd] = came

    def forget(self, fd: int) -> None:
        """Remove a connection, if it is in the queue."""
        if self._came.pop(fd, None) is not None and len(self._entries) > 2 * len(self._came) + _MOST_STALE:
            self._entries = sorted((came, fd) for fd, came in self._came.items())

    def oldest(self) -> float | None:
        """Return when the oldest came; None if the queue is empty."""
        entries, came = self._entries, self._came
        stale = 0
        while stale < len(entries) and came.get(entries[stale][1]) != entries[stale][0]:
            stale += 1
        del entries[:stale]
        return entries[0][0] if entries else None

    def take_oldest(self) -> int:
        """
        Remove and return the oldest connection.

        @raise IndexError: the queue is empty.
        """
        self.oldest()
        return self._taken(self._entries.pop(0)[1])

    def take_youngest(self) -> tuple[int, float]:
        """
        Remove and return the youngest connection, and when it came.

        @raise IndexError: the queue is empty.
        """
        entries, came = self._entries, self._came
        while came.get(entries[-1][1]) != entries[-1][0]:
            entries.pop()
        at, fd = entries.pop()
        return self._taken(fd), at

    def take_all(self) -> list[int]:
        fds = list(self._came)
        self._came.clear()
        self._entries.clear()
        return fds

    def _taken(self, fd: int) -> int:
        del self._came[fd]
        return fd
