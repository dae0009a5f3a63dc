"""
The end of the service: take nothing new, finish what is under way, make it safe, and all that in time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from webhookrx.pipeline.chain import Chain
from webhookrx.service.listeners import Listeners

_log = Logger()

#: Seconds that the observers have for what is with them, once somebody is in a hurry.
LAST_WORDS = 0.3

#: Seconds for which connections on which nothing is under way stay, for one more request that is answered as the last.
#: Senders who are at work have then been told; to close under their hands would fail what they send just now.
LAST_REQUESTS = 0.5

#: The part of the time that is kept for the observers, when senders take all they may.
_FOR_OBSERVERS = 0.25

#: Turns of the reactor that bring a request from the kernel, or an answer to it, through TLS too.
_TURNS = 4


class Drain:
    """
    Ends what the listeners and the chain are doing. Its time is on the monotonic clock, looked at by L{tick}.

    @param seconds: for all of it together.
    @param turn: waits for the next turn of the reactor.
    @param clock: seconds on the monotonic clock.
    @param ports_closed: called once no port takes connections any more.
    """

    def __init__(
        self,
        listeners: Listeners,
        chain: Chain,
        seconds: float,
        turn: Callable[[], Awaitable[object]],
        clock: Callable[[], float],
        ports_closed: Callable[[], None] = lambda: None,
    ) -> None:
        self._listeners = listeners
        self._chain = chain
        self._turn = turn
        self._clock = clock
        self._ports_closed = ports_closed
        self._end = clock() + seconds
        self._senders_end = self._end - seconds * _FOR_OBSERVERS
        self._idle_end = min(clock() + LAST_REQUESTS, self._senders_end)
        self._awaited: Deferred[Any] | None = None
        self._idle: Deferred[None] = Deferred()
        self._for_senders = True

    async def run(self) -> bool:
        """
        Do it.

        @return: whether each request that was begun has its answer, and each message is with its observers; what has
            not is cut off.
        """
        listeners, chain = self._listeners, self._chain
        listeners.finish()
        await self._in_time(listeners.close())
        self._ports_closed()
        if listeners.connections.total:
            await self._idle
            # What has come by then is read, however busy the machine was.
            await self._turns()
        answered = await self._in_time(listeners.drain())
        if not answered:
            _log.warn("Cutting off senders that have not finished")
        self._for_senders = False
        # What senders have sent in full is stored all the same.
        stored = await self._in_time([chain.stop()])
        if not stored:
            _log.critical(
                "An observer hangs: {messages} messages were not made safe, and their senders not answered with 200",
                messages=chain.budget.messages,
            )
            # Those who wait are told; a connection that is reset tells nothing.
            chain.give_up()
        if not (answered and stored):
            await self._turns()
            answered = answered or not listeners.requests
        listeners.abort()
        return answered and stored

    def tick(self) -> None:
        """Give up what is waited for when its time is up."""
        if not self._idle.called and (self._clock() >= self._idle_end or not self._listeners.connections.total):
            self._idle.callback(None)
        if self._awaited is not None and self._clock() >= (self._senders_end if self._for_senders else self._end):
            self._awaited.cancel()

    def hurry(self) -> None:
        """Wait for no sender any more, and for the observers a moment only."""
        now = self._clock()
        self._idle_end = self._senders_end = min(self._senders_end, now)
        self._end = min(self._end, now + LAST_WORDS)
        self.tick()

    async def _turns(self) -> None:
        for _ in range(_TURNS):
            await self._turn()

    async def _in_time(self, results: Iterable[Deferred[Any]]) -> bool:
        in_time = True
        for self._awaited in results:
            self.tick()
            try:
                await self._awaited
            except CancelledError:
                in_time = False
        self._awaited = None
        return in_time
