"""
Bodies as clients have them: one that is sent is written at once, one that is received has a bound.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IConsumer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.iweb import IBodyProducer
from zope.interface import implementer


@implementer(IBodyProducer)
class WholeBody:
    """
    Writes a body at once. C{twisted.web} looks at an answer only after the end of the request, and a body that waits
    for the transport is not finished when a server answers 413 in the middle of it.
    """

    def __init__(self, content: bytes) -> None:
        self.length = len(content)
        self._content = content

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """Write it."""
        consumer.write(self._content)
        return succeed(None)

    def pauseProducing(self) -> None:
        """Do nothing: all is written."""

    def resumeProducing(self) -> None:
        """Do nothing: all is written."""

    def stopProducing(self) -> None:
        """Do nothing: all is written."""


class BoundedBody(Protocol):
    """
    Gathers the body of an answer, and closes the connection over one that is too large.

    @param most: bytes that it may have.
    @param too_large: what L{whole} fails with when there are more.
    @param incomplete: what it fails with when the connection ends before the body.
    @param at_once: L{whole} fails as soon as there are more, for who aborts the connection then; else once that has
        ended, since a pool may take it in until then.
    @ivar whole: fires with all of it. Cancelled, it closes the connection.
    """

    def __init__(self, most: int, too_large: Exception, incomplete: Exception, *, at_once: bool = True) -> None:
        self.whole: Deferred[bytes] = Deferred(lambda _: self._close())
        self._parts: list[bytes] = []
        self._room = most
        self._too_large = too_large
        self._incomplete = incomplete
        self._at_once = at_once

    def dataReceived(self, data: bytes) -> None:
        """Take a part."""
        self._room -= len(data)
        if self._room >= 0:
            self._parts.append(data)
        elif not self.whole.called:
            self._parts.clear()
            self._close()
            if self._at_once:
                self.whole.errback(self._too_large)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Take the end."""
        if self.whole.called:
            return
        if self._room < 0:
            self.whole.errback(self._too_large)
        elif reason.check(ResponseDone):
            self.whole.callback(b"".join(self._parts))
        else:
            self.whole.errback(self._incomplete)

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.loseConnection()
