"""
The sockets of connections, watched by an C{epoll} of our own that the reactor watches as one descriptor (epoll(7)).

A reactor can watch anything, and gives each event a logging context of its own; for connections with a few
microseconds of work each, that is a tenth of all. What is watched here needs no more than the methods of
L{twisted.internet.interfaces.IReadWriteDescriptor}, and the reactor is any that can watch one descriptor more.
"""

from __future__ import annotations

import select
from typing import Any

from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IHalfCloseableDescriptor, IReactorFDSet, IReadDescriptor
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

#: Events of one turn. What else the reactor has to do waits for no more than these.
MOST_EVENTS = 256

# Made once, since most connections end by one of them.
_DONE = Failure(CONNECTION_DONE)
_USUAL: dict[type[BaseException], Failure] = {ConnectionDone: _DONE, ConnectionLost: Failure(CONNECTION_LOST)}

_log = Logger()


@implementer(IReadDescriptor)
class InnerPoll:
    """
    Watches descriptors in the reactor's place: what they call to be watched is here as C{IReactorFDSet} has it.

    Nothing is open while nobody holds it and nothing is watched.

    @param reactor: watches us, and does all else that is asked of a reactor.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._epoll: select.epoll | None = None
        self._holders = 0
        self._descriptors: dict[int, Any] = {}
        self._events: dict[int, int] = {}

    @staticmethod
    def serves(reactor: Any) -> bool:
        """Tell whether this operating system and that reactor have what it takes."""
        return hasattr(select, "epoll") and IReactorFDSet.providedBy(reactor)

    def __getattr__(self, name: str) -> Any:
        # Transports ask a reactor for timers, too.
        return getattr(self._reactor, name)

    # -- our own life --------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Stay open while nothing is watched: a port opens. Each call needs a L{let_go}."""
        self._holders += 1

    def let_go(self) -> None:
        """A port is closed; its connections may stay."""
        self._holders -= 1
        self._close_if_idle()

    def _open(self) -> select.epoll:
        if self._epoll is None:
            self._epoll = select.epoll()
            self._reactor.addReader(self)
        return self._epoll

    def _close_if_idle(self) -> None:
        if not self._holders and not self._events and self._epoll is not None:
            self._reactor.removeReader(self)
            self._epoll.close()
            self._epoll = None

    # -- what the reactor sees -----------------------------------------------------------------------------------

    def fileno(self) -> int:
        """See L{twisted.internet.interfaces.IFileDescriptor.fileno}."""
        return -1 if self._epoll is None else self._epoll.fileno()

    def logPrefix(self) -> str:
        """See L{twisted.internet.interfaces.ILoggingContext.logPrefix}."""
        return "webhookrx"

    def connectionLost(self, reason: Failure) -> None:
        """The reactor ends, and with it all connections."""
        for fd, descriptor in list(self._descriptors.items()):
            self._end(descriptor, fd, CONNECTION_LOST)
        self._descriptors.clear()
        self._events.clear()
        if self._epoll is not None:
            self._epoll.close()
            self._epoll = None

    def doRead(self) -> None:
        """Some descriptors are ready: let them read and write."""
        if self._epoll is None:
            return
        descriptors: dict[int, Any] = self._descriptors
        readable = select.EPOLLIN
        for fd, events in self._epoll.poll(0, MOST_EVENTS):
            descriptor = descriptors.get(fd)
            if descriptor is None:
                continue  # one before it in the list has ended it
            reading = bool(events & readable)
            try:
                why = descriptor.doRead() if reading else None
                if events != readable and why is None:
                    # To read may have changed what is wanted.
                    if events & self._events.get(fd, 0) & select.EPOLLOUT:
                        reading = False
                        why = descriptor.doWrite()
                    elif not events & (readable | select.EPOLLOUT):
                        why = CONNECTION_LOST
            except BaseException as error:
                _log.failure("A connection failed")
                why = error
            if why is not None:
                self._end(descriptor, fd, why, reading)

    def _end(self, descriptor: Any, fd: int, why: BaseException, reading: bool = False) -> None:
        """Take a descriptor away; what fails at that must not reach the others."""
        try:
            if descriptor.fileno() != fd:
                return  # it is closed already
            self.removeReader(descriptor)
            if reading and isinstance(why, ConnectionDone) and IHalfCloseableDescriptor.providedBy(descriptor):
                descriptor.readConnectionLost(_DONE)
                return
            self.removeWriter(descriptor)
            descriptor.connectionLost(_USUAL.get(type(why)) or Failure(why))
        except BaseException:
            _log.failure("A connection failed at its end")

    # -- what descriptors see ------------------------------------------------------------------------------------

    def addReader(self, descriptor: Any) -> None:
        """See L{IReactorFDSet.addReader}."""
        self._watch(descriptor, select.EPOLLIN)

    def addWriter(self, descriptor: Any) -> None:
        """See L{IReactorFDSet.addWriter}."""
        self._watch(descriptor, select.EPOLLOUT)

    def removeReader(self, descriptor: Any) -> None:
        """See L{IReactorFDSet.removeReader}."""
        self._ignore(descriptor, select.EPOLLIN)

    def removeWriter(self, descriptor: Any) -> None:
        """See L{IReactorFDSet.removeWriter}."""
        self._ignore(descriptor, select.EPOLLOUT)

    def _watch(self, descriptor: Any, event: int) -> None:
        fd = descriptor.fileno()
        before = self._events.get(fd, 0)
        if before & event:
            return
        epoll = self._open()
        if before:
            epoll.modify(fd, before | event)
        else:
            epoll.register(fd, event)
            self._descriptors[fd] = descriptor
        self._events[fd] = before | event

    def _ignore(self, descriptor: Any, event: int) -> None:
        fd = descriptor.fileno()
        before = self._events.get(fd, 0)
        if not before & event:
            return
        epoll = self._open()
        after = before & ~event
        if after:
            epoll.modify(fd, after)
            self._events[fd] = after
        else:
            epoll.unregister(fd)
            del self._events[fd], self._descriptors[fd]
            self._close_if_idle()
