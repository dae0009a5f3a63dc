"""
The end of the service: take nothing new, finish what is under way, make it safe, all before a deadline.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from webhookrx.pipeline.chain import Chain
from webhookrx.service.listeners import Listeners

_log = Logger()

#: Seconds that the observers have for their last messages after L{Drain.stop_now}.
STOP_NOW_TIME = 0.3

#: Seconds that idle connections stay for one more request, whose answer closes them. Busy senders learn of the end by
#: then; to close at once would fail the requests that they are sending.
LAST_REQUESTS = 0.5

#: The part of the time that is kept for the observers, whatever senders take.
_FOR_OBSERVERS = 0.25

#: Turns of the reactor within which a request gets in from the kernel, or an answer out, also through TLS.
_TURNS = 4


class Drain:
    """
    Ends the work of the listeners and the chain. L{tick} checks its deadlines, which are on the monotonic clock.

    @param seconds: for all of it together.
    @param turn: waits for the next turn of the reactor.
    @param clock: seconds on the monotonic clock.
    @param ports_closed: called once no port accepts connections any more.
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
        End it.

        @return: whether all requests that have begun are answered, and all messages stored; what is left is cut off.
        """
        listeners, chain = self._listeners, self._chain
        listeners.finish()
        await self._in_time(listeners.close())
        self._ports_closed()
        if listeners.connections.total:
            await self._idle
            # Requests that have come by then are read, however busy the machine was.
            await self._turns()
        answered = await self._in_time(listeners.drain())
        if not answered:
            _log.warn("Cutting off senders that have not finished")
        self._for_senders = False
        # Complete requests are stored all the same.
        stored = await self._in_time([chain.stop()])
        if not stored:
            _log.critical(
                "An observer hangs: {messages} messages were not stored, and their senders got no 200",
                messages=chain.budget.messages,
            )
            # Waiting senders get 503, which says more than a reset.
            chain.give_up()
        if not (answered and stored):
            await self._turns()
            answered = answered or not listeners.requests
        listeners.abort()
        return answered and stored

    def tick(self) -> None:
        """Stop waiting when time is up."""
        if not self._idle.called and (self._clock() >= self._idle_end or not self._listeners.connections.total):
            self._idle.callback(None)
        if self._awaited is not None and self._clock() >= (self._senders_end if self._for_senders else self._end):
            self._awaited.cancel()

    def stop_now(self) -> None:
        """Wait for no sender any more, and for the observers L{STOP_NOW_TIME} at most."""
        now = self._clock()
        self._idle_end = self._senders_end = min(self._senders_end, now)
        self._end = min(self._end, now + STOP_NOW_TIME)
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
