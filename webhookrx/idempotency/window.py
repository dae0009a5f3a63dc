"""
The idempotency window of one process: claims of deliveries, and who waits for them.

Within a process a claim is an entry in a table. With workers it is also the lock of its key, which ends with the worker
that has it; requests that wait for another worker look for its end now and then. A key is remembered only when it is
settled as stored, so that a process that ends at the wrong moment leaves a delivery that may be stored twice, and none
that is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from math import ceil
from typing import Any, Final, NamedTuple

from zope.interface import implementer

from webhookrx.idempotency.key_ring import KeyRing
from webhookrx.interfaces import Claim, IDeliveryWindow, Told
from webhookrx.shared_memory import ByteLock, KeyLocks

FIRST_LOOK: Final = 0.005
"""Seconds until a request that waits for another worker looks for the first time; each further time is longer."""
LONGEST_LOOK: Final = 0.1
"""Seconds between two looks at most."""
_LOOKS: Final = 100
"""Keys that are looked at in one turn, at some microseconds each."""

MOST_UNWRITTEN: Final = 4096
"""Keys that wait for the lock of the ring: it is free within microseconds, unless a worker was stopped that has it."""


class _Waiting(NamedTuple):
    """A request that waits for the fate of another one of the same key."""

    told: Told
    window: float
    until: float


#: Those that wait for one key, in the order in which they came.
_Line = deque[_Waiting]


class SharedLocks(NamedTuple):
    """The locks by which workers share a window."""

    keys: KeyLocks
    ring: ByteLock


@implementer(IDeliveryWindow)
class DeliveryWindow:
    """
    @param ring: what all processes remember.
    @param clock: seconds on the monotonic clock, which all processes share.
    @param reactor: calls later.
    @param locks: for workers; None for a process alone.
    @ivar answer_time: seconds that a request waits for another one.
    @ivar forgotten: how many keys were not remembered although their deliveries were stored, since a worker was stopped
        at the ring: these would be stored again.
    """

    def __init__(
        self,
        ring: KeyRing,
        clock: Callable[[], float],
        reactor: Any,
        answer_time: float,
        locks: SharedLocks | None = None,
    ) -> None:
        self.answer_time = answer_time
        self.forgotten = 0
        self._ring = ring
        self._clock = clock
        self._epoch = ring.epoch
        self._reactor = reactor
        self._locks = locks
        self._claims: set[bytes] = set()
        self._lines: dict[bytes, _Line] = {}  # by claims of this process
        self._elsewhere: dict[bytes, _Line] = {}  # by claims of other workers
        self._unwritten: dict[bytes, None] = {}  # stored, and not in the ring yet
        self._pause = FIRST_LOOK
        self._will_look = False

    # -- claims --------------------------------------------------------------------------------------------------

    def claim(self, key: bytes, window: float, told: Told) -> Claim:
        """See L{IDeliveryWindow.claim}."""
        if key in self._claims:
            self._lines.setdefault(key, deque()).append(self._waiting(told, window))
            return Claim.UNDER_WAY
        claim = Claim.UNDER_WAY if key in self._elsewhere else self._try(key, window)
        if claim is Claim.UNDER_WAY:
            self._elsewhere.setdefault(key, deque()).append(self._waiting(told, window))
            self._pause = FIRST_LOOK
            self._look_later()
        return claim

    def _waiting(self, told: Told, window: float) -> _Waiting:
        return _Waiting(told, window, self._clock() + self.answer_time)

    def _try(self, key: bytes, window: float) -> Claim:
        """Claim a key that no request of this process has claimed."""
        locks = self._locks
        if locks is not None:
            if key in self._unwritten:
                return Claim.KNOWN
            if not locks.keys.acquire(key):
                return Claim.UNDER_WAY
        stored_at = self._ring.stored_at(key)
        if stored_at and self._clock() + self._epoch - stored_at < window:
            if locks is not None:
                locks.keys.release(key)
            return Claim.KNOWN
        self._claims.add(key)
        return Claim.NEW

    def settle(self, key: bytes, stored: bool) -> None:
        """See L{IDeliveryWindow.settle}."""
        line = self._lines.get(key)
        if not stored and line:
            # It stays claimed, by the next one.
            self._tell((line.popleft(),), Claim.NEW)
            if not line:
                del self._lines[key]
            return
        self._claims.remove(key)
        if line is not None:
            del self._lines[key]
        if stored:
            self._unwritten[key] = None
            self._write()
            self._tell(line or (), Claim.KNOWN)
        elif self._locks is not None:
            self._locks.keys.release(key)

    def _write(self) -> None:
        """Put stored keys into the ring, then free them; later if another worker is at it."""
        keys, locks = self._unwritten, self._locks
        now = ceil(self._clock() + self._epoch)
        if locks is None:
            self._ring.append(keys, now)
        else:
            if locks.ring.acquire():
                try:
                    self._ring.append(keys, now)
                finally:
                    locks.ring.release()
            elif len(keys) <= MOST_UNWRITTEN:
                self._look_later()
                return
            else:
                self.forgotten += len(keys)
            for key in keys:
                locks.keys.release(key)
        keys.clear()

    def _tell(self, line: Iterable[_Waiting], claim: Claim) -> None:
        """Tell those who wait, once this turn of the reactor is over: they may claim and settle themselves."""
        for waiting in line:
            self._reactor.callFromThread(waiting.told, claim)

    # -- looking -------------------------------------------------------------------------------------------------

    def _look_later(self) -> None:
        if not self._will_look:
            self._will_look = True
            self._reactor.callLater(self._pause, self._look_and_go_on)

    def _look_and_go_on(self) -> None:
        self._will_look = False
        self._look()
        self._pause = min(2 * self._pause, LONGEST_LOOK)
        if self._elsewhere or self._unwritten:
            self._look_later()

    def _look(self) -> None:
        if self._unwritten:
            self._write()
        for key in list(islice(self._elsewhere, _LOOKS)):
            line = self._elsewhere.pop(key)
            claim = self._try(key, line[0].window)
            if claim is Claim.UNDER_WAY:
                self._elsewhere[key] = line  # now the last one to be looked at
            elif claim is Claim.KNOWN:
                self._tell(line, Claim.KNOWN)
            else:
                self._tell((line.popleft(),), Claim.NEW)
                if line:
                    self._lines[key] = line

    def tick(self) -> None:
        """
        Look whatever the wall clock does, and give up for those that have waited for too long; called twice a second.
        """
        self._look()
        now = self._clock()
        for lines in (self._lines, self._elsewhere):
            # The first in a line has waited for longest.
            for key in [key for key, line in lines.items() if line[0].until <= now]:
                line = lines[key]
                while line and line[0].until <= now:
                    self._tell((line.popleft(),), Claim.GIVEN_UP)
                if not line:
                    del lines[key]
