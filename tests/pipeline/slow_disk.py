"""A disk that takes its time, and senders who do not wait, all in virtual time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from twisted.internet.task import Clock
from zope.interface import implementer

from webhookrx.errors import NoRoom, NotStored
from webhookrx.interfaces import IMessageObserver
from webhookrx.pipeline.chain import Chain
from webhookrx.testing import make_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhookrx.interfaces import Prepared
    from webhookrx.message.message import Message
    from webhookrx.pipeline.observer_thread import Done, Work

MiB = 1024 * 1024
#: Seconds from one look of the senders at their clocks to the next.
STEP = 0.005


@implementer(IMessageObserver)
class SlowDisk:
    """
    An observer with its thread: each store takes a fixed time, and a time for each byte.

    @param size: bytes of every message.
    @ivar hiccup: seconds that the next store takes on top.
    """

    spec = "disk"
    promise = "durable"

    def __init__(self, clock: Clock, fixed: float, bytes_per_second: float, size: int) -> None:
        self.hiccup = 0.0
        self._clock = clock
        self._fixed = fixed
        self._rate = bytes_per_second
        self._line = b"x" * size
        self._ahead = 0.0
        self._busy = False
        self._tasks: deque[tuple[Work, Done]] = deque()

    def monotonic(self) -> float:
        """Return the time: in the thread's thread, that at which the store has got by now."""
        return self._clock.seconds() + self._ahead

    def open(self) -> None:
        """Be open."""

    def prepare(self, message: Message) -> bytes:
        """Make a line."""
        return self._line

    def store(self, batch: Sequence[Prepared]) -> None:
        """Take as long as it takes."""
        self._ahead = self._fixed + len(batch) * len(self._line) / self._rate + self.hiccup
        self.hiccup = 0.0

    def reopen(self) -> None:
        """Be open anew."""

    def close(self) -> None:
        """Be closed."""

    # The thread

    def start(self) -> None:
        """Be ready."""

    def run(self, work: Work, done: Done) -> None:
        """Begin the work when all before it is done; its outcome comes when its time is over."""
        self._tasks.append((work, done))
        if not self._busy:
            self._begin()

    def wait(self, seconds: float) -> bool:
        """Nothing comes back before its time."""
        return False

    def stop(self) -> None:
        """End."""

    def _begin(self) -> None:
        self._busy = True
        work, done = self._tasks.popleft()
        outcome = work()
        seconds, self._ahead = self._ahead, 0.0
        self._clock.callLater(seconds, self._end, done, outcome)

    def _end(self, done: Done, outcome: object) -> None:
        self._busy = False
        done(outcome)
        if self._tasks and not self._busy:
            self._begin()


class Load:
    """
    Senders in front of a chain to a L{SlowDisk}.

    @ivar ages: seconds that each message waited for its acknowledgement, in the order of these.
    @ivar acknowledged_at: when each of them was acknowledged.
    @ivar refused: messages that found no room.
    @ivar most_bytes: the most that the budget has held.
    """

    def __init__(self, fixed: float, bytes_per_second: float, size: int, max_bytes: int = 64 * MiB) -> None:
        self.clock = Clock()
        self.disk = SlowDisk(self.clock, fixed, bytes_per_second, size)
        self.chain = Chain(
            self.clock,
            [self.disk],
            ack="durable",
            max_bytes=max_bytes,
            max_messages=100_000,
            make_thread=lambda name: self.disk,
            report=lambda *failure: None,
            monotonic=self.disk.monotonic,
        )
        self.chain.start()
        self.ages: list[float] = []
        self.acknowledged_at: list[float] = []
        self.refused = 0
        self.most_bytes = 0
        self._size = size
        self._due = 0.0
        self._ticks = 0.0

    def send(self, seconds: float, bytes_per_second: float) -> None:
        """Let senders send so much for so long, whatever becomes of it."""
        for _ in range(round(seconds / STEP)):
            self.clock.advance(STEP)
            self._ticks += STEP
            if self._ticks >= 0.5:
                self._ticks = 0.0
                self.chain.tick()
            self._due += bytes_per_second * STEP / self._size
            while self._due >= 1:
                self._due -= 1
                self._send_one()

    def forget(self) -> None:
        """Look only at what comes from now on."""
        self.ages.clear()
        self.acknowledged_at.clear()
        self.refused = 0

    def age_of(self, share: float) -> float:
        """Return the age that such a share of the messages does not exceed."""
        return sorted(self.ages)[int(len(self.ages) * share)]

    def stored_bytes(self) -> int:
        """Return the bytes of all messages that were acknowledged."""
        return len(self.ages) * self._size

    def _send_one(self) -> None:
        sent = self.clock.seconds()

        def acknowledged(failure: NotStored | None) -> None:
            if failure is None:
                self.ages.append(self.clock.seconds() - sent)
                self.acknowledged_at.append(self.clock.seconds())

        try:
            self.chain.write(make_message(), acknowledged)
        except NoRoom:
            self.refused += 1
        self.most_bytes = max(self.most_bytes, self.chain.budget.bytes)
