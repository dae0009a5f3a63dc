"""
Even shares of new connections: a page of counters that all workers map, and how many connections each may accept.

All workers wake up for a new connection, and the first to ask gets it. One that is awake would take most of them, so
each leaves to the others what is more than its share. It does so for a bounded time only, whatever the page says:
L{PATIENCE}.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence

#: Bytes of the row of a worker: pages of its own, so that no two workers write to one cache line.
ROW = 16 * 1024
#: Rows of a page: the most workers that there can be.
ROWS = 256

# A row holds unsigned integers of 32 bits: first how often its worker has ticked, then two for each endpoint: how many
# connections it has there, plus one, with 0 while it accepts none; and how many it has ever accepted there.
_WIDTH = ROW // 4
_LARGEST = 0xFFFFFFFF

#: Endpoints that are counted; at further ones the first worker to ask gets a connection.
ENDPOINTS = _WIDTH // 2 - 1

#: Looks at connections that still wait until a worker accepts them though they are the share of others. It looks again
#: after a millisecond or two: a control group that has used up its processor time pauses for up to a tenth of a second.
PATIENCE = 100
#: Connections of all workers that end between two ticks, from which on connections are short. How many each has open
#: says little then of its work: one with many idle connections would do nothing, and one that is awake does it at less
#: cost than two.
TURNOVER = 256
#: How many connections more than before a worker may have, beside others, while connections are short.
SLACK = 8
#: Connections at most that are accepted for want of patience, once it has been in vain often.
_MOST_TAKEN = 16


class CounterPage:
    """
    The page as the parent has it: it makes the page, and clears the rows of workers that have ended.

    @ivar descriptor: a file in memory, to be mapped by the workers.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("webhookrx-connections", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, ROW * ROWS)
        # To access a map of a file that has become shorter is the end of the process (mmap(2), SIGBUS).
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)

    def clear(self, worker: int) -> None:
        """Clear the row of a worker that has ended, so that nobody waits for it."""
        os.pwrite(self.descriptor, bytes(ROW), worker * ROW)

    def close(self) -> None:
        os.close(self.descriptor)


class WorkerRow:
    """
    The page as a worker has it: it writes its own row, and reads the others.

    @param descriptor: that of a L{CounterPage}; it is not needed afterwards.
    @param number: the number of this worker, from 0.
    @param size: how many workers there are.
    @raise OSError: there is no memory for the map.
    """

    def __init__(self, descriptor: int, number: int, size: int) -> None:
        self._page = memoryview(mmap.mmap(descriptor, size * ROW)).cast("I")
        self.number = number
        self.ticks = self.column(0)
        self._is_alone = size == 1

    def column(self, place: int) -> memoryview:
        """Return the integers at one place of all rows, by the numbers of the workers."""
        return self._page[place::_WIDTH]

    def tick(self) -> None:
        """Show that this worker turns; called about twice a second."""
        self.ticks[self.number] = (self.ticks[self.number] + 1) & _LARGEST

    def share(self, endpoint: int) -> Share | None:
        """
        Return the share of this worker in the connections of an endpoint; None: it accepts whatever comes, since there
        is no other worker, or no room in the page.

        @param endpoint: a number that it has in all workers, and no other endpoint has.
        """
        return None if self._is_alone or endpoint >= ENDPOINTS else Share(self, endpoint)


