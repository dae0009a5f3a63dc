"""
The two bodies of an exchange as C{twisted.web} wants them: the one that goes out, and the one that comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed
from twisted.internet.protocol import Protocol, connectionDone
from twisted.web.iweb import IBodyProducer
from zope.interface import implementer

if TYPE_CHECKING:
    from twisted.internet.interfaces import IConsumer
    from twisted.python.failure import Failure

KEPT = 4096
"""Bytes of an answer's body that are looked at."""
READ = 65536
"""Bytes of an answer's body after which its connection is closed: a new one costs less than the rest."""


@implementer(IBodyProducer)
class WholeBody:
    """
    Writes a body at once. One that waits for the transport is not finished when a server answers 413 in the middle
    of it, and C{twisted.web} looks at an answer only after the end of the request.
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


class AnswerBody(Protocol):
    """
    Reads the body of an answer: keeps its beginning, and reads on so that the connection can be used again, but not
    for ever.

    @ivar kept: its beginning.
    @ivar done: fires at its end, however that came. The status has said all that counts.
    """

    def __init__(self) -> None:
        self.kept = bytearray()
        self.done: Deferred[None] = Deferred(self._close)
        self._read = 0

    def dataReceived(self, data: bytes) -> None:
        """Take a piece."""
        self._read += len(data)
        self.kept += data[: KEPT - len(self.kept)]
        if self._read > READ:
            self._close()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Take note of the end."""
        if not self.done.called:
            self.done.callback(None)

    def _close(self, done: Deferred[None] | None = None) -> None:
        assert self.transport is not None
        self.transport.loseConnection()
