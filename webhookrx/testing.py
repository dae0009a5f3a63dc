"""
Fakes for tests of and with webhookrx. Each passes the same contract tests as the real thing.

None needs a thread, a port or a real clock: give them a C{twisted.internet.task.Clock}, and C{clock.advance(0)} is one
or more turns, until nothing is left to do now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, cast

from zope.interface import implementer

from webhookrx.errors import NoRoom
from webhookrx.interfaces import ILocalObserver, IMessageConsumer
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message, Value
from webhookrx.pipeline.admission import Budget, ProducerGate, size_of
from webhookrx.settings import Limits

if TYPE_CHECKING:
    from twisted.internet.interfaces import IPushProducer, IReactorTime

    from webhookrx.errors import NotStored
    from webhookrx.interfaces import Acknowledge, Prepared
    from webhookrx.pipeline.observer_thread import Done, Work

_LIMITS = Limits()

#: 2026-01-02T03:04:05.678901234Z.
RECEIVED = 1_767_323_045_678_901_234


def make_message(text: str = "hello", values: dict[str, Value] | None = None, received: int = RECEIVED) -> Message:
    """Make a message of a C{MESSAGE} text and any further pairs."""
    return Message({"HOST": "192.0.2.1", "MESSAGE": text, "SOURCEIP": "192.0.2.1", **(values or {})}, received)


@implementer(ILocalObserver)
class MemoryObserver:
    """
    Keeps messages in memory.

    @ivar messages: those that are stored, in order.
    @ivar batch_sizes: how many messages came with each call of C{store}, failed ones included.
    @ivar open_error: raised by C{open} unless None.
    @ivar store_error: raised by C{store} unless None; nothing of the batch is kept.
    @ivar judge: returns why a message is not stored, or None.
    @ivar reopen_error: raised by C{reopen} unless None.
    @ivar is_open: between C{open} and C{close}.
    @ivar reopened: how often C{reopen} succeeded.
    """

    def __init__(self, spec: str = "memory", promise: str = "durable") -> None:
        self.spec = spec
        self.promise = promise
        self.messages: list[Message] = []
        self.batch_sizes: list[int] = []
        self.open_error: Exception | None = None
        self.store_error: BaseException | None = None
        self.judge: Callable[[Message], Exception | None] = _accept
        self.reopen_error: Exception | None = None
        self.is_open = False
        self.reopened = 0
        self._may_store = Event()
        self._may_store.set()

    def block(self) -> None:
        """Make every C{store} block its thread until L{release}. For tests with real threads."""
        self._may_store.clear()

    def release(self) -> None:
        """Let C{store} go on."""
        self._may_store.set()

    def open(self) -> None:
        """Note that it is open, or raise C{open_error}."""
        if self.open_error is not None:
            raise self.open_error
        self.is_open = True

    def prepare(self, message: Message) -> Message:
        """Return the message."""
        return message

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """Keep the batch, or fail as C{store_error} and C{judge} say."""
        self._may_store.wait()
        self.batch_sizes.append(len(batch))
        if self.store_error is not None:
            raise self.store_error
        messages = cast("Sequence[Message]", batch)
        errors = [self.judge(message) for message in messages]
        self.messages += [message for message, error in zip(messages, errors, strict=True) if error is None]
        return errors if any(error is not None for error in errors) else None

    def reopen(self) -> None:
        """Count the call, or raise C{reopen_error}."""
        if self.reopen_error is not None:
            raise self.reopen_error
        self.reopened += 1

    def close(self) -> None:
        """Note that it is closed."""
        self.is_open = False


def _accept(message: Message) -> None:
    """Let every message be stored."""


class StepThread:
    """
    A L{webhookrx.pipeline.observer_thread.ObserverThread} without a thread: each piece of work is done in a later turn
    of the clock.

    @param clock: its turns.
    @param name: as for the real one.
    """

    def __init__(self, clock: IReactorTime, name: str) -> None:
        self.name = name
        self.is_stopped = False
        self._clock = clock
        self._may_work = False
        self._tasks: deque[tuple[Work, Done]] = deque()

    def start(self) -> None:
        """Begin to work, or begin again."""
        self.is_stopped = False
        self.release()

    def run(self, work: Work, done: Done) -> None:
        """Do the work in a turn to come."""
        self._tasks.append((work, done))
        self._clock.callLater(0, self._step)

    def wait(self, seconds: float) -> bool:
        """Do the work now, unless there is none or it is held up."""
        is_done = self._may_work and bool(self._tasks)
        self._step()
        return is_done

    def stop(self) -> None:
        """Note that no more work comes."""
        self.is_stopped = True

    def hold(self) -> None:
        """Do no work until L{release}, as if a slow disk held the thread up."""
        self._may_work = False

    def release(self) -> None:
        """Do the work that is left, a turn each."""
        self._may_work = True
        for _ in self._tasks:
            self._clock.callLater(0, self._step)

    def _step(self) -> None:
        # After hold() and release() there are more steps than tasks.
        if self._may_work and self._tasks:
            work, done = self._tasks.popleft()
            outcome: object
            try:
                outcome = work()
            except BaseException as error:
                outcome = error
            done(outcome)


@implementer(IMessageConsumer)
class RecordingConsumer:
    """
    A consumer that keeps messages and acknowledges them: in the next turn, or when told after L{hold}.

    @param clock: its turns.
    @ivar messages: all that were written, in order.
    @ivar failure: what messages are acknowledged with; None means that they are safe.
    @ivar is_full: refuse everything, whatever the limits say.
    @ivar seconds_to_room: what L{retry_after} returns.
    @ivar takes_lines: whether it gets messages as a file observer would.
    @ivar takes_only_lines: whether large ones are judged as if there were nothing but file observers.
    """

    def __init__(
        self, clock: IReactorTime, max_bytes: int = _LIMITS.queue, max_messages: int = _LIMITS.queue_messages
    ) -> None:
        self.messages: list[Message] = []
        self.failure: NotStored | None = None
        self.is_full = False
        self.seconds_to_room = 1
        self.takes_lines = True
        self.takes_only_lines = False
        self.budget = Budget(max_bytes, max_messages)
        self._clock = clock
        self._gate = ProducerGate(self.budget, clock.seconds, _LIMITS.pause_time)
        self._held = False
        self._waiting: deque[tuple[Acknowledge, int, int]] = deque()

    def hold(self) -> None:
        """Acknowledge nothing until L{acknowledge_all}."""
        self._held = True

    def acknowledge_all(self, failure: NotStored | None = None) -> None:
        """Acknowledge what waits, now, and what comes from now on in its next turn."""
        self._held = False
        self.failure = failure
        self._acknowledge()

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """Register the producer to pause and resume."""
        self._gate.register(producer, streaming)

    def unregisterProducer(self) -> None:
        """Forget the producer."""
        self._gate.unregister()

    def has_room(self, size: int, *, small: bool = False) -> bool:
        """Tell whether a body of so many bytes would find room now."""
        return not self.is_full and self.budget.has_room(size, small=small)

    def reserve(self, size: int, *, small: bool = False) -> bool:
        """Count bytes of a body; False when there is no room."""
        return not self.is_full and self.budget.reserve(size, small=small)

    def release(self, size: int) -> None:
        """Give back what was reserved."""
        self.budget.release(size)

    def prepare(self, message: Message) -> bytes:
        """Return what L{write} takes as prepared: the line of the message."""
        return encode_line(message)

    def write(self, message: Message, acknowledge: Acknowledge, prepared: object = None) -> None:
        """
        Keep a message.

        @raise NoRoom: a limit is reached, or C{is_full} is set.
        """
        size = size_of(message)
        if self.is_full or not self.budget.admit(size):
            raise NoRoom
        self.messages.append(message)
        self._waiting.append((acknowledge, 1, size))
        self._clock.callLater(0, self._end_turn)
        self._gate.pause_if_high()

    def write_all(
        self, messages: Sequence[Message], acknowledge: Acknowledge, prepared: Sequence[object] | None = None
    ) -> None:
        """
        Keep messages, all or none.

        @raise NoRoom: a limit would be passed, or C{is_full} is set.
        """
        size = sum(map(size_of, messages))
        if self.is_full or not self.budget.admit_all(len(messages), size):
            raise NoRoom
        self.messages += messages
        self._waiting.append((acknowledge, len(messages), size))
        self._clock.callLater(0, self._end_turn)
        self._gate.pause_if_high()

    def retry_after(self) -> int:
        """Return C{seconds_to_room}."""
        return self.seconds_to_room

    def _end_turn(self) -> None:
        if not self._held:
            self._acknowledge()

    def _acknowledge(self) -> None:
        # A callback may write more; those messages are acknowledged in a later turn.
        for _ in range(len(self._waiting)):
            acknowledge, count, size = self._waiting.popleft()
            self.budget.remove(count, size)
            acknowledge(self.failure)
        self._gate.resume_if_low()
