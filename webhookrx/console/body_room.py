"""
The room for bodies that are being read at one of a console's ports.
"""

from __future__ import annotations

from webhookrx.operations.admin_resource import NoMessages


class BodyRoom(NoMessages):
    """
    Counts the bytes of bodies that are being read, whoever sends them.

    @param most: bytes of all of them.
    @param for_small: of those, what only small ones may take, so that few that are large and slow do not stop all
        others.
    """

    def __init__(self, most: int, for_small: int) -> None:
        self._most = most
        self._most_beside_large = most - for_small
        self._bytes = 0

    def has_room(self, size: int, *, small: bool) -> bool:
        """See L{webhookrx.interfaces.IMessageConsumer.has_room}."""
        return self._bytes + size <= (self._most if small else self._most_beside_large)

    def reserve(self, size: int, *, small: bool) -> bool:
        """See L{webhookrx.interfaces.IMessageConsumer.reserve}."""
        if not self.has_room(size, small=small):
            return False
        self._bytes += size
        return True

    def release(self, size: int) -> None:
        """See L{webhookrx.interfaces.IMessageConsumer.release}."""
        self._bytes -= size
