"""
How long an honest sender waits while others send what costs most: bodies and heads made for it.
"""

from __future__ import annotations

import random
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import cycle

from benchmarks.clients import connect, read_answer
from benchmarks.hostile_bodies import SHAPES
from benchmarks.lab import Lab
from benchmarks.runs import Asking, Figures
from benchmarks.tools import Broken
from benchmarks.traffic import prepare
from benchmarks.verify import look_for

RATE = 400
"""Requests a second of the honest sender."""

HOSTILE = 4
"""Connections of the others; each sends again as soon as it is answered or refused."""

SIZE = 980_000
"""Bytes of a hostile body, about: below the 1 MiB that nginx takes unless it is told otherwise."""

_PATIENCE = 30.0


def _with_head(lines: Sequence[bytes], target: bytes = b"/events", body: bytes = b"{}") -> bytes:
    head = (
        b"POST %b HTTP/1.1" % target, b"Host: logs.example.com", *lines, b"Content-Length: %d" % len(body), b"", b"",
    )  # fmt: skip
    return b"\r\n".join(head) + body


@cache
def hostile_bodies() -> tuple[bytes, ...]:
    """Return a request with each shape of body that C{benchmarks.hostile_bodies} knows."""
    headers = (b"Content-Type: application/json",)
    return tuple(_with_head(headers, body=shape(SIZE)) for shape in SHAPES.values())


@cache
def hostile_heads() -> tuple[bytes, ...]:
    """Return requests whose heads cost as much as a limit lets them, or a little more."""
    chance = random.Random("heads")
    letters = b"abcdefghijklmnopqrstuvwxyz-"

    def name() -> bytes:
        return bytes(chance.choices(letters, k=20))

    return (
        _with_head([b"x%d:" % number for number in range(95)]),
        _with_head([b"%b: %b" % (name(), b"v" * 120) for _ in range(90)]),
        _with_head([b"x-%b: v" % name() for _ in range(2000)]),
        _with_head([b"X-Long: " + b"a b " * 3700]),
        _with_head([b"X-Latin: " + b"\xe9\xff" * 7000]),
        _with_head([b"%b: v" % (b"n" * 15_000)]),
        _with_head([b"Authorization: " + b"Bearer " * 2000]),
        _with_head([b"X-Forwarded-For: " + b"203.0.113.7, " * 1100]),
        _with_head([b"Host: another.example.com"] * 90),
        _with_head([b"Content-Length: 2"] * 90),
        _with_head([b"Transfer-Encoding: chunked"] * 50),
        _with_head([b" folded"] * 90),
        _with_head([], target=b"/events?" + b"a=b&" * 2000),
        _with_head([], target=b"/events?" + b"%e2%80%a8" * 850),
        _with_head([], target=b"/" + b"../" * 2600),
        _with_head([], target=b"/events" + b"/" * 8000),
        b"POST /events HTTP/1.1\r\n" + b"\r\n".join([b"\x00" * 100] * 100) + b"\r\n\r\n",
        b"\r\n" * 5000,
        b"x" * 20_000,
    )


class _Hostile:
    """One that sends, and neither waits for its turn nor looks at the answer."""

    def __init__(self, port: int, requests: Sequence[bytes], poll: select.epoll) -> None:
        self._port = port
        self._requests = cycle(requests)
        self._poll = poll
        self._left = memoryview(b"")
        self.answered = 0
        self.socket: socket.socket
        self._open()

    def _open(self) -> None:
        self.socket = connect(self._port)
        self.socket.setblocking(False)
        self._poll.register(self.socket, select.EPOLLIN | select.EPOLLOUT)
        self._left = memoryview(next(self._requests))

    def go_on(self, events: int) -> bool:
        """
        Send more, or take an answer and send the next; after an end, begin anew.

        @return: False when its socket is another one now.
        """
        try:
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                if not self.socket.recv(65536):
                    raise ConnectionResetError
                self.answered += 1
                if not self._left:
                    self._left = memoryview(next(self._requests))
                    self._poll.modify(self.socket, select.EPOLLIN | select.EPOLLOUT)
            elif self._left:
                self._left = self._left[self.socket.send(self._left[:65536]) :]
                if not self._left:
                    self._poll.modify(self.socket, select.EPOLLIN)
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            self._open()
            return False
        return True

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._poll.unregister(self.socket)
        self.socket.close()


def honest_times(
    port: int, requests: Sequence[bytes], hostile: Sequence[bytes], seconds: float
) -> tuple[list[float], int]:
    """
    Send small requests at a constant rate, and the hostile ones besides, all from one thread.

    @return: the seconds from when each small request was due to its answer, and how many answers the others had.
    @raise Broken: a small request was not answered with 200, or too late.
    """
    poll = select.epoll()
    others: dict[int, _Hostile] = {}
    times: list[float] = []
    honest = {(one := connect(port)).fileno(): one for _ in range(8)}
    try:
        idle = deque(honest)
        due_of: dict[int, float] = {}
        for descriptor in honest:
            poll.register(descriptor, select.EPOLLIN)
        for number in range(HOSTILE if hostile else 0):
            # Each begins elsewhere, so that not all send the same at once.
            start = number * len(hostile) // HOSTILE
            one_of_them = _Hostile(port, (*hostile[start:], *hostile[:start]), poll)
            others[one_of_them.socket.fileno()] = one_of_them
        source = cycle(requests)
        began = time.perf_counter()
        sent, total = 0, int(RATE * seconds)
        while len(times) < total:
            due = began + sent / RATE
            if sent < total and idle and time.perf_counter() >= due:
                descriptor = idle.popleft()
                due_of[descriptor] = due
                honest[descriptor].sendall(next(source))
                sent += 1
            for descriptor, events in poll.poll(0):
                if descriptor in honest:
                    read_answer(honest[descriptor])
                    times.append(time.perf_counter() - due_of[descriptor])
                    idle.append(descriptor)
                elif (other := others.get(descriptor)) is not None and not other.go_on(events):
                    del others[descriptor]
                    others[other.socket.fileno()] = other
            if time.perf_counter() - began > seconds + _PATIENCE:
                raise Broken("the server does not answer honest senders any more")
        return times, sum(other.answered for other in others.values())
    finally:
        for other in others.values():
            other.close()
        for connection in honest.values():
            connection.close()
        poll.close()


DISTURBANCES: dict[str, Callable[[], tuple[bytes, ...]]] = {
    "nobody": tuple,
    "hostile bodies": hostile_bodies,
    "hostile heads": hostile_heads,
}


@dataclass(frozen=True)
class Disturbed(Asking):
    """
    What an honest sender sees of others.

    @ivar beside: of L{DISTURBANCES}, who else sends.
    """

    beside: str

    @property
    def name(self) -> str:
        """The server, and who else sends."""
        return f"{self.server.name}, honest sender beside {self.beside}"

    def measure(self, lab: Lab) -> Figures:
        """Send; returns the percentiles of the honest sender, and C{hostile}, answers a second to the others."""
        running = lab.get(self.server)
        traffic = prepare("plain")
        seconds = max(lab.seconds, 2.0)
        began = time.perf_counter()
        times, answers = honest_times(running.port, traffic.requests, DISTURBANCES[self.beside](), seconds)
        took = time.perf_counter() - began
        look_for(running.output, traffic, len(times), self.server.lines, self.server.settle)
        times.sort()
        return {
            "hostile": answers / took,
            **{f"p{percent}": times[int(len(times) * percent / 100)] * 1e3 for percent in (50, 99)},
        }
