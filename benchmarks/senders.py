"""
Senders that post whether they are answered or not, over connections that stay open, in one thread; for loads that a
receiver can't bear.

All of it goes to 127.0.0.1 and is bounded: by a number of connections, and by the time that L{Crowd.run} is given.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)

_STEP = 0.002
"""Seconds from one look at what is due to the next."""

_AT_ONCE = 64
"""Connections that are begun in one step, so that their answers are not waited for."""


@dataclass(slots=True)
class Answered:
    """
    What became of one request.

    @ivar due: when it was to be sent, seconds on the monotonic clock; C{at}, when that was known.
    @ivar status: of the answer; 0: the sender gave up, or its connection ended.
    @ivar polite: a 503 with C{Retry-After}.
    """

    due: float
    at: float
    status: int
    polite: bool = False


@dataclass(slots=True, eq=False)
class _Sender:
    socket: socket.socket
    descriptor: int
    due: float = 0.0
    request: bytes = b""
    heard: bytes = b""
    busy: bool = False
    secure: ssl.SSLSocket | None = None  # while its handshake is not complete
    connecting: bool = True


class Crowd:
    """
    Senders over at most so many connections.

    @param requests: what is sent, one after another.
    @param patience: seconds after which a sender gives up and closes its connection; None: it waits.
    @param tls: what makes TLS of a connection; None for none.
    @ivar answers: what became of each request that was sent, in the order in which that was known.
    @ivar skipped: requests that were due while all connections waited for answers.
    """

    def __init__(
        self,
        port: int,
        connections: int,
        requests: Sequence[bytes],
        *,
        patience: float | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answers: list[Answered] = []
        self.skipped = 0
        self._port = port
        self._most = connections
        self._requests = cycle(requests)
        self._patience = patience
        self._tls = tls
        self._epoll = select.epoll()
        self._senders: dict[int, _Sender] = {}
        self._idle: deque[_Sender] = deque()
        self._waiting: deque[tuple[float, _Sender]] = deque()  # by when it began to wait

    # -- its life ------------------------------------------------------------------------------------------------

    def connect(self, seconds: float) -> int:
        """Open all connections, in so many seconds at most, and leave them idle. Return how many are open."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            under_way = len(self._senders) - len(self._idle)
            for _ in range(min(_AT_ONCE - under_way, self._most - len(self._senders))):
                self._open()
            if len(self._idle) == self._most:
                break
            self._look(_STEP)
        return len(self._idle)

    def run(self, seconds: float, rate: float | None = None) -> None:
        """
        Send for so long.

        @param rate: requests a second, whatever the answers; None: each sender sends again when it is answered.
        """
        began = time.monotonic()
        end = began + seconds
        sent = 0
        while (now := time.monotonic()) < end:
            if rate is None:
                while self._begin(now):
                    pass
            else:
                while sent < (now - began) * rate:
                    if not self._begin(began + sent / rate):
                        self.skipped += 1
                    sent += 1
            self._look(_STEP)

    def wait(self, seconds: float) -> None:
        """Send nothing more, and wait for the answers that are due, so long at most."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and len(self._idle) < len(self._senders):
            self._look(_STEP)

    def close(self) -> None:
        """Close all connections."""
        for sender in list(self._senders.values()):
            sender.socket.close()
        self._senders.clear()
        self._epoll.close()

    # -- requests ------------------------------------------------------------------------------------------------

    def _begin(self, due: float) -> bool:
        """Send a request, by a new connection if there has to be one; False when there may be none."""
        if self._idle:
            sender = self._idle.popleft()
        elif len(self._senders) < self._most:
            sender = self._open()
        else:
            return False
        sender.due = due
        sender.busy = True
        sender.request = next(self._requests)
        self._waiting.append((time.monotonic(), sender))
        if not sender.connecting:
            self._send(sender)
        return True

    def _look(self, seconds: float) -> None:
        for descriptor, events in self._epoll.poll(seconds, 4096):
            sender = self._senders.get(descriptor)
            if sender is None:
                continue
            if sender.connecting:
                self._go_on_connecting(sender, events)
            else:
                self._receive(sender)
        if self._patience is not None:
            past = time.monotonic() - self._patience
            while self._waiting and self._waiting[0][0] <= past:
                began, sender = self._waiting.popleft()
                # It may have been answered, and be about another request by now.
                if sender.busy and sender.descriptor in self._senders and sender.due <= began:
                    self._end(sender)
        elif len(self._waiting) > 100_000:
            self._waiting.clear()

    def _send(self, sender: _Sender) -> None:
        """Send the request; it is small, and the socket was empty."""
        request, sender.request = sender.request, b""
        try:
            if sender.socket.send(request) != len(request):
                self._end(sender)
        except OSError:
            self._end(sender)

    def _receive(self, sender: _Sender) -> None:
        try:
            data = sender.socket.recv(65536)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            data = b""
        if not data:
            self._end(sender)
            return
        heard = sender.heard + data
        head = heard.find(b"\r\n\r\n")
        length = _LENGTH.search(heard) if head >= 0 else None
        if length is None or len(heard) < head + 4 + int(length[1]):
            sender.heard = heard
            return
        sender.heard = b""
        if sender.busy:
            status = int(heard[9:12])
            polite = status == 503 and b"\r\nRetry-After: " in heard
            self.answers.append(Answered(sender.due, time.monotonic(), status, polite))
            sender.busy = False
            if b"\r\nConnection: close\r\n" in heard:
                self._end(sender)
            else:
                self._idle.append(sender)

    # -- connections ---------------------------------------------------------------------------------------------

    def _open(self) -> _Sender:
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect_ex(("127.0.0.1", self._port))
        descriptor = connection.fileno()
        sender = self._senders[descriptor] = _Sender(connection, descriptor)
        self._epoll.register(descriptor, select.EPOLLOUT)
        return sender

    def _go_on_connecting(self, sender: _Sender, events: int) -> None:
        if sender.secure is None:
            if events & (select.EPOLLERR | select.EPOLLHUP):
                self._end(sender)
                return
            if self._tls is not None:
                sender.secure = self._tls.wrap_socket(sender.socket, do_handshake_on_connect=False)
                sender.socket = sender.secure
        if sender.secure is not None:
            try:
                sender.secure.do_handshake()
            except ssl.SSLWantReadError:
                self._epoll.modify(sender.descriptor, select.EPOLLIN)
                return
            except OSError:
                self._end(sender)
                return
        sender.connecting = False
        self._epoll.modify(sender.descriptor, select.EPOLLIN)
        if sender.busy:
            self._send(sender)
        else:
            self._idle.append(sender)

    def _end(self, sender: _Sender) -> None:
        """Close a connection. Who waited for an answer gets none."""
        if self._senders.pop(sender.descriptor, None) is None:
            return
        if sender.busy:
            sender.busy = False
            self.answers.append(Answered(sender.due, time.monotonic(), 0))
        elif not sender.connecting and sender in self._idle:
            self._idle.remove(sender)
        sender.socket.close()
