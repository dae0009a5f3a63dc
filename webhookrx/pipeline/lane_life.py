"""
The states of a lane's observer, from before it is opened until it is closed.
"""

from __future__ import annotations

from enum import Enum


class LaneLife(Enum):
    """
    Where an observer has got to, and what its lane takes.

    Whether its C{store} hangs is no state of its own: it can in any of them that stores, and it changes nothing about
    what comes next. It only takes no messages until then.

    ================  =====================================  ====================================================
    state             its observer                           what comes next
    ================  =====================================  ====================================================
    CLOSED            is not open; there is no thread        begin: OPENING. stay: OPENING_AGAIN
    OPENING           is opened for the first time           OPEN, or CLOSED when it can't be. stop: LEAVING
    OPEN              stores; only here messages are taken   stop: LEAVING
    LEAVING           stores what waits, and is closed       CLOSED. stay: RETURNING
    RETURNING         the same                               OPENING_AGAIN. stop: LEAVING
    OPENING_AGAIN     is opened, as it was before            OPEN, or RETRY_OPEN when it can't be. stop: LEAVING.
                                                             reopen: RETURNING, since it may have opened too early
    RETRY_OPEN            could not be opened again              OPENING_AGAIN a while later. stop: CLOSED
    ================  =====================================  ====================================================

    At the start of the service an observer goes from CLOSED to OPEN and, when another one can't be opened, back, in
    the thread of the reactor. All else is done in the thread of the lane.

    LEAVING and RETURNING begin while the observer is opened, too: it is closed once it is open. They go on to the end
    that they have when it can't be opened: CLOSED and RETRY_OPEN.
    """

    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"
    LEAVING = "leaving"
    RETURNING = "returning"
    OPENING_AGAIN = "opening again"
    RETRY_OPEN = "retry open"

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing has to end before the next state."""
        return self in _AT_REST


_AT_REST = frozenset((LaneLife.CLOSED, LaneLife.OPEN, LaneLife.RETRY_OPEN))
