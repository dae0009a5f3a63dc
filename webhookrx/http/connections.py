"""
Counts of connections, in all and by sender, and which connection makes way when there are too many.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from webhookrx.settings import Limits

if TYPE_CHECKING:
    from webhookrx.http.protocol import HTTPProtocol

_MOST_GO = 2
"""Connections that make way for a new one: two, so that a lowered limit is reached."""


class Connections:
    """
    Open connections on all endpoints together, and by sender.

    At the limit, a new connection takes the place of the oldest one that has not sent its first head, TLS handshakes
    included; without such, of the one that has been idle the longest. Connections with a request under way stay.

    Both queues are in order, so that the next is found in constant time: a busy connection at the front leaves its
    queue, and joins the end of the other one when it is idle.

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
        """Number of open connections."""
        return self._total

    @property
    def most(self) -> int:
        """Limit of open connections."""
        return self._limits.connections

    def use(self, limits: Limits) -> None:
        """Set the limits. Open connections stay, even above them."""
        self._limits = limits

    def add(self, connection: HTTPProtocol) -> bool:
        """
        Count a new connection. Others may make way for it.

        @return: False, and nothing counted, at the limit, if no other one can make way.
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
        Count a connection of that sender; False, and nothing counted, at its limit.

        @param sender: see L{webhookrx.intake.client_address.sender_of}.
        """
        if self._by_sender[sender] >= self._limits.connections_per_peer:
            return False
        self._by_sender[sender] += 1
        return True

    def remove(self, connection: HTTPProtocol) -> None:
        """Undo L{add}."""
        self._total -= 1
        self._first_heads.pop(connection, None)
        self._idle.pop(connection, None)

    def remove_sender(self, sender: str) -> None:
        """Undo L{add_sender}."""
        self._by_sender[sender] -= 1
        if not self._by_sender[sender]:
            del self._by_sender[sender]

    def idles(self, connection: HTTPProtocol) -> None:
        """Queue a connection that has its answer and waits for its next request."""
        idle = self._idle
        idle[connection] = None
        idle.move_to_end(connection)


def _next(queue: OrderedDict[HTTPProtocol, None], may_go: Callable[[HTTPProtocol], bool]) -> HTTPProtocol | None:
    """Take the first connection that may go off the queue, with all before it."""
    while queue:
        connection, _ = queue.popitem(last=False)
        if may_go(connection):
            return connection
    return None


def _in_first_head(connection: HTTPProtocol) -> bool:
    return connection.in_first_head


def _is_idle(connection: HTTPProtocol) -> bool:
    return not connection.busy
