"""
The control socket: by it, commands on the same machine look into the running service.

It is a UNIX socket that only its owner may open, and root. A command sends one line of JSON, C{{"do": "status"}} or the
like, and gets lines of JSON. Nothing that comes by it changes what the service does.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from os import geteuid
from typing import TYPE_CHECKING, Any, Final

import msgspec
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Factory
from twisted.logger import Logger
from twisted.protocols.basic import LineOnlyReceiver
from zope.interface import implementer

from webhookrx.errors import CannotStart, CantTap, GateIsClosed
from webhookrx.filesystem import FileLock
from webhookrx.service.service_taps import ServiceTaps
from webhookrx.service.socket_lock import lock_socket
from webhookrx.version import installed_version

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap

LONGEST_LINE: Final = 16 * 1024
"""Bytes of what a command asks."""

MOST_CONNECTIONS: Final = 32
TIME_TO_LEAVE: Final = 0.5
"""Seconds that commands have to read what is left, once the service stops."""

TIME_TO_ASK: Final = 10.0
"""Seconds that a connection has for its question."""

_COUNTS_EVERY: Final = 1.0

_log = Logger()


class ControlQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    What a command asks.

    @ivar do: C{status} or C{tap}.
    @ivar tap: a L{TapRequest}, for a tap.
    """

    do: str
    tap: msgspec.Raw = msgspec.Raw(b"{}")


_decode: Final = msgspec.json.Decoder(ControlQuestion).decode
_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


class ControlSocket:
    """
    The control socket of a service.

    @param status: returns the service as it is now, as JSON values.
    """

    def __init__(
        self,
        reactor: Any,
        status: Callable[[], dict[str, Any]],
        taps: ServiceTaps,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.status = status
        self.taps = taps
        self.connections: set[ControlConnection] = set()
        self._reactor = reactor
        self._port: Any = None
        self._path = ""
        self._lock: FileLock | None = None
        self._counted = 0.0
        self.clock = clock

    def open(self, path: str) -> None:
        """
        Open the socket; a file that a former process has left is replaced.

        @raise CannotStart: it can't be opened.
        """
        factory = Factory.forProtocol(lambda: ControlConnection(self))
        factory.noisy = False
        lock = None
        try:
            lock = lock_socket(path)
            self._port = self._reactor.listenUNIX(path, factory, mode=0o600)
        except (CannotListenError, OSError) as error:
            if lock is not None:
                lock.release()
            why = getattr(error, "socketError", error)
            why = getattr(why, "strerror", None) or why
            raise CannotStart(f"The control socket {path} can't be opened: {why}") from None
        self._path, self._lock = path, lock

    async def close(self) -> None:
        """Close the socket and its connections."""
        port, self._port = self._port, None
        if port is None:
            return
        await port.stopListening()
        with suppress(OSError):
            os.unlink(self._path)
        if self._lock is not None:
            self._lock.release()
        left = list(self.connections)
        for each in left:
            each.end("The service stops.")
        late = self._reactor.callLater(TIME_TO_LEAVE, lambda: [each.transport.abortConnection() for each in left])
        await gatherResults([each.lost for each in left])
        if late.active():
            late.cancel()

    def tick(self) -> None:
        """End what is over, and tell counts; called twice a second."""
        now = self.clock()
        if not self.connections:
            return
        counts = now - self._counted >= _COUNTS_EVERY
        if counts:
            self._counted = now
        for each in list(self.connections):
            each.tick(now, counts=counts)


@implementer(IPushProducer)
class ControlConnection(LineOnlyReceiver):
    """
    One command that asks.

    @ivar lost: fires when the connection has ended.
    """

    delimiter = b"\n"
    MAX_LENGTH = LONGEST_LINE
    transport: Any

    def __init__(self, control: ControlSocket) -> None:
        self._control = control
        self._tap: Tap | None = None
        self._asked = False
        self._paused = False
        self._since = control.clock()
        self.lost: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        """Take a connection of our own user or of root."""
        if peer_user(self.transport.socket) not in (0, geteuid()):
            _log.warn("The control socket was opened by another user, and closed")
            self.transport.abortConnection()
        elif len(self._control.connections) >= MOST_CONNECTIONS:
            self._say(error=f"{MOST_CONNECTIONS} commands look into the service already.")
            self.transport.loseConnection()
        else:
            self._control.connections.add(self)
            self.transport.registerProducer(self, True)

    def connectionLost(self, reason: object = None) -> None:
        """The command has gone."""
        self._control.connections.discard(self)
        self._stop()
        self.lost.callback(None)

    def lineReceived(self, line: bytes) -> None:
        """Answer a question."""
        if self._asked or self not in self._control.connections:
            return
        self._asked = True
        try:
            question = _decode(line)
            if question.do == "status":
                self._say(**self._control.status())
            elif question.do == "tap":
                self._start(question.tap)
                return
            else:
                self._say(error="A command asks for status or tap.")
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._say(error=f"The question can't be read: {error}")
        except CantTap as error:
            self._say(error=str(error))
        self._finish()

    def lineLengthExceeded(self, line: bytes) -> None:
        """The question is too long."""
        self._say(error=f"A question has up to {LONGEST_LINE:,} bytes.")
        self._finish()

    def _start(self, text: msgspec.Raw) -> None:
        # It takes memory that a receiver without taps does not need.
        from webhookrx.tapping.tap_request import TapRequest

        request = msgspec.json.decode(text, type=TapRequest)
        names = self._control.taps.sources(request)
        self._tap = tap = self._control.taps.start(request, self._deliver)
        _log.info(
            "A tap starts: point {point}, {count} sources, filter {filter}, for {seconds} s",
            point=request.point or "input and output",
            count=len(names),
            filter=repr(request.filter),
            seconds=round(request.seconds),
        )
        self._say(row="start", service=f"webhookrx {installed_version()}", sources=names, seconds=request.seconds)
        self._deliver(tap)

    def tick(self, now: float, *, counts: bool) -> None:
        """End what is over; tell the counts of a tap."""
        tap = self._tap
        if tap is None:
            if not self._asked and now - self._since > TIME_TO_ASK:
                self.end("Nothing was asked.")
        elif now >= tap.until:
            self.end("Its time is over.")
        elif counts:
            try:
                self._control.taps.check_gate()
            except GateIsClosed as closed:
                self.end(str(closed))
            else:
                tap.tell_counts()

    def end(self, why: str) -> None:
        """End the connection, and say why."""
        tap = self._tap
        if tap is not None:
            tap.tell_counts()
            self._paused = False
            self._deliver(tap)
            self._say(row="end", why=why)
        self._finish()

    def _finish(self) -> None:
        self._stop()
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def _stop(self) -> None:
        tap, self._tap = self._tap, None
        if tap is not None:
            self._control.taps.stop(tap)
            counts = tap.total
            _log.info("A tap ends: {seen} seen, {shown} shown", seen=counts.seen, shown=counts.shown)

    def _deliver(self, tap: Tap) -> None:
        if tap is self._tap and not self._paused:
            for row in tap.take():
                self.transport.write(row + b"\n")

    def _say(self, **row: Any) -> None:
        self.transport.write(_encode(row) + b"\n")

    # -- IPushProducer -------------------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """The command reads too slowly: rows wait, and the oldest are dropped."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The command reads again."""
        self._paused = False
        if self._tap is not None:
            self._deliver(self._tap)

    def stopProducing(self) -> None:
        """The connection is lost."""
        self._paused = True


def peer_user(connected: socket.socket) -> int:
    """Return the user id of the process at the other end of a UNIX socket (unix(7), SO_PEERCRED)."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)
