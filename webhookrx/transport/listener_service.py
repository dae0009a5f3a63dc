"""
A service that owns one open port, from start to stop.
"""

from __future__ import annotations

import select

from twisted.application.service import Service
from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    IProtocolFactory,
    IReadDescriptor,
    IStreamServerEndpoint,
)
from twisted.python.failure import Failure

from webhookrx.errors import CannotStart

_MOST_READS = 300


class CannotListen(CannotStart):
    """
    A port can't be opened. The reason comes first, since C{twistd}'s waiting parent gets no more than a hundred bytes.

    @ivar reason: why, such as C{Address already in use}.
    @ivar text: the endpoint, as its user wrote it.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(f"{reason}: can't listen on {text}")
        self.reason = reason
        self.text = text


class ListenerService(Service):
    """
    Listens with an endpoint from start to stop.

    Under C{twistd} it listens before privileges are dropped, so that C{--uid} goes with a port below 1024. Under
    C{twist}, which knows no such step, it listens when it starts.

    @ivar address: where it listens; None before the start and after the stop.
    """

    address: IAddress | None = None

    def __init__(self, endpoint: IStreamServerEndpoint, factory: IProtocolFactory, text: str) -> None:
        """
        @param text: the endpoint as the user wrote it, for the error.
        """
        self._endpoint = endpoint
        self._factory = factory
        self._text = text
        self._port: IListeningPort | None = None

    def privilegedStartService(self) -> None:
        """
        Open the port, unless that is done.

        @raise CannotListen: it can't be opened.
        """
        super().privilegedStartService()
        if self._port is None:
            self._port = self._listen()
            self._has_opened(self._port)
            self.address = self._port.getHost()

    def startService(self) -> None:
        """
        Open the port, unless that is done.

        @raise CannotListen: it can't be opened.
        """
        super().startService()
        self.privilegedStartService()

    def use(self, endpoint: IStreamServerEndpoint, factory: IProtocolFactory) -> None:
        """
        Use another factory for new connections; open ones stay.

        @param endpoint: goes through the same open C{SwappableEndpoint} as the one before.
        """
        self._endpoint = endpoint
        self._factory = factory
        if self._port is not None:
            self._listen()

    def stopService(self) -> Deferred[None]:
        """
        Close the port; connections stay, those included that the kernel holds for us.

        @return: fires when the port is closed.
        """
        super().stopService()
        port, self._port, self.address = self._port, None, None
        if port is None:
            return succeed(None)
        self._is_to_close(port)
        closed = port.stopListening()
        return closed if isinstance(closed, Deferred) else succeed(None)

    def _has_opened(self, port: IListeningPort) -> None:
        """The port accepts connections from now on."""

    def _is_to_close(self, port: IListeningPort) -> None:
        """Accept pending connections: to close the port would reset them, with the requests that they have sent."""
        if not IReadDescriptor.providedBy(port):
            return
        if isinstance(port, FileDescriptor):
            port.stopReading()  # tells a shared port that it has no part any more in who accepts what
        readable = select.poll()
        readable.register(port.fileno(), select.POLLIN)
        # Each read accepts some. A port without descriptors left stays readable.
        for _ in range(_MOST_READS):
            if not readable.poll(0):
                break
            port.doRead()

    def _listen(self) -> IListeningPort:
        """
        Every endpoint of Twisted's opens its port at once, and its Deferred has the result. One that opens later
        could fail after the process has reported that it is up; it is not supported.
        """
        opened: list[IListeningPort] = []
        failed: list[Failure] = []
        listening = self._endpoint.listen(self._factory)
        listening.addCallbacks(opened.append, failed.append)
        if failed:
            raise CannotListen(_reason(failed[0].value), self._text)
        if not opened:
            listening.addBoth(lambda _: None)
            listening.cancel()
            raise CannotListen("This endpoint does not open at once", self._text)
        return opened[0]


def _reason(error: BaseException | None) -> str:
    """Return the system's own words where there are any."""
    cause = error.socketError if isinstance(error, CannotListenError) else error
    words = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
    return words.rstrip(".")
