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
        self._senders: dict[HTTPProtocol, str | None] = {}  # of all that are counted
        self._by_sender: Counter[str] = Counter()
        self._first_heads: OrderedDict[HTTPProtocol, None] = OrderedDict()
        self._idle: OrderedDict[HTTPProtocol, None] = OrderedDict()

    @property
    def total(self) -> int:
        """Number of open connections."""
        return len(self._senders)

    @property
    def most(self) -> int:
        """Limit of open connections."""
        return self._limits.connections

    def use(self, limits: Limits) -> None:
        """Set the limits. Open connections stay, even above them."""
        self._limits = limits

    def add(self, connection: HTTPProtocol, sender: str | None) -> bool:
        """
        Count a new connection. Others may make way for it, unless its sender has too many.

        @param sender: see L{webhookrx.intake.client_address.sender_of}; None if it is not known, or not counted.
        @return: False, and nothing counted, at a limit, if no other one can make way.
        """
        if not self._has_room_for(sender):
            return False
        gone = 0
        while self.total >= self._limits.connections and gone < _MOST_GO:
            other = _next(self._first_heads, _in_first_head) or _next(self._idle, _is_idle)
            if other is None:
                break
            other.give_way()
            gone += 1
        if self.total >= self._limits.connections and not gone:
            return False
        self._first_heads[connection] = None
        self._count(connection, sender)
        return True

    def identify(self, connection: HTTPProtocol, sender: str) -> bool:
        """Count a connection by its sender, known only now; False, and the connection not counted, at its limit."""
        if not self._has_room_for(sender):
            self.remove(connection)
            return False
        self._count(connection, sender)
        return True

    def remove(self, connection: HTTPProtocol) -> None:
        """Count a connection no more."""
        sender = self._senders.pop(connection, None)
        if sender is not None:
            self._by_sender[sender] -= 1
            if not self._by_sender[sender]:
                del self._by_sender[sender]
        self._first_heads.pop(connection, None)
        self._idle.pop(connection, None)

    def _has_room_for(self, sender: str | None) -> bool:
        return sender is None or self._by_sender[sender] < self._limits.connections_per_peer

    def _count(self, connection: HTTPProtocol, sender: str | None) -> None:
        self._senders[connection] = sender
        if sender is not None:
            self._by_sender[sender] += 1

    def became_idle(self, connection: HTTPProtocol) -> None:
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
