"""
Many senders in one thread, quick enough to overrun a receiver, that remember what they were told.
"""

from __future__ import annotations

import itertools
import random
import select
import socket
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.system.receiver import PATIENCE, wait_until

_crowds = itertools.count(1)

#: Seconds until a sender that was not let in tries again.
_KNOCK = 0.02

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(slots=True)
class Posted:
    """
    One request.

    @ivar token: unique, and the beginning of its body.
    @ivar due: when it should have been sent, monotonic; when it was first sent without a timetable.
    @ivar sent: when the last of its bytes was handed to the kernel, the last time.
    """

    token: str
    data: bytes
    due: float
    sent: float = 0.0


class Refusal(NamedTuple):
    """
    An answer that was no 200.

    @ivar at: when it came; C{sent}, when its request was sent in full.
    @ivar retry_after: seconds, None when it had no such header.
    """

    at: float
    sent: float
    status: int
    reason: str
    retry_after: int | None

    @property
    def is_polite(self) -> bool:
        """Whether it says that another try is welcome, and when."""
        return self.status == 503 and self.retry_after is not None


class _Sender:
    """One connection, and the request that is under way on it."""

    __slots__ = ("connecting", "heard", "number", "posted", "sequence", "socket", "wake")

    def __init__(self, number: int) -> None:
        self.number = number
        self.sequence = 0
        self.socket: socket.socket | None = None
        self.connecting = False
        self.heard = b""
        self.posted: Posted | None = None
        self.wake = 0.0


