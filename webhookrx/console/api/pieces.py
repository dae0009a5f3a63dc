"""
Long answers in pieces: each is made once the caller has taken the one before, so that no more than one is in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.console.api.route import PieceStream

_WHERE_IT_STOPPED: Final = "A long answer was cut off: {kind}"


@implementer(IPushProducer)
class ServedPieces:
    """
    One long answer. Where it can't go on the connection is cut, so that the caller does not take a part for the whole.

    @param still_may: returns whether the caller may read on.
    @param over: called with this once it has ended.
    """

    _log = Logger()

    def __init__(
        self, request: Any, still_may: Callable[[], Awaitable[bool]], over: Callable[[ServedPieces], None]
    ) -> None:
        self._request = request
        self._still_may = still_may
        self._over = over
        self._is_over = False
        self._is_paused = False
        self._taken: Deferred[None] | None = None

    def begin(self, stream: PieceStream) -> None:
        """Write the head, and one piece after the other."""
        request = self._request
        request.setResponseCode(200)
        request.setHeader(b"Content-Type", stream.content_type.encode())
        request.notifyFinish().addErrback(lambda failure: self._ended())
        request.registerProducer(self, True)
        Deferred.fromCoroutine(self._write_all(stream)).addErrback(self._failed)

    async def _write_all(self, stream: PieceStream) -> None:
        while not self._is_over:
            piece = await stream.next_piece()
            if self._is_over:
                return
            if not piece:
                self._request.unregisterProducer()
                self._request.finish()
                self._ended()
                return
            self._request.write(piece)
            if self._is_paused:
                self._taken = Deferred()
                await self._taken
            if not await self._still_may():
                self.end("rights")

    def _failed(self, failure: Any) -> None:
        # Only the class: its message may hold what the store has.
        self._log.error(_WHERE_IT_STOPPED, kind=failure.type.__name__)
        self.end("failed")

    def end(self, reason: str) -> None:
        """Cut it off."""
        if not self._is_over:
            self._ended()
            self._request.loseConnection()

    def _ended(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._over(self)
            self.resumeProducing()

    # -- the connection ------------------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """See L{IPushProducer.pauseProducing}."""
        self._is_paused = True

    def resumeProducing(self) -> None:
        """See L{IPushProducer.resumeProducing}."""
        self._is_paused = False
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.callback(None)

    def stopProducing(self) -> None:
        """See L{twisted.internet.interfaces.IProducer.stopProducing}: the caller is gone."""
        self._ended()