class Share:
    """
    The share of a worker in the connections of one endpoint.

    A worker that does not accept what it should is passed over: it counts again once it has accepted something, or has
    ticked. So one that is stopped does not count.

    @ivar open: how many connections this worker has there.
    """

    def __init__(self, row: WorkerRow, endpoint: int) -> None:
        self.open = 0
        self._number = row.number
        self._ticks = row.ticks
        self._counts = row.column(1 + 2 * endpoint)
        self._accepted = row.column(2 + 2 * endpoint)
        self._passed_over: dict[int, tuple[int, int]] = {}  # what they had accepted, and their ticks
        self._joined = False
        self._ended: int | None = None  # connections of all workers, at the last tick
        self._slack = 0  # how many connections fewer than it has this worker counts for itself
        self._looks = 0
        self._in_vain = 0  # how often patience has run out of late
        self._taken = 0  # what may be accepted now, whoever has fewer

    def join(self) -> None:
        """This worker accepts connections from now on."""
        self._joined = True
        self._publish()

    def leave(self) -> None:
        """
        This worker accepts none for now, so nobody should wait for it. It writes nothing more until it joins again: the
        place may be that of another endpoint then.
        """
        self._joined = False
        self._counts[self._number] = 0

    def began(self) -> None:
        """A connection was accepted."""
        self.open += 1
        self._accepted[self._number] = (self._accepted[self._number] + 1) & _LARGEST
        self._publish()

    def ended(self) -> None:
        """A connection has ended."""
        self.open -= 1
        self._publish()

    def _publish(self) -> None:
        if self._joined:
            self._counts[self._number] = self.open + 1

    def others(self) -> list[int]:
        """
        Return how many connections each other worker has that accepts some.

        Ask before you count what waits: a connection that another one accepts in between is missing then. Counted
        twice it would raise the share of all.
        """
        number, passed_over = self._number, self._passed_over
        for other in list(passed_over):
            if passed_over[other] != (self._accepted[other], self._ticks[other]):
                del passed_over[other]
        return [
            count - 1
            for other, count in enumerate(self._counts.tolist())
            if count and other != number and other not in passed_over
        ]

    def room(self, others: Sequence[int], waiting: int) -> int:
        """
        Return how many connections this worker may accept now, those included that come meanwhile; 0: it leaves them to
        others.

        @param others: see L{others}.
        @param waiting: connections that wait.
        """
        room = fair_room(self.open - self._slack, others, waiting)
        if room or not waiting:
            self._looks = 0
        taken, self._taken = self._taken, 0
        return max(room, taken) if waiting else 0

    def look(self, others: Sequence[int], waiting: int, looks: int = 1) -> bool:
        """
        Look at connections that this worker has left to others, and return whether to watch for connections again.

        Patience runs out after L{PATIENCE} looks, and sooner each time: then the others are too busy to take all that
        comes, however few connections they have.

        @param others: see L{others}.
        @param looks: for how many looks this one counts.
        """
        if not waiting or fair_room(self.open - self._slack, others, waiting):
            self._looks = 0
            return True
        self._looks += looks
        if self._looks < PATIENCE >> self._in_vain:
            return False
        self._looks = 0
        self._taken = min(1 << self._in_vain, _MOST_TAKEN)
        self._in_vain = min(self._in_vain + 1, PATIENCE.bit_length())
        for other, count in enumerate(self._counts.tolist()):
            if 0 < count <= self.open:
                self._passed_over[other] = self._accepted[other], self._ticks[other]
        return True

    def tick(self) -> None:
        """
        Recover some patience, mend what the page says of this worker, and see whether connections are short; called
        about twice a second.
        """
        self._in_vain = max(0, self._in_vain - 1)
        self._publish()
        ended = sum(self._accepted) - sum(self._counts)
        self._slack = 0
        if self._ended is not None and ended - self._ended >= TURNOVER:
            self._slack = SLACK + max(0, self.open - min(self.others(), default=self.open))
        self._ended = ended


def fair_room(mine: int, others: Sequence[int], waiting: int) -> int:
    """
    Return how many connections a worker may accept: as many as it lacks when all that wait are shared out evenly, or
    one if no other worker has fewer. It is 0 when none waits.

    @param mine: connections that it has.
    @param others: connections that the other workers have.
    """
    if not waiting:
        return 0
    fair = (mine + sum(others) + waiting) // (1 + len(others))
    return fair - mine if fair > mine else int(mine <= min(others, default=mine))
