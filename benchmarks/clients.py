"""
Load that wrk does not make: full TLS handshakes, a constant rate, idle connections, and laps for where wrk is missing.

All of it runs in the calling process, over connections from 127.0.0.1.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice

from benchmarks.tools import Broken

PATIENCE = 30.0
"""Seconds after which an answer will not come any more."""

PER_ADDRESS = 500
"""Idle connections from one address of the loopback network."""


def tls_context() -> ssl.SSLContext:
    """Return what speaks TLS 1.3, trusts anybody, and begins every connection anew."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def connect(port: int, context: ssl.SSLContext | None = None, source: str = "127.0.0.1") -> socket.socket:
    """Open a connection."""
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE, (source, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection if context is None else context.wrap_socket(connection)


def read_answer(connection: socket.socket) -> None:
    """
    Read one answer.

    @raise Broken: it is no 200, or not all of it comes.
    """
    heard = connection.recv(65536)
    while not _is_whole(heard):
        more = connection.recv(65536)
        if not more:
            raise Broken(f"the connection was closed in an answer: {heard[:200]!r}")
        heard += more
    if not heard.startswith(b"HTTP/1.1 200 "):
        raise Broken(f"the answer is no 200: {heard[:200]!r}")


def _is_whole(heard: bytes) -> bool:
    head, found, body = heard.partition(b"\r\n\r\n")
    if not found:
        return False
    before, has_length, after = head.lower().partition(b"\r\ncontent-length:")
    if has_length:
        return len(body) >= int(after.partition(b"\r\n")[0])
    return body.endswith(b"0\r\n\r\n") if b"\r\ntransfer-encoding:" in before else True


@contextmanager
def connections_to(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Hold connections, so that what they cost to make and to end is not measured with what goes over them."""
    connections: list[socket.socket] = []
    try:
        for _ in range(count):
            connections.append(connect(port))
        yield connections
    finally:
        for connection in connections:
            connection.close()


def laps(connections: Sequence[socket.socket], requests: Sequence[bytes], count: int) -> int:
    """
    Send requests in laps: one on each connection, then read all answers. The server so has many at once, as under load.

    @return: how many were answered: C{count}, or up to a lap more.
    @raise Broken: an answer is not as it should be.
    """
    source = cycle(requests)
    answered = 0
    while answered < count:
        for connection, request in zip(connections, source, strict=False):
            connection.sendall(request)
        for connection in connections:
            read_answer(connection)
        answered += len(connections)
    return answered


def at_rate(
    connections: Sequence[socket.socket], requests: Sequence[bytes], rate: float, seconds: float
) -> list[float]:
    """
    Send requests at a constant rate, each at its moment, whether or not earlier ones are answered.

    @return: the seconds from when each was due to its answer, so that waiting for a free connection counts.
    @raise Broken: an answer is not as it should be.
    """
    sockets = {connection.fileno(): connection for connection in connections}
    idle = deque(sockets)
    due_of: dict[int, float] = {}
    times: list[float] = []
    source = cycle(requests)
    poll = select.epoll()
    for descriptor in sockets:
        poll.register(descriptor, select.EPOLLIN)
    try:
        began = time.perf_counter()
        sent, total = 0, int(rate * seconds)
        while len(times) < total:
            due = began + sent / rate
            # Not asleep between two moments: waking up would take longer than an answer.
            if sent < total and idle and time.perf_counter() >= due:
                descriptor = idle.popleft()
                due_of[descriptor] = due
                sockets[descriptor].sendall(next(source))
                sent += 1
            for descriptor, _ in poll.poll(0 if sent < total else PATIENCE):
                read_answer(sockets[descriptor])
                times.append(time.perf_counter() - due_of[descriptor])
                idle.append(descriptor)
            if time.perf_counter() - began > seconds + PATIENCE:
                raise Broken("the server does not keep up with a constant rate")
        return times
    finally:
        poll.close()


def new_tls_connections(port: int, requests: Sequence[bytes], seconds: float, threads: int = 16) -> int:
    """
    Open TLS connections with full handshakes, send one request on each, and wait until the server closes it.

    @return: how many were answered.
    @raise Broken: an answer is not as it should be.
    """
    context = tls_context()
    until = time.monotonic() + seconds
    counts: list[int] = []
    problems: list[Exception] = []

    def work(mine: Iterable[bytes]) -> None:
        count = 0
        try:
            for request in mine:
                if time.monotonic() > until:
                    break
                with connect(port, context) as connection:
                    connection.sendall(request)
                    read_answer(connection)
                count += 1
        except (Broken, OSError) as error:
            problems.append(error)
        counts.append(count)

    workers = [
        threading.Thread(target=work, args=(cycle(islice(requests, number, None, threads)),))
        for number in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if problems:
        raise Broken(f"a TLS connection failed: {problems[0]!r}")
    return sum(counts)


@contextmanager
def idle_connections(port: int, requests: Sequence[bytes], count: int, *, tls: bool) -> Iterator[None]:
    """
    Hold connections that have had one answer each and are silent since.

    @raise Broken: an answer is not as it should be.
    """
    context = tls_context() if tls else None
    connections: list[socket.socket] = []
    try:
        for number, request in zip(range(count), cycle(requests), strict=False):
            connection = connect(port, context, f"127.0.1.{1 + number // PER_ADDRESS}")
            connections.append(connection)
            connection.sendall(request)
            read_answer(connection)
        yield
    finally:
        for connection in connections:
            connection.close()
