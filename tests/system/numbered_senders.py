"""
Many hosts that send numbered messages, one after the other, and send each again until it gets its 200.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from typing import NamedTuple

from tests.system.receiver import PATIENCE, post, wait_until

#: Seconds before a message is sent again that got no 200.
_PAUSE = 0.05


class Sent(NamedTuple):
    """
    What came of it.

    @ivar acknowledged: the texts that got a 200, all different.
    @ivar refused: answers other than 200.
    @ivar unsure: requests without any answer; their messages may be stored beside those that were sent again.
    """

    acknowledged: set[str]
    refused: int
    unsure: int


class NumberedSenders:
    """
    Hosts that have one connection each and send C{HOST.NUMBER}, from addresses of their own; in one thread.

    A host sends its next message once it has the 200 for the one before. So the store should have the messages of a
    host in their order.

    @param port: of the receiver.
    @param count: how many messages in all.
    @param hosts: how many hosts, 200 at most.
    @param size: bytes of a message, about.
    @param pace: seconds for which a host waits after each 200.
    @param first: the number of the first host, so that several of these have hosts of their own.
    """

    def __init__(
        self, port: int, count: int, hosts: int = 64, size: int = 400, first: int = 1, pace: float = 0.0
    ) -> None:
        self.count = count
        self.acknowledged = self.refused = self.unsure = 0
        self._pace = pace
        self._filler = "x" * max(0, size - 12)
        self._selector = selectors.DefaultSelector()
        self._later: deque[tuple[float, _Host]] = deque()
        shares = [count // hosts + (number < count % hosts) for number in range(hosts)]
        self._hosts = [_Host(port, f"127.0.1.{first + number}", share) for number, share in enumerate(shares)]
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> NumberedSenders:
        """Begin."""
        self._thread.start()
        return self

    @property
    def is_running(self) -> bool:
        """Whether a host has something left."""
        return self._thread.is_alive()

    def wait(self, seconds: float = 10 * PATIENCE) -> Sent:
        """Wait until each message has got its 200."""
        try:
            wait_until(lambda: not self.is_running, "all is sent", seconds)
        finally:
            sent = self.stop()
        return sent

    def stop(self) -> Sent:
        """Send no more, and wait for no answer."""
        self._stopping = True
        self._thread.join(PATIENCE)
        texts = {host.text(number) for host in self._hosts for number in range(host.next)}
        return Sent(texts, self.refused, self.unsure)

    def _run(self) -> None:
        left = {host for host in self._hosts if host.share}
        for host in left:
            self._send(host)
        while left and not self._stopping:
            for key, _ in self._selector.select(_PAUSE / 2):
                host = key.data
                self._hear(host)
                if host.next == host.share:
                    left.discard(host)
                    self._close(host)
            now = time.monotonic()
            while self._later and self._later[0][0] <= now:
                self._send(self._later.popleft()[1])
        for host in self._hosts:
            self._close(host)
        self._selector.close()

    def _send(self, host: _Host) -> None:
        text = host.text(host.next)
        host.is_asking = True
        try:
            if host.socket is None:
                host.connect()
                self._selector.register(host.socket, selectors.EVENT_READ, host)
            assert host.socket is not None
            host.socket.sendall(post(f"{text} {self._filler}".encode()))
        except OSError:
            self._again(host)

    def _hear(self, host: _Host) -> None:
        assert host.socket is not None
        try:
            data = host.socket.recv(65536)
        except OSError:
            data = b""
        if not data and not host.is_asking:
            # It sends on another connection when it is its time: two requests at once would have two answers.
            self._close(host)
            return
        if not data:
            self.unsure += 1
            self._again(host)
            return
        host.heard += data
        head, end, body = host.heard.partition(b"\r\n\r\n")
        if not end or len(body) < _length(head):
            return
        host.heard = b""
        is_stored = head.startswith(b"HTTP/1.1 200 ")
        if b"connection: close" in head.lower():
            self._close(host)
        if is_stored:
            self.acknowledged += 1
            host.next += 1
            if host.next < host.share:
                if self._pace:
                    host.is_asking = False
                    self._later.append((time.monotonic() + self._pace, host))
                else:
                    self._send(host)
        else:
            self.refused += 1
            self._later.append((time.monotonic() + _PAUSE, host))

    def _again(self, host: _Host) -> None:
        self._close(host)
        self._later.append((time.monotonic() + _PAUSE, host))

    def _close(self, host: _Host) -> None:
        if host.socket is not None:
            self._selector.unregister(host.socket)
            host.socket.close()
            host.socket = None
        host.heard = b""


class _Host:
    def __init__(self, port: int, address: str, share: int) -> None:
        self.address = address
        self.share = share
        self.next = 0
        self.heard = b""
        self.is_asking = False
        self.socket: socket.socket | None = None
        self._port = port

    def text(self, number: int) -> str:
        return f"{self.address.rpartition('.')[2]}.{number}"

    def connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self._port), PATIENCE, source_address=(self.address, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])


def host_of(text: str) -> tuple[str, int]:
    """Return the host and the number of a text, which may have a filler behind."""
    host, number = text.split(" ", 1)[0].split(".")
    return host, int(number)
