"""
Real sockets without a reactor that waits: each step looks once at what is ready, and nothing takes time.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from twisted.internet.interfaces import IHalfCloseableProtocol, IHandshakeListener, IReactorFDSet
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.transport.nested_epoll import NestedEpoll
from webhookrx.transport.overload import Overload
from webhookrx.transport.turn_end import TurnEnd

#: Milliseconds that what has been sent may take to come.
PATIENCE = 20_000


@implementer(IReactorFDSet)
class SteppedReactor(Clock):
    """
    Watches what it is told to, once a step.

    @ivar readers: who wants to know when it can read; writers likewise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.readers: list[Any] = []
        self.writers: list[Any] = []

    def addReader(self, reader: Any) -> None:
        if reader not in self.readers:
            self.readers.append(reader)

    def addWriter(self, writer: Any) -> None:
        if writer not in self.writers:
            self.writers.append(writer)

    def removeReader(self, reader: Any) -> None:
        if reader in self.readers:
            self.readers.remove(reader)

    def removeWriter(self, writer: Any) -> None:
        if writer in self.writers:
            self.writers.remove(writer)

    def removeAll(self) -> list[Any]:
        everything, self.readers, self.writers = self.readers + self.writers, [], []
        return everything

    def getReaders(self) -> list[Any]:
        return self.readers

    def getWriters(self) -> list[Any]:
        return self.writers

    def ready(self, *, wait: bool = False, most: int = PATIENCE) -> int:
        """How many of those it watches could go on; C{wait}: for one, since TCP takes its time even in one machine."""
        poll = select.poll()
        for reader in self.readers:
            poll.register(reader.fileno(), select.POLLIN)
        return len(poll.poll(most if wait else 0))

    def step(self) -> None:
        """Let all read and write, and call what is due."""
        for call in [*(each.doRead for each in self.readers), *(each.doWrite for each in self.writers)]:
            why = call()
            if why is not None:
                call.__self__.connectionLost(Failure(why))
        self.advance(0)

    def settle(self, steps: int = 20, *, wait: bool = False) -> None:
        """
        Go on until nothing more can happen; that there is no end to it is a failure.

        @param wait: see L{ready}.
        """
        if wait:
            self.ready(wait=True)
        for _ in range(steps):
            if not self.ready() and not self.getDelayedCalls():
                return
            self.step()
        raise AssertionError("there is no end to it")


@implementer(IHalfCloseableProtocol, IHandshakeListener)
class Recorder(Protocol):
    """
    Notes what happens.

    @ivar events: what has, data aside.
    @ivar received: all data.
    @ivar on_data: does more with data; on_handshake and on_end likewise.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.received = b""
        self.reason: Failure | None = None
        self.on_data: Callable[[bytes], object] = lambda data: None
        self.on_handshake: Callable[[], object] = lambda: None
        self.on_end: Callable[[], object] = lambda: None

    def handshakeCompleted(self) -> None:
        self.events.append("handshake")
        self.on_handshake()

    def dataReceived(self, data: bytes) -> None:
        self.received += data
        self.on_data(data)

    def readConnectionLost(self) -> None:
        self.events.append("read lost")

    def writeConnectionLost(self) -> None:
        self.events.append("write lost")

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        self.reason = reason
        self.events.append(cast(type, reason.type).__name__)
        self.on_end()


class Producer:
    """Notes how it is treated."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def pauseProducing(self) -> None:
        self.events.append("pause")

    def resumeProducing(self) -> None:
        self.events.append("resume")

    def stopProducing(self) -> None:
        self.events.append("stop")


class World:
    """
    A reactor, a poll within, and connections.

    @param overload: that of the poll.
    """

    def __init__(self, overload: Overload | None = None) -> None:
        self.reactor = SteppedReactor()
        self.turn_end = TurnEnd()
        # No turn ends by the clock.
        self.poll = NestedEpoll(self.reactor, overload, lambda: 0.0, self.turn_end)
        self.sockets: list[socket.socket] = []

    def pair(self, *, tcp: bool = False, small: bool = False) -> tuple[socket.socket, socket.socket]:
        """
        Return two connected sockets that wait for nothing.

        @param tcp: as only TCP can be reset.
        @param small: with as little room as there may be.
        """
        if tcp:
            with socket.create_server(("127.0.0.1", 0)) as listening:
                ours = socket.create_connection(listening.getsockname())
                theirs, _ = listening.accept()
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
            if small:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            self.sockets.append(each)
        return ours, theirs

    def serve(self, kind: Callable[..., Any], ours: socket.socket, *first: object) -> tuple[Any, Recorder]:
        """Make a transport and its protocol."""
        recorder = Recorder()
        client: object = ours.getpeername() if ours.family == socket.AF_INET else "peer"
        transport = kind(*first, ours, recorder, client, None, 1, self.poll)
        recorder.makeConnection(transport)
        return transport, recorder

    def close(self) -> None:
        """Leave nothing open."""
        for each in self.sockets:
            each.close()


def wait_for(sock: socket.socket) -> None:
    """Wait until there is something to read, or the end; see L{SteppedReactor.ready}."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    poll.poll(PATIENCE)


def drain(sock: socket.socket) -> bytes:
    """Read what has come."""
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except (BlockingIOError, ConnectionError):
        pass
    return data


class TLSClient:
    """
    The client's end, by the standard library, in turns.

    @ivar received: what the server has sent; ended: whether its C{close_notify} has come.
    @ivar error: why it can't go on.
    """

    def __init__(self, context: ssl.SSLContext, sock: socket.socket) -> None:
        self.socket = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self.received = b""
        self.ended = False
        self.error: ssl.SSLError | None = None

    def turn(self, *, take: bool = True, wait: bool = False) -> None:
        """Go on as far as it goes; C{take}: read from the socket, too, and C{wait} for that."""
        if wait:
            wait_for(self.socket)
        if take:
            self._incoming.write(drain(self.socket))
        try:
            self.tls.do_handshake()
            while piece := self.tls.read(65536):
                self.received += piece
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            self.error = error
        self.flush()

    def send(self, data: bytes) -> None:
        """Encrypt and send; the handshake is complete."""
        self.tls.write(data)
        self.flush()

    def end(self) -> None:
        """Send C{close_notify}."""
        with suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.flush()

    def flush(self) -> None:
        """Send what is encrypted."""
        data = self._outgoing.read()
        if data:
            self.socket.sendall(data)
