"""
The sockets of connections, watched by an C{epoll} of our own that the reactor watches as one descriptor (epoll(7)).

A reactor gives each event a logging context of its own, which is a tenth of the processor time of connections with a
few microseconds of work each. Watched descriptors need only the methods of
L{twisted.internet.interfaces.IReadWriteDescriptor}, and any reactor that can watch a descriptor will do.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IDelayedCall, IHalfCloseableDescriptor, IReactorFDSet, IReadDescriptor
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.transport.overload import Overload
from webhookrx.transport.tcp_info import TCPInfo, tcp_info
from webhookrx.transport.turn_end import TurnEnd

#: Events of one turn; the other work of the reactor waits for no more than these.
MOST_EVENTS = 256
#: The same under overload, when most of them are only put into the queue.
MOST_EVENTS_OVERLOADED = 1024
#: Seconds after which a turn handles no further event; the rest comes first in the next turn.
LONGEST_TURN = 0.01

#: There is something to read, and the peer sends no more after it.
_READABLE = select.EPOLLIN | select.EPOLLRDHUP

# Made once, since most connections end by one of them.
_DONE = Failure(CONNECTION_DONE)
_USUAL: dict[type[BaseException], Failure] = {ConnectionDone: _DONE, ConnectionLost: Failure(CONNECTION_LOST)}

_log = Logger()


@implementer(IReadDescriptor)
class NestedEpoll:
    """
    Watches descriptors in place of the reactor, with the methods of C{IReactorFDSet}. It opens its C{epoll} when
    something is watched, and closes it when nothing is and no port is open.

    @param reactor: watches the C{epoll}, and does everything else that is asked of a reactor.
    @param overload: decides what to serve when more is sent than can be read; None to serve all in order.
    @param clock: seconds on the monotonic clock.
    @param turn_end: told when a turn begins and ends; None if nothing waits for that.
    """

    def __init__(
        self,
        reactor: Any,
        overload: Overload | None = None,
        clock: Callable[[], float] = time.monotonic,
        turn_end: TurnEnd | None = None,
    ) -> None:
        self.overload = overload
        self._turn_end = TurnEnd() if turn_end is None else turn_end
        self._clock = clock
        self._left: list[tuple[int, int]] = []  # events for which the last turn had no time
        self._reactor = reactor
        self._alarm: int | None = None  # always readable, so that turns go on while queued sockets are not watched
        self._pause: IDelayedCall | None = None  # until the next turn, when no sender waits for it
        self._epoll: select.epoll | None = None
        self._holders = 0
        self._descriptors: dict[int, Any] = {}
        self._events: dict[int, int] = {}

    @staticmethod
    def serves(reactor: Any) -> bool:
        """Return whether this operating system and that reactor support it."""
        return hasattr(select, "epoll") and IReactorFDSet.providedBy(reactor)

    def __getattr__(self, name: str) -> Any:
        # Transports ask a reactor for timers, too.
        return getattr(self._reactor, name)

    # -- our own life --------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """A port opens: stay open while nothing is watched. Each call needs a L{let_go}."""
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
            self._close()

    def _close(self) -> None:
        if self._epoll is not None:
            self._end_pause()
            self._stop_turning(self._epoll)
            self._epoll.close()
            self._epoll = None

    # -- what the reactor sees -----------------------------------------------------------------------------------

    def fileno(self) -> int:
        return -1 if self._epoll is None else self._epoll.fileno()

    def logPrefix(self) -> str:
        return "webhookrx"

    def connectionLost(self, reason: Failure) -> None:
        """The reactor ends, and with it all connections."""
        for fd, descriptor in list(self._descriptors.items()):
            self._end(descriptor, fd, CONNECTION_LOST)
        self._descriptors.clear()
        self._events.clear()
        self._close()

    def doRead(self) -> None:
        """Some descriptors are ready: let them read and write."""
        if self._epoll is None:
            return
        self._turn_end.begin()
        try:
            self._turn(self._epoll)
        finally:
            self._turn_end.end()

    def _turn(self, epoll: select.epoll) -> None:
        overload = self.overload
        if overload is not None and overload.stands:
            self._left = []
            self._overloaded_turn(epoll, overload)
            return
        # Another poll would put the events that are left behind those that had their turn.
        is_new = not self._left
        ready = self._left or epoll.poll(0, MOST_EVENTS)
        if overload is not None:
            if is_new and len(ready) >= MOST_EVENTS:
                overload.behind = True
            # The age of the first is worth a system call only if there is more than one turn can handle.
            if not overload.behind:
                if overload.age:
                    overload.saw(0.0)
            elif ready and (info := self._info(ready[0][0])) is not None:
                overload.saw(info.age)
        self._left = self._serve(ready)
        if overload is not None and (is_new or self._left):
            # Until all events of one poll fit into one turn.
            overload.behind = bool(self._left)

    def _serve(self, ready: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Let these descriptors read and write; return the events that are left when the time of the turn is over."""
        descriptors: dict[int, Any] = self._descriptors
        readable = select.EPOLLIN
        clock = self._clock
        end = clock() + LONGEST_TURN
        for place, (fd, events) in enumerate(ready, start=1):
            descriptor = descriptors.get(fd)
            if descriptor is None:
                continue  # an earlier event of this turn has ended it
            reading = bool(events & readable)
            try:
                why = descriptor.doRead() if reading else None
                if events != readable and why is None:
                    # Reading may have changed what is watched.
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
            if clock() > end:
                return ready[place:]
        return []

    def _end(self, descriptor: Any, fd: int, why: BaseException, reading: bool = False) -> None:
        """End a descriptor; a failure of it must not reach the others."""
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

    # -- while more is sent than can be read -----------------------------------------------------------------------

    def _info(self, fd: int) -> TCPInfo | None:
        descriptor = self._descriptors.get(fd)
        return None if descriptor is None else tcp_info(descriptor.socket)

    def _overloaded_turn(self, epoll: select.epoll, overload: Overload) -> None:
        """Put all sockets with something unread into the queue, watch them no more, and serve from the queue."""
        self._keep_turning(epoll)
        readable = select.EPOLLIN
        ready = epoll.poll(0, MOST_EVENTS_OVERLOADED)
        self._serve([(fd, events & ~readable) for fd, events in ready if events & ~(readable | select.EPOLLRDHUP)])
        pause = overload.turn(
            self,
            [fd for fd, events in ready if events & _READABLE == readable and fd != self._alarm],
            [fd for fd, events in ready if events & _READABLE == _READABLE],
        )
        if self._epoll is None:
            return  # the last connection has ended
        if not overload.stands:
            overload.release(self)
            self._stop_turning(epoll)
        elif pause:
            self._stop_turning(epoll)
            self._pause = self._reactor.callLater(pause, self._keep_turning, epoll)

    def wake_up(self) -> None:
        """End a pause between turns. Called now and then, since timers go by the wall clock."""
        if self._pause is not None and self._epoll is not None:
            self._keep_turning(self._epoll)

    def _keep_turning(self, epoll: select.epoll) -> None:
        self._end_pause()
        if self._alarm is None:
            self._alarm = os.eventfd(1, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            epoll.register(self._alarm, select.EPOLLIN)

    def _end_pause(self) -> None:
        pause, self._pause = self._pause, None
        if pause is not None and pause.active():
            pause.cancel()

    def _stop_turning(self, epoll: select.epoll) -> None:
        if self._alarm is not None:
            epoll.unregister(self._alarm)
            os.close(self._alarm)
            self._alarm = None

    def read(self, fds: Sequence[int]) -> None:
        self._serve([(fd, select.EPOLLIN) for fd in fds])

    def unread_for(self, fd: int) -> float | None:
        info = self._info(fd)
        return None if info is None else info.age

    def rest(self, fd: int) -> None:
        self._open().modify(fd, self._watched(fd))

    wake = rest

    def has_ended(self, fd: int) -> bool:
        info = self._info(fd)
        return info is not None and info.ended

    def drop(self, fd: int) -> None:
        self._end(self._descriptors[fd], fd, CONNECTION_LOST)

    def _watched(self, fd: int) -> int:
        """Return the events to watch a descriptor for: not its input while it is in the queue."""
        events = self._events[fd]
        if not events & select.EPOLLIN:
            return events
        if self.overload is not None and fd in self.overload.queue:
            return events & ~select.EPOLLIN
        return events | select.EPOLLRDHUP

    # -- what descriptors see ------------------------------------------------------------------------------------

    def addReader(self, descriptor: Any) -> None:
        self._watch(descriptor, select.EPOLLIN)

    def addWriter(self, descriptor: Any) -> None:
        self._watch(descriptor, select.EPOLLOUT)

    def removeReader(self, descriptor: Any) -> None:
        self._ignore(descriptor, select.EPOLLIN)

    def removeWriter(self, descriptor: Any) -> None:
        self._ignore(descriptor, select.EPOLLOUT)

    def _watch(self, descriptor: Any, event: int) -> None:
        fd = descriptor.fileno()
        before = self._events.get(fd, 0)
        if before & event:
            return
        epoll = self._open()
        self._events[fd] = before | event
        if before:
            epoll.modify(fd, self._watched(fd))
        else:
            epoll.register(fd, self._watched(fd))
            self._descriptors[fd] = descriptor

    def _ignore(self, descriptor: Any, event: int) -> None:
        fd = descriptor.fileno()
        before = self._events.get(fd, 0)
        if not before & event:
            return
        epoll = self._open()
        if event == select.EPOLLIN and self.overload is not None:
            self.overload.queue.forget(fd)
        after = before & ~event
        if after:
            self._events[fd] = after
            epoll.modify(fd, self._watched(fd))
        else:
            epoll.unregister(fd)
            del self._events[fd], self._descriptors[fd]
            self._close_if_idle()
