"""
The port of a worker, on a socket that its parent has opened and the other workers listen on, too.

Twisted can adopt a listening socket, but takes it for its own: it would change the mode and backlog of a UNIX socket,
remove its name when one worker ends, and shut TCP sockets down for all workers. And it accepts all waiting connections
at once, so that the first worker to wake up gets a whole burst. So this is the one module that knows how Twisted's
ports begin and end, and its tests fail when a release of Twisted changes that.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import cast

from twisted.internet import tcp, unix
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from webhookrx.transport.fair_share import PATIENCE, Share
from webhookrx.transport.tcp_info import waiting_at

#: Connections that a worker accepts in one turn. With fewer, each new connection costs more: other workers wake up for
#: it in vain, too.
MOST_ACCEPTED = 16

#: How many are taken to wait at a UNIX socket where some do. Shares differ by fewer than that. With one, a burst
#: would be accepted one by one.
SOME = 4

#: Seconds between two looks at connections that were left to other workers.
LOOK = 0.001


class SharedPort(tcp.Port):
    """
    A port on a socket that other processes listen on, too.

    While it is watched it accepts no more than its share of connections, and leaves the others to wait for those
    processes: it is not watched then, but looks after them every millisecond. Under overload, and once it is watched no
    more, it accepts whatever it can, and the other processes don't count on it.

    @ivar share: the share of this process; None to accept whatever comes.
    """

    share: Share | None = None
    _most = MOST_ACCEPTED
    _takes_part = False
    _look: IDelayedCall | None = None  # while connections are left to others

    @property
    def numberAccepts(self) -> int:
        """How many connections are accepted in one turn."""
        return self._most

    @numberAccepts.setter
    def numberAccepts(self, wanted: int) -> None:
        """Keep it; Twisted adapts it to the number of waiting connections."""

    def startReading(self) -> None:
        self._takes_part = True
        if self.share is not None:
            self.share.join()
        super().startReading()

    def stopReading(self) -> None:
        self._takes_part = False
        self._stop_looking()
        if self.share is not None:
            self.share.leave()
        super().stopReading()

    def doRead(self) -> None:
        share = self.share
        self._most = MOST_ACCEPTED
        if share is not None and self._takes_part:
            if self._holds_back:
                share.leave()
            else:
                share.join()
                others, waiting = share.others(), self._count_waiting()
                room = share.room(others, waiting)
                if not room:
                    if waiting:
                        self._leave_to_others()
                    return
                self._most = min(room, MOST_ACCEPTED)
        super().doRead()

    @property
    def _holds_back(self) -> bool:
        """Whether few connections are accepted because of overload; see L{webhookrx.transport.accept.AcceptGate}."""
        return getattr(self.socket, "holds_back", False)

    def _count_waiting(self) -> int:
        """Return how many connections wait, or L{SOME} if some do and there is no telling how many."""
        waiting = waiting_at(self.socket)
        if waiting is None:
            readable = select.poll()
            readable.register(self.fileno(), select.POLLIN)
            return SOME if readable.poll(0) else 0
        return waiting

    def began(self) -> Callable[[], None] | None:
        """Count a connection that was accepted, and return what to call at its end."""
        if self.share is None:
            return None
        self.share.began()
        return self._ended

    def _ended(self) -> None:
        share = self.share
        assert share is not None
        share.ended()
        if self._look is not None and share.look(share.others(), 1, 0):
            self._watch_again()

    def _leave_to_others(self) -> None:
        super().stopReading()
        self._look_later()

    def _look_later(self) -> None:
        self._look = cast(IReactorTime, self.reactor).callLater(LOOK, self._look_again, 1)

    def _look_again(self, looks: int) -> None:
        share = self.share
        assert share is not None
        others, waiting = share.others(), self._count_waiting()
        if self._holds_back or share.look(others, waiting, looks):
            self._watch_again()
        else:
            self._stop_looking()
            self._look_later()

    def _watch_again(self) -> None:
        self._stop_looking()
        super().startReading()

    def _stop_looking(self) -> None:
        look, self._look = self._look, None
        if look is not None and look.active():
            look.cancel()

    def tick(self) -> None:
        """Look after connections that were left to others even if the wall clock, and all timers, were set back."""
        if self.share is not None:
            self.share.tick()
            if self._look is not None:
                self._look_again(PATIENCE // 2)

    def adopt(self, shared: socket.socket) -> None:
        """Begin to accept from a socket that listens already."""
        self.socket = shared
        self.fileno = shared.fileno  # type: ignore[method-assign]  # as its base does
        self.connected = True
        # By closing this file Twisted accepts, and closes, what comes when there are no more descriptors.
        reserved = getattr(tcp, "_reservedFD", None)
        if reserved is not None:
            reserved.reserve()
        self.factory.doStart()  # type: ignore[union-attr]  # Twisted's own type says less than is true
        self.startReading()

    def connectionLost(self, reason: Failure) -> None:
        # Twisted shuts its socket down, which would do so for all processes: it gets another one for that.
        self.socket.close()
        self.socket = socket.socket(self.addressFamily)
        tcp.Port.connectionLost(self, reason)


class SharedTCPPort(SharedPort):
    """
    One of TCP.
    """

    def adopt(self, shared: socket.socket) -> None:
        self._realPortNumber = shared.getsockname()[1]
        super().adopt(shared)


class SharedUNIXPort(SharedPort, unix.Port):
    """
    One with a UNIX socket. Its name stays, since another process has made it: L{SharedPort.connectionLost} skips that
    of L{unix.Port}.
    """
