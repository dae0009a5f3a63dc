"""
Senders that post as fast as they are answered, and remember what they were told.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable

from tests.system.receiver import PATIENCE, Connection, post, wait_until

_loads = itertools.count(1)


class Load:
    """
    Some connections that stay, each of a thread of its own that posts texts that nobody else posts.

    @param port: where to.
    @param pause: seconds between an answer and the next request.
    @param request: makes a request of a text.
    @ivar acknowledged: the texts that got a 200, of each sender in order.
    @ivar refused: answers that were no 200.
    @ivar broken: what connections were lost by, before L{stop}.
    @ivar times: how many seconds each 200 took, in the order in which they came.
    """

    def __init__(
        self,
        port: int,
        senders: int = 16,
        *,
        source: str = "127.0.0.1",
        pause: float = 0.0,
        request: Callable[[bytes], bytes] = post,
    ) -> None:
        self.acknowledged: list[list[str]] = [[] for _ in range(senders)]
        self.refused: list[object] = []
        self.broken: list[Exception] = []
        self.times: list[float] = []
        self._number = next(_loads)
        self._port = port
        self._source = source
        self._pause = pause
        self._request = request
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(sender,), daemon=True) for sender in range(senders)]

    def start(self) -> Load:
        """Begin, and wait for the first answer."""
        for thread in self._threads:
            thread.start()
        wait_until(lambda: any(self.acknowledged) or not self.is_running, "an answer")
        return self

    def stop(self) -> list[str]:
        """Finish what is under way; return all texts that got a 200."""
        self._stopping.set()
        return self.wait()

    def wait(self) -> list[str]:
        """Wait until no connection is left; return all texts that got a 200."""
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not self.is_running, "a sender hangs"
        return list(itertools.chain.from_iterable(self.acknowledged))

    @property
    def is_running(self) -> bool:
        """Whether a sender is at work."""
        return any(thread.is_alive() for thread in self._threads)

    def _send(self, sender: int) -> None:
        mine = self.acknowledged[sender]
        try:
            with Connection(self._port, source=self._source) as connection:
                for number in itertools.count():
                    if self._stopping.is_set():
                        return
                    text = f"{self._number}.{sender}.{number}"
                    sent_at = time.monotonic()
                    answer = connection.send(self._request(text.encode())).answer()
                    if answer is None:
                        raise ConnectionResetError("closed without an answer")
                    if answer.status != 200:
                        self.refused.append(answer)
                        return
                    mine.append(text)
                    self.times.append(time.monotonic() - sent_at)
                    if answer.headers.get("connection") == "close":
                        return
                    if self._pause:
                        self._stopping.wait(self._pause)
        except (OSError, AssertionError) as error:
            self.broken.append(error)


def missing(acknowledged: Iterable[str], messages: Iterable[dict[str, object]]) -> list[str]:
    """Return the texts that got a 200 and are in no message."""
    stored = {message["MESSAGE"] for message in messages}
    return [text for text in acknowledged if text not in stored]


def percentile(times: list[float], part: float) -> float:
    """Return the time that a part of all, such as 0.99, did not take longer than."""
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]