class Crowd:
    """
    Senders on connections that stay. Each waits for an answer before it sends its next request; what got no answer is
    sent again, as real senders do, on a new connection.

    @param port: where to.
    @param clients: how many senders; with C{rate}, at most.
    @param rate: requests a second that are begun, whatever the answers; None for as many as are answered.
    @param sizes: least and most bytes of a body.
    @param retry_refused: a request that was refused with 503 is sent again, too, after a moment.

    @ivar acknowledged: token to when its 200 came, in that order. One crowd never uses a token twice.
    @ivar times: how many seconds each 200 took from when it was due, beside its token's place in C{acknowledged}.
    @ivar sent: token to when it was first sent in full.
    @ivar refused: the answers that were no 200, by status and reason; C{refusals}, each of them.
    @ivar unanswered: requests whose connection ended without an answer, each time it happened.
    @ivar strange: answers that nobody had asked for.
    @ivar skipped: requests that were due when all senders waited for answers; with C{rate} only.
    """

    def __init__(
        self,
        port: int,
        clients: int = 32,
        *,
        rate: float | None = None,
        sizes: tuple[int, int] = (100, 300),
        seed: int = 0,
        retry_refused: bool = True,
    ) -> None:
        self.acknowledged: dict[str, float] = {}
        self.times: list[float] = []
        self.refused: Counter[str] = Counter()
        self.refusals: list[Refusal] = []
        self.sent: dict[str, float] = {}
        self.unanswered: list[Posted] = []
        self.strange: list[bytes] = []
        self.skipped = 0
        self._name = _in_digits(next(_crowds))
        self._address = ("127.0.0.1", port)
        self._senders = [_Sender(number) for number in range(clients)]
        self._rate = rate
        self._sizes = sizes
        self._retry_refused = retry_refused
        self._random = random.Random(seed)
        self._padding = b"x" * sizes[1]
        self._poll = select.epoll()
        self._by_fd: dict[int, _Sender] = {}
        self._idle: deque[_Sender] = deque()
        self._asleep: list[_Sender] = []
        self._begun = 0
        self._wants_next = False
        self._next: float | None = None
        self._stop_at: float | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    # -- from outside --------------------------------------------------------------------------------------------

    def start(self) -> Crowd:
        """Begin, and wait for the first answer."""
        self._thread.start()
        wait_until(lambda: self.acknowledged or self.refused, "an answer")
        return self

    def stop(self, patience: float = PATIENCE) -> Crowd:
        """Begin no more requests; wait for the answers that are due, at most so many seconds."""
        self._stop_at = time.monotonic() + patience
        self._thread.join(patience + PATIENCE)
        assert not self._thread.is_alive(), "a crowd hangs"
        return self

    @property
    def open_questions(self) -> int:
        """
        How often a request may have been taken without the sender knowing: no answer, or a refusal, which says that it
        could not be made safe, not that it was not written.
        """
        return len(self.unanswered) + sum(self.refused.values())

    def next_acknowledgement(self, seconds: float = PATIENCE) -> float:
        """Wait for the next 200, and return after how many seconds it came; infinity when it does not come in time."""
        at = time.monotonic()
        self._next = None
        self._wants_next = True
        while self._next is None:
            if time.monotonic() > at + seconds:
                return float("inf")
            time.sleep(0.005)
        return self._next - at

    # -- in its thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        started = time.monotonic()
        self._idle.extend(self._senders)
        while True:
            now = time.monotonic()
            if self._stop_at is not None and (now >= self._stop_at or not (self._is_busy() or self._asleep)):
                break
            self._wake(now)
            if self._stop_at is None:
                self._begin(now, started)
            for fd, _ in self._poll.poll(0.005):
                self._happened(self._by_fd[fd])
        for sender in self._senders:
            if sender.socket is not None:
                sender.socket.close()
        self._poll.close()

    def _is_busy(self) -> bool:
        return any(sender.posted is not None for sender in self._senders)

    def _wake(self, now: float) -> None:
        if self._asleep:
            asleep, self._asleep = self._asleep, []
            for sender in asleep:
                if sender.wake > now:
                    self._asleep.append(sender)
                elif sender.posted is not None:
                    self._send(sender)
                else:
                    self._idle.append(sender)

    def _begin(self, now: float, started: float) -> None:
        """Begin what is due."""
        if self._rate is None:
            while self._idle:
                self._post(self._idle.popleft(), now)
            return
        due = int((now - started) * self._rate)
        while self._begun < due:
            at = started + self._begun / self._rate
            self._begun += 1
            if self._idle:
                self._post(self._idle.popleft(), at)
            else:
                self.skipped += 1

    def _post(self, sender: _Sender, due: float) -> None:
        sender.sequence += 1
        token = f"~{self._name}.{sender.number}.{sender.sequence}~"
        body = token.encode() + self._padding[: max(0, self._random.randint(*self._sizes) - len(token))]
        data = b"POST /in HTTP/1.1\r\nHost: receiver\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        sender.posted = Posted(token, data, due)
        self._send(sender)

    def _send(self, sender: _Sender) -> None:
        """Send the request, on a new connection if there is none."""
        posted = sender.posted
        assert posted is not None
        if sender.socket is None:
            self._connect(sender)
            return
        try:
            rest = memoryview(posted.data)
            while rest:
                try:
                    rest = rest[sender.socket.send(rest) :]
                except BlockingIOError:
                    select.select([], [sender.socket], [], PATIENCE)
        except OSError:
            self._broken(sender)
            return
        posted.sent = time.monotonic()
        self.sent.setdefault(posted.token, posted.sent)

    def _connect(self, sender: _Sender) -> None:
        """Begin to connect; a listener whose queue is full must not hold up the other senders."""
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect_ex(self._address)
        sender.socket = connection
        sender.heard = b""
        sender.connecting = True
        self._by_fd[connection.fileno()] = sender
        self._poll.register(connection.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _happened(self, sender: _Sender) -> None:
        """Go on where a connection is there, or has something to say."""
        if not sender.connecting:
            self._hear(sender)
            return
        assert sender.socket is not None
        sender.connecting = False
        if sender.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._broken(sender)
            return
        self._poll.modify(sender.socket.fileno(), select.EPOLLIN)
        self._send(sender)

    def _hear(self, sender: _Sender) -> None:
        assert sender.socket is not None
        try:
            data = sender.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._broken(sender)
            return
        sender.heard += data
        head, end, rest = sender.heard.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(_header(head, b"content-length") or 0)
        if len(rest) < length:
            return
        sender.heard = rest[length:]
        self._answered(sender, int(head[9:12]), head, rest[:length])

    def _answered(self, sender: _Sender, status: int, head: bytes, body: bytes) -> None:
        now = time.monotonic()
        posted = sender.posted
        if posted is None:
            self.strange.append(head + body)
            self._close(sender)
            return
        if _header(head, b"connection") == b"close":
            self._close(sender)
        if status == 200:
            if posted.token in self.acknowledged:
                self.strange.append(head + body)
            self.acknowledged[posted.token] = now
            if self._wants_next:
                self._wants_next = False
                self._next = now
            self.times.append(now - posted.due)
            sender.posted = None
            self._idle.append(sender)
            return
        reason = body.partition(b'"reason":"')[2].partition(b'"')[0].decode() or body[:60].decode(errors="replace")
        after = _header(head, b"retry-after")
        self.refused[f"{status} {reason}"] += 1
        self.refusals.append(Refusal(now, posted.sent, status, reason, int(after) if after else None))
        if not self._retry_refused:
            sender.posted = None
        self._sleep(sender)

    def _broken(self, sender: _Sender) -> None:
        """The connection has ended."""
        if sender.posted is not None and sender.posted.sent:
            self.unanswered.append(replace(sender.posted))
            sender.posted.sent = 0.0
        self._close(sender)
        if sender.posted is not None:
            self._sleep(sender)

    def _sleep(self, sender: _Sender) -> None:
        sender.wake = time.monotonic() + _KNOCK
        self._asleep.append(sender)

    def _close(self, sender: _Sender) -> None:
        if sender.socket is not None:
            fd = sender.socket.fileno()
            self._poll.unregister(fd)
            del self._by_fd[fd]
            sender.socket.close()
            sender.socket = None
        sender.heard = b""


def percentile(times: list[float], part: float) -> float:
    """Return the time that a part of all, such as 0.99, did not take longer than; 0 when there are none."""
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] if times else 0.0


def _header(head: bytes, name: bytes) -> bytes | None:
    """Return the value of a header, in lower case."""
    lower = head.lower()
    begin = lower.find(b"\r\n" + name + b":")
    if begin < 0:
        return None
    return lower[begin + len(name) + 3 :].partition(b"\r\n")[0].strip()


def _in_digits(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text
