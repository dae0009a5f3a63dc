"""
Both ends of a TLS connection in memory: our server's as Twisted runs it, and a client of the standard library.

The client is another build of OpenSSL than the server's, so this is a test of interoperation as well.
"""

from __future__ import annotations

import ssl

from twisted.internet.interfaces import IHandshakeListener, IOpenSSLServerConnectionCreator
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.protocols.policies import ProtocolWrapper
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from zope.interface import implementer

TLS12 = ssl.TLSVersion.TLSv1_2
TLS13 = ssl.TLSVersion.TLSv1_3

QUESTION = b"hello?"
ANSWER = b"hello!"


@implementer(IHandshakeListener)
class Answerer(Protocol):
    """
    Answers the question, and remembers what the connection went through.
    """

    def __init__(self) -> None:
        self.handshakes = 0
        self.received = b""
        self.lost: Failure | None = None

    def handshakeCompleted(self) -> None:
        self.handshakes += 1

    def dataReceived(self, data: bytes) -> None:
        self.received += data
        self.transport.write(ANSWER)

    def connectionLost(self, reason: Failure) -> None:
        self.lost = reason


class ClosingTransport(StringTransport):
    """
    Tells the protocol that the connection is gone as soon as it asks for that, once its last bytes were taken.
    """

    protocol: Protocol | None = None

    def abortConnection(self) -> None:
        self.loseConnection()


class ServerEnd:
    """
    The server's end of one connection.

    @ivar answerer: the protocol above TLS.
    """

    def __init__(self, factory: Factory, clock: Clock) -> None:
        """
        @param factory: makes an L{Answerer} below any number of wrappers.
        @param clock: what TLS uses to gather writes.
        """
        self._clock = clock
        self._transport = ClosingTransport()
        self.protocol = factory.buildProtocol(None)
        self.protocol.makeConnection(self._transport)
        innermost = self.protocol
        while isinstance(innermost, ProtocolWrapper):
            innermost = innermost.wrappedProtocol
        self.answerer: Answerer = innermost

    def exchange(self, data: bytes) -> bytes:
        """Take what the client sent, and return what the server sends."""
        if data and self.answerer.lost is None:
            self.protocol.dataReceived(data)
        self._clock.advance(0)
        answer = self._transport.value()
        self._transport.clear()
        if self._transport.disconnecting and self.answerer.lost is None:
            self.protocol.connectionLost(Failure(ConnectionAbortedError()))
        return answer


class ClientEnd:
    """
    The client's end, as far as it can go.

    @ivar error: what OpenSSL said when it could go no further.
    @ivar received: what the server answered.
    """

    def __init__(self, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost", session=session)
        self.error: ssl.SSLError | None = None
        self.received = b""
        self._asked = False

    def exchange(self, data: bytes) -> bytes:
        """Take what the server sent, and return what the client sends."""
        self._incoming.write(data)
        try:
            self._advance()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.error = self.error or error
        return self._outgoing.read()

    def _advance(self) -> None:
        self.tls.do_handshake()
        if not self._asked:
            self._asked = True
            self.tls.write(QUESTION)
        while True:
            self.received += self.tls.read(4096)


class Meeting:
    """
    A client and a server that have said to each other all they have to say.
    """

    def __init__(
        self,
        server: ServerEnd,
        context: ssl.SSLContext,
        session: ssl.SSLSession | None = None,
    ) -> None:
        self.server = server
        self.client = ClientEnd(context, session)
        self.talk()

    def talk(self) -> None:
        """Carry bytes to and fro until both are silent."""
        from_server = b""
        while True:
            from_client = self.client.exchange(from_server)
            from_server = self.server.exchange(from_client)
            if not from_client and not from_server:
                return

    @property
    def outcome(self) -> tuple[int, bytes, bytes]:
        """Handshakes that the server completed, what it received, and what the client received."""
        return self.server.answerer.handshakes, self.server.answerer.received, self.client.received


def server_end(creator: IOpenSSLServerConnectionCreator) -> ServerEnd:
    """Make the server's end of a connection with nothing but TLS."""
    clock = Clock()
    return ServerEnd(TLSMemoryBIOFactory(creator, False, Factory.forProtocol(Answerer), clock), clock)


def meet(
    creator: IOpenSSLServerConnectionCreator, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> Meeting:
    """Let a client of that context meet a server of that creator."""
    return Meeting(server_end(creator), context, session)


#: The outcome of a connection that works, and of one that is refused.
WORKS = (1, QUESTION, ANSWER)
REFUSED = (0, b"", b"")


def client_context(
    ca_file: str, version: ssl.TLSVersion | None = None, identity: tuple[str, str] | None = None
) -> ssl.SSLContext:
    """
    @param version: the only version to speak; None for all.
    @param identity: key file and certificate file to show.
    """
    context = ssl.create_default_context(cafile=ca_file)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if identity is not None:
        key_file, cert_file = identity
        context.load_cert_chain(cert_file, key_file)
    return context
