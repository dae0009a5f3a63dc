"""
Streams of server-sent events to one caller each, for as long as it reads and may.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.task import LoopingCall
from zope.interface import implementer

from webhookrx.console.api.route import EventStream

PING: Final = 15
"""Seconds between two comments that keep a stream from its deadline."""

LOOK: Final = 1.0
"""Seconds between two looks at whether the caller still may read."""


@implementer(IPushProducer)
class ServedStream:
    """
    One stream. What the caller does not take is not kept for it.

    @param still_may: returns whether the caller may read on.
    @param over: called with this once it has ended.
    """

    def __init__(
        self,
        request: Any,
        still_may: Callable[[], Awaitable[bool]],
        clock: Any,
        over: Callable[[ServedStream], None],
    ) -> None:
        self._request = request
        self._still_may = still_may
        self._over = over
        self._looks = LoopingCall(self._look)
        self._clock = self._looks.clock = clock
        self._looked = 0
        self._is_paused = False
        self._is_over = False
        self._stopped: Callable[[str], None] | None = None

    def begin(self, stream: EventStream) -> None:
        """Write the head, and let the stream begin."""
        request = self._request
        request.setResponseCode(200)
        request.setHeader(b"Content-Type", b"text/event-stream")
        request.setHeader(b"X-Accel-Buffering", b"no")
        request.notifyFinish().addErrback(lambda failure: self._ended("gone"))
        request.registerProducer(self, True)
        request.write(b": begin\n\n")
        if not self._is_over:
            self._stopped = stream.start(self._send, self.end)
        if self._is_over:
            self._tell("gone")
        else:
            self._looks.start(LOOK, now=False).addErrback(lambda failure: self.end("failed"))

    def _send(self, event: str, data: object) -> bool:
        if self._is_over or self._is_paused:
            return False
        # JSON has no line break outside of its texts, and none inside, so that data can't end the event.
        self._request.write(b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data)))
        return True

    def _look(self) -> Deferred[None]:
        self._looked += 1
        if self._looked % PING == 0 and not self._is_paused:
            self._request.write(b": ping\n\n")
        # A store that does not answer lets nobody read on.
        return Deferred.fromCoroutine(self._check()).addTimeout(LOOK, self._clock)

    async def _check(self) -> None:
        try:
            may = await self._still_may()
        except Exception:  # whatever it is: who can't be known any more reads no more
            may = False
        if not may:
            self.end("rights")

    def end(self, reason: str) -> None:
        """End it, and tell the caller why."""
        if self._is_over:
            return
        if not self._is_paused:
            self._send("end", {"reason": reason})
        self._ended(reason)
        self._request.unregisterProducer()
        self._request.finish()

    def _ended(self, reason: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._looks.running:
            self._looks.stop()
        self._over(self)
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        stopped, self._stopped = self._stopped, None
        if stopped is not None:
            stopped(reason)

    # -- the connection ------------------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """See L{IPushProducer.pauseProducing}."""
        self._is_paused = True

    def resumeProducing(self) -> None:
        """See L{IPushProducer.resumeProducing}."""
        self._is_paused = False

    def stopProducing(self) -> None:
        """See L{twisted.internet.interfaces.IProducer.stopProducing}: the caller is gone."""
        self._ended("gone")
