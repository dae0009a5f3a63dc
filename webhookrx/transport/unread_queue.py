"""
Connections with something unread, in the order in which it came: taken from either end. No clock, no socket.
"""

from __future__ import annotations

from bisect import insort

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
