"""
The two bodies of an exchange as C{twisted.web} wants them: the one that goes out, and the one that comes back; and what
treq gets to see of the rest of an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed
from twisted.internet.protocol import Protocol, connectionDone
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer
from zope.interface import implementer

if TYPE_CHECKING:
    from twisted.internet.interfaces import IConsumer
    from twisted.python.failure import Failure
    from twisted.web.iweb import IResponse

KEPT = 4096
"""Bytes of an answer's body that are looked at."""
READ = 65536
"""Bytes of an answer's body after which its connection is closed: a new one costs less than the rest."""


@implementer(IAgent)
class BareAnswers:
    """
    Leaves nothing of the fields of an answer but C{Retry-After}. With the rest, treq would unpack its body, of which
    2 KB can become 2 GB; fail over a field that is not UTF-8; and send cookies that a server has set.

    @param agent: makes the requests.
    """

    def __init__(self, agent: IAgent) -> None:
        self._agent = agent

    def request(
        self, method: bytes, uri: bytes, headers: Headers | None = None, bodyProducer: IBodyProducer | None = None
    ) -> Deferred[IResponse]:
        """Make a request, for an answer that is not packed."""
        fields = Headers() if headers is None else headers.copy()
        fields.setRawHeaders(b"Accept-Encoding", [b"identity"])
        return self._agent.request(method, uri, fields, bodyProducer).addCallback(_bare)


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
    Reads the body of an answer: keeps its beginning, and reads on to its end, but not for ever.

    @ivar kept: its beginning.
    @ivar done: fires once the body is whole, or L{READ} bytes of it have come; fails when it was cut off before.
    """

    def __init__(self) -> None:
        self.kept = bytearray()
        self.done: Deferred[None] = Deferred(lambda done: self.end())
        self._read = 0

    def dataReceived(self, data: bytes) -> None:
        """Take a piece."""
        self._read += len(data)
        self.kept += data[: KEPT - len(self.kept)]
        if self._read > READ and not self.done.called:
            self.end()
            self.done.callback(None)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """
        Take note of the end.

        @param reason: C{ResponseDone} is the end of a body with a length, or the last chunk; C{PotentialDataLoss} that
            of one without, on a L{webhookrx.observers.http_connection.Connection} that ended in order. Any other,
            C{ResponseFailed} in most cases, means that something is missing.
        """
        if self.done.called:
            return
        if reason.check(ResponseDone, PotentialDataLoss):
            self.done.callback(None)
        else:
            self.done.errback(reason)

    def end(self) -> None:
        """End the connection, which is aborted in the middle of an answer."""
        if self.transport is not None:
            self.transport.loseConnection()


def _bare(response: IResponse) -> IResponse:
    for name, _ in list(response.headers.getAllRawHeaders()):
        if name.lower() != b"retry-after":
            response.headers.removeHeader(name)
    return response
