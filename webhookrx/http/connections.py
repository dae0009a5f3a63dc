"""
How many connections there may be, and from whom; and who goes when there would be too many.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from webhookrx.settings import Limits

if TYPE_CHECKING:
    from webhookrx.http.protocol import HTTPProtocol

_MOST_GO = 2
"""Connections that go for one that comes: two, so that a limit that was lowered is reached."""


class Connections:
    """
    Open connections on all endpoints together, and by sender.

    When all are taken, one that comes takes the place of the oldest that has not sent its first head, TLS handshakes
    included; if there is none, of the one that has been idle the longest. Connections with a request under way stay.

    Who is next is known without a look at all of them: both queues are in order, and a connection that is found busy
    at the front leaves its queue, to come back at the end of the other when it is idle.

    A place is found in a time that does not depend on how many there are, but for the first look at who is busy.

    @param limits: C{connections} and C{connections_per_peer} of it.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._total = 0
        self._by_sender: Counter[str] = Counter()
        self._first_heads: OrderedDict[HTTPProtocol, None] = OrderedDict()
        self._idle: OrderedDict[HTTPProtocol, None] = OrderedDict()

    @property
    def total(self) -> int:
        """How many are open."""
        return self._total

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._limits.connections

    def use(self, limits: Limits) -> None:
        """Go by these limits from now on. Connections that are open stay, also where they are too many now."""
        self._limits = limits

    def add(self, connection: HTTPProtocol) -> bool:
        """
        Count a connection that has come. Others may go for it.

        @return: False, and nothing counted, when it is one too many and none of the others can go.
        """
        gone = 0
        while self._total >= self._limits.connections and gone < _MOST_GO:
            other = _next(self._first_heads, _in_first_head) or _next(self._idle, _is_idle)
            if other is None:
                break
            other.give_way()
            gone += 1
        if self._total >= self._limits.connections and not gone:
            return False
        self._total += 1
        self._first_heads[connection] = None
        return True

    def add_sender(self, sender: str) -> bool:
        """
        Count a connection of that sender; False, and nothing counted, when it is one too many.

        @param sender: see L{webhookrx.intake.client_address.sender_of}.
        """
        if self._by_sender[sender] >= self._limits.connections_per_peer:
            return False
        self._by_sender[sender] += 1
        return True

    def remove(self, connection: HTTPProtocol) -> None:
        """Forget a connection that was counted by L{add}."""
        self._total -= 1
        self._first_heads.pop(connection, None)
        self._idle.pop(connection, None)

    def remove_sender(self, sender: str) -> None:
        """Forget a connection that was counted by L{add_sender}."""
        self._by_sender[sender] -= 1
        if not self._by_sender[sender]:
            del self._by_sender[sender]

    def idles(self, connection: HTTPProtocol) -> None:
        """A connection has its answer and waits for its next request."""
        idle = self._idle
        idle[connection] = None
        idle.move_to_end(connection)


def _next(queue: OrderedDict[HTTPProtocol, None], may_go: Callable[[HTTPProtocol], bool]) -> HTTPProtocol | None:
    """Take the first of a queue that may go, and let those leave it that are before."""
    while queue:
        connection, _ = queue.popitem(last=False)
        if may_go(connection):
            return connection
    return None


def _in_first_head(connection: HTTPProtocol) -> bool:
    return connection.in_first_head


def _is_idle(connection: HTTPProtocol) -> bool:
    return not connection.busy
