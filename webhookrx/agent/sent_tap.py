"""
One tap of the console at this receiver: what it shows is brought to the console once a second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Raw
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from webhookrx.agent.link import ConsoleAnswer, LinkFailed
from webhookrx.management.agent_body import write_body
from webhookrx.management.tap_protocol import MOST_EVENTS, TapEvents

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap

EVERY: Final = 1.0
"""Seconds between two bodies, also when nothing matches."""

AWAY_TIME: Final = 10.0
"""Seconds after which a tap ends of which the console takes nothing."""

_LONGEST_WHY: Final = 2_000

#: Statuses with which a console takes nothing now, and maybe soon.
_NOT_NOW: Final = frozenset({408, 429, 500, 502, 503, 504})

Post: TypeAlias = Callable[[bytes], Awaitable[ConsoleAnswer]]
"""Brings a body of the tap; fails with L{LinkFailed}."""


class SentTap:
    """
    Brings what a tap shows, until it ends. At most one body is under way: what comes meanwhile waits in the tap, whose
    room is bounded.

    @param reactor: for pauses alone.
    @param problem: returns why the tap may not go on; empty while it may.
    @param stop_tap: ends the tap itself.
    @param monotonic: the clock of the tap. That of a reactor is the wall clock.
    @ivar why: why it has ended; empty while it goes on.
    """

    def __init__(
        self,
        reactor: Any,
        tap: Tap,
        post: Post,
        problem: Callable[[], str],
        stop_tap: Callable[[Tap], object],
        monotonic: Callable[[], float],
    ) -> None:
        self.why = ""
        self._reactor = reactor
        self._tap = tap
        self._post = post
        self._problem = problem
        self._stop_tap = stop_tap
        self._number = 0
        self._body = b""
        self._says_end = False
        self._hurries = False
        self._call: IDelayedCall | None = None
        self._seconds = monotonic
        self._taken_at = monotonic()

    async def run(self) -> None:
        """Bring what it shows until it has ended, and the console knows that or can't be told. It may be cancelled."""
        next_at = self._seconds()
        try:
            is_last = False
            while not is_last:
                now = self._seconds()
                next_at = max(next_at + EVERY, now)
                await self._pause(0.0 if self._hurries else next_at - now)
                self.end(self._why_now())
                is_last = await self._bring()
        finally:
            self.end("It was ended.")

    def end(self, why: str) -> None:
        """Look at nothing any more, and tell the console why with the next body; nothing happens without a reason."""
        if why and not self.why:
            self.why = why[:_LONGEST_WHY]
            self._stop_tap(self._tap)

    def hurry(self) -> None:
        """Bring what is left at once, or after the body that is under way; what is not taken is not brought again."""
        self._hurries = True
        if self._call is not None and self._call.active():
            self._call.reset(0)

    async def _pause(self, seconds: float) -> None:
        over: Deferred[None] = Deferred(lambda _: call.cancel())
        self._call = call = self._reactor.callLater(seconds, over.callback, None)
        await over

    def _why_now(self) -> str:
        if self._seconds() >= self._tap.until:
            return "Its time is over."
        return self._problem()

    async def _bring(self) -> bool:
        """Bring a body, and return whether it was the last one."""
        if not self._body:
            self._body = self._next()
        try:
            status = (await self._post(self._body)).status
        except LinkFailed:
            status = 0
        now = self._seconds()
        if status == 204:
            self._body, self._taken_at = b"", now
            return self._says_end
        if status == 0 or status in _NOT_NOW:
            # The same is brought again: whether the console has it is not known.
            if not self._hurries and now - self._taken_at < AWAY_TIME:
                return False
            self.end(f"The console has taken nothing of it for {AWAY_TIME:.0f} seconds.")
        self.end("The console has ended it." if status == 404 else f"The console refuses it with status {status}.")
        return True

    def _next(self) -> bytes:
        """Return the next body."""
        self._number += 1
        counts = self._tap.total
        rows = self._tap.take(MOST_EVENTS)
        self._says_end = bool(self.why)
        return write_body(
            TapEvents(
                number=self._number,
                seen=counts.seen,
                matched=counts.matched,
                shown=counts.shown,
                not_looked_at=counts.not_looked_at,
                dropped=counts.dropped,
                events=tuple(map(Raw, rows)),
                ended=self.why,
            )
        )
