"""
What is done while more is sent than can be read: the queue of requests that nobody has read stands in the sockets.

Served in the order in which it came, such a queue makes everybody wait as long as its senders have patience, and then
all work is for those who have left. So while it stands the youngest are served first. Those at its old end are told to
come back later, in a small share of the time, and those of them that have left are dropped.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Sequence
from typing import Protocol

from zope.interface import implementer

from webhookrx.interfaces import IOverload, IStandingQueue

#: Connections that are served in one turn; as many are quick to serve together.
SERVED = 128
#: Seconds of processor time after which a turn ends though there are more.
TURN = 0.01
#: Seconds for which a sender may be silent before it counts as waiting for too long, or as gone if it has ended.
OLD = 1.0
#: Of these, so many between two looks at the clock.
AT_ONCE = 16
#: Connections whose senders have ended that are seen to in one turn; who has just come is not to wait for more.
DROPPED = 16
#: The part of the processor time in which those who wait for too long are refused.
REFUSING = 0.1
#: Seconds of processor time that are saved up for that first: many at once are cheaper than one now and then.
GROUP = 0.001
#: New connections that are let in for so many that are served: each costs as much as several requests.
SERVED_PER_NEW = 32
#: New connections that are let in for a turn that had time for more; by TLS each is a handshake.
NEW = 8


class Unread(Protocol):
    """
    Connections with something unread, by their descriptors.
    """

    def read(self, fds: Sequence[int]) -> None:
        """Have connections read."""

    def unread_for(self, fd: int) -> float | None:
        """Return the seconds for which a connection has something unread; None when that can't be known."""

    def rest(self, fd: int) -> None:
        """Take no notice of what is unread, as long as the connection is in the queue."""

    def wake(self, fd: int) -> None:
        """Take notice of it again: the connection is not in the queue any more."""

    def has_ended(self, fd: int) -> bool:
        """Tell whether its sender sends no more."""

    def drop(self, fd: int) -> None:
        """End a connection."""


@implementer(IOverload)
class Overload:
    """
    Knows whether the queue of what is unread stands, and what is in it then.

    @param rule: decides that.
    @param dropped: told of each connection that was dropped.
    @param clock: seconds on the monotonic clock.
    @param processor_time: seconds that this thread has run.
    @ivar refusing: see L{IOverload.refusing}.
    @ivar age: seconds that the oldest in the queue waits; 0 when that is not worth asking.
    @ivar behind: see L{IOverload.behind}.
    @ivar new: connections that may be let in until the next turn.
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
        self._pause_ends = 0.0  # in which nobody is dropped
        self._looked = False  # since the last sweep

    @property
    def stands(self) -> bool:
        """Whether the queue stands."""
        return self._rule.stands

    def saw(self, age: float) -> bool:
        """Take note of how long the first of many has waited; return whether the queue stands."""
        self._looked = True
        self.age = age
        return self._rule.observe(self._clock(), age, age)

    def has_unread(self, fd: int) -> bool:
        """See L{IOverload.has_unread}."""
        return fd in self.queue

    def sweep(self) -> None:
        """Take note that nobody waits, if nobody has been seen to since the last call."""
        if not self._looked and not self.queue:
            self.saw(0.0)
        self._looked = False

    def turn(self, unread: Unread, ready: list[int], ended: Sequence[int] = ()) -> float:
        """
        Serve the youngest of those that are ready and those in the queue, and refuse some of the oldest.

        @param ready: connections with something unread that are not in the queue, in about the order in which it came.
        @param ended: those whose senders send no more, which come after all others.
        @return: seconds until there needs to be another turn, unless somebody comes; 0: there is more to do now.
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
                # Who has been served waits for the end of this turn, and so may somebody who comes.
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
            # Nobody waits for those who have left to be dropped: what comes meanwhile has the processor.
            self._pause_ends = ends + (ends - now) * (1 - REFUSING) / REFUSING
        return max(0.0, self._pause_ends - ends) if only_ended else 0.0

    def release(self, unread: Unread) -> None:
        """The queue stands no more: leave those in it to the usual turns."""
        for fd in self.queue.take_all():
            unread.wake(fd)

    def _refuse(self, unread: Unread, now: float) -> None:
        """Refuse those that wait longest, as long as there is time for it."""
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

    def _drop(self, unread: Unread, fd: int) -> None:
        unread.drop(fd)
        self._dropped()


#: Entries of connections that are gone are left where they are until there are so many of them.
_MOST_STALE = 4096


class UnreadQueue:
    """
    The descriptors of connections, each at most once, by when what is unread came.

    Times are seconds on the monotonic clock.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[float, int]] = []
        self._came: dict[int, float] = {}  # of those that are in it

    def __len__(self) -> int:
        return len(self._came)

    def __contains__(self, fd: int) -> bool:
        return fd in self._came

    def put(self, fd: int, came: float) -> None:
        """Put in a connection that is not in it."""
        entries = self._entries
        if not entries or entries[-1][0] <= came:
            entries.append((came, fd))
        else:
            insort(entries, (came, fd))
        self._came[fd] = came

    def forget(self, fd: int) -> None:
        """Take out a connection, if it is in it."""
        if self._came.pop(fd, None) is not None and len(self._entries) > 2 * len(self._came) + _MOST_STALE:
            self._entries = sorted((came, fd) for fd, came in self._came.items())

    def oldest(self) -> float | None:
        """Return when the oldest came; None when there is none."""
        entries, came = self._entries, self._came
        stale = 0
        while stale < len(entries) and came.get(entries[stale][1]) != entries[stale][0]:
            stale += 1
        del entries[:stale]
        return entries[0][0] if entries else None

    def take_oldest(self) -> int:
        """
        Take out the connection that waits longest.

        @raise IndexError: there is none.
        """
        self.oldest()
        return self._taken(self._entries.pop(0)[1])

    def take_youngest(self) -> tuple[int, float]:
        """
        Take out the connection that waits shortest, and return when that came, too.

        @raise IndexError: there is none.
        """
        entries, came = self._entries, self._came
        while came.get(entries[-1][1]) != entries[-1][0]:
            entries.pop()
        at, fd = entries.pop()
        return self._taken(fd), at

    def take_all(self) -> list[int]:
        """Take out all."""
        fds = list(self._came)
        self._came.clear()
        self._entries.clear()
        return fds

    def _taken(self, fd: int) -> int:
        del self._came[fd]
        return fd
