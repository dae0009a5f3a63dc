"""
Non-blocking sockets, and waiting for them up to a deadline.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import struct
import termios
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from fcntl import ioctl
from math import ceil, inf
from threading import Thread
from typing import Any, Final, Protocol, TypeAlias

from webhookrx.quantities import format_duration

# Keepalive finds a connection that a firewall has dropped while the connection is idle, not with the next message.
_STREAM_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


STOP_TIME: Final = 1.0
"""Seconds that are left, at most, after L{Deadline.stop_now}."""


class HasFileno(Protocol):
    """A socket, or another object to poll."""

    def fileno(self) -> int:
        """Return the file descriptor."""


class Deadline:
    """
    How long a thread waits for its sockets, one at a time. All but L{stop_now} belongs to that thread.

    @param seconds: from L{begin} to the deadline.
    @ivar now: seconds on the monotonic clock.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self.now = now
        self._end = now() + seconds
        self._is_stopping = False
        self._wake, self._waker = socket.socketpair()
        self._waker.setblocking(False)

    def begin(self) -> None:
        """Set the deadline anew."""
        self._end = self.now() + self._seconds

    def stop_now(self) -> None:
        """Let this wait and all later ones end within L{STOP_TIME}. Callable from any thread."""
        if not self._is_stopping:
            self._is_stopping = True
            with suppress(OSError):  # closed in the meantime
                self._waker.send(b"!")

    def left(self) -> float:
        """Return the seconds to the deadline, never less than 0."""
        if self._is_stopping:
            self._end = min(self._end, self.now() + STOP_TIME)
        return max(0.0, self._end - self.now())

    def wait(self, waited_for: HasFileno, events: int, *, at_most: float = inf) -> bool:
        """
        Wait for events of a socket. It is polled at least once.

        @param events: as for C{select.poll}; errors and hang-ups always count.
        @param at_most: seconds.
        @return: False when C{at_most} passes first.
        @raise TimeoutError: the deadline passes first.
        """
        end = self.now() + at_most
        while True:
            poller = select.poll()
            poller.register(waited_for, events)
            if not self._is_stopping:
                poller.register(self._wake, select.POLLIN)
            time_left = min(self.left(), max(0.0, end - self.now()))
            ready = dict(poller.poll(ceil(time_left * 1000)))
            if waited_for.fileno() in ready:
                return True
            if not self.left():
                raise TimeoutError(self._complaint())
            if self.now() >= end:
                return False

    def _complaint(self) -> str:
        if self._is_stopping:
            return "the receiver stops, and it did not answer soon"
        return f"it did not answer within {format_duration(self._seconds)}"

    def close(self) -> None:
        """Close the descriptors, after the last wait."""
        self._is_stopping = True
        self._wake.close()
        self._waker.close()


def shake_hands(secured: ssl.SSLSocket, deadline: Deadline) -> None:
    """
    Do the TLS handshake on a non-blocking socket.

    @raise OSError: it failed; also C{ssl.SSLError} and C{TimeoutError}.
    """
    while True:
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            deadline.wait(secured, select.POLLIN)
        except ssl.SSLWantWriteError:
            deadline.wait(secured, select.POLLOUT)
        else:
            return


#: What C{socket.getaddrinfo} returns for each address.
AddressInfo: TypeAlias = tuple[int, int, int, str, Any]


def look_up(host: str, port: int, kind: socket.SocketKind, steps: Iterable[float]) -> list[AddressInfo]:
    """
    Return the addresses of a host. A thread of its own asks, since nothing ends a look-up while a name server is away.

    @param steps: seconds to wait next, one by one, until the time is over.
    @raise OSError: there is none; also C{TimeoutError}.
    @raise UnicodeError: that is no host name.
    """
    found: Future[list[Any]] = Future()

    def ask() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=kind))
        except BaseException as error:
            found.set_exception(error)

    Thread(target=ask, name="webhookrx-lookup", daemon=True).start()
    if not any(wait([found], step).done for step in steps):
        raise TimeoutError(errno.ETIMEDOUT, "no answer about its name came in time")
    return found.result()


def connect_to_host(
    host: str,
    port: int,
    kind: socket.SocketKind,
    deadline: Deadline,
    addresses: Sequence[AddressInfo] | None = None,
) -> tuple[socket.socket, float]:
    """
    Connect to the first address of a host that answers.

    @param addresses: those of the host; None to look them up, which is not bounded by the deadline.
    @return: the socket, and the seconds that connecting took.
    @raise OSError: no address answers, or the host has none; the text has the reason of each.
    """
    if addresses is None:
        addresses = socket.getaddrinfo(host, port, type=kind)
    problems = []
    for number, (family, _, _, _, address) in enumerate(addresses):
        # An address that never answers must leave time for the others.
        share = deadline.left() / (len(addresses) - number)
        try:
            return connect_socket(family, kind, address, deadline, share)
        except OSError as error:
            problems.append(f"{address[0]}: {describe(error)}")
    raise ConnectionError("; ".join(problems))


def connect_socket(
    family: int, kind: socket.SocketKind, address: Any, deadline: Deadline, at_most: float | None = None
) -> tuple[socket.socket, float]:
    """
    Connect to one address.

    @param at_most: seconds; None for up to the deadline.
    @return: the socket, and the seconds that connecting took.
    """
    made = socket.socket(family, kind)
    try:
        made.setblocking(False)
        began = deadline.now()
        try:
            made.connect(address)
        except BlockingIOError as error:
            if error.errno != errno.EINPROGRESS:
                raise
            if not deadline.wait(made, select.POLLOUT, at_most=deadline.left() if at_most is None else at_most):
                raise TimeoutError("it did not answer in time") from None
            if problem := made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(problem, os.strerror(problem)) from None
        if kind == socket.SOCK_STREAM and family != socket.AF_UNIX:
            for option in _STREAM_OPTIONS:
                made.setsockopt(*option)
        return made, deadline.now() - began
    except BaseException:
        made.close()
        raise


def describe(error: OSError) -> str:
    """Return the reason of an error, on one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate was not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS: {error.reason.replace('_', ' ').lower()}"
    return " ".join((error.strerror or str(error) or type(error).__name__).split())


def unacknowledged(connected: socket.socket) -> int:
    """
    Return how many bytes our kernel still holds for the other end (C{SIOCOUTQ}, tcp(7), unix(7)): with TCP, those that
    its kernel has not acknowledged; with a UNIX socket, those that it has not read, and some overhead.
    """
    answer = ioctl(connected, termios.TIOCOUTQ, bytes(struct.calcsize("i")))
    count: int = struct.unpack("i", answer)[0]
    return count
