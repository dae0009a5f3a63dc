"""
The chain: takes messages from the web side, brings each to every observer, and says when all have it safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.config.settings import MiB
from webhookrx.errors import ConfigError, NoRoom, NotStored
from webhookrx.interfaces import IMessageConsumer
from webhookrx.pipeline.budget import Budget, size_of
from webhookrx.pipeline.group_commit import Batch, Lane, text_of
from webhookrx.pipeline.producer_gate import ProducerGate

if TYPE_CHECKING:
    from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime

    from webhookrx.interfaces import Acknowledge, IMessageObserver, Prepared
    from webhookrx.message.message import Message
    from webhookrx.pipeline.group_commit import Report
    from webhookrx.pipeline.worker import Worker

#: Messages of one turn beyond this go out as further batches, so that one C{store} stays bounded in time.
MAX_BATCH_BYTES = 4 * MiB

_log = Logger()

_STRENGTHS = {"queued": 0, "written": 1, "durable": 2}


@implementer(IMessageConsumer)
class Chain:
    """
    Brings messages to observers in batches, bounded by bytes and count.

    Every observer gets every message, whatever becomes of it at the others. With C{ack} C{"queued"} a message is
    acknowledged at the end of its turn, else when the last observer is done with it.

    @param clock: tells when a turn ends.
    @param observers: at least one; not open yet.
    @param ack: C{"durable"}, C{"written"} or C{"queued"}.
    @param max_bytes: limit of what is reserved, queued and being stored, together.
    @param max_messages: limit of messages without their last acknowledgement.
    @param make_worker: makes the worker of one observer from a name for it;
        C{partial(ThreadWorker, reactor)} outside tests.
    @param report: told of each failure in the reactor thread: an observer's spec, what went wrong, and how many
        messages it hit, 0 when none. It may be called for every message, so it limits its own rate;
        it must not raise.
    @param max_batch_bytes: a single message may be larger.
    """

    def __init__(
        self,
        clock: IReactorTime,
        observers: Sequence[IMessageObserver],
        *,
        ack: str,
        max_bytes: int,
        max_messages: int,
        make_worker: Callable[[str], Worker],
        report: Report,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        if not observers:
            raise ValueError("a chain needs an observer")
        self.budget = Budget(max_bytes, max_messages)
        self._clock = clock
        self._ack = ack
        self._acknowledge_on_flush = ack == "queued"
        self._report = report
        self._max_batch_bytes = max_batch_bytes
        self._gate = ProducerGate(self.budget)
        self._ways: list[tuple[Callable[[Message], Prepared], str]] = []
        self._lanes = [
            Lane(
                observer,
                self._way_of(observer),
                make_worker(f"observer-{number}"),
                max_batch_bytes,
                self.flush,
                self._settle,
                report,
            )
            for number, observer in enumerate(observers)
        ]
        self._gathered = [Batch(len(self._ways))]
        self._flush_call: IDelayedCall | None = None
        self._running = False
        self._stopping: list[Deferred[None]] = []
        self._open_lanes = 0

    # IMessageConsumer

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """
        Register who is paused above three quarters of either limit, and resumed at half of both.

        @raise RuntimeError: there is one already.
        @raise ValueError: C{streaming} is false.
        """
        self._gate.register(producer, streaming)

    def unregisterProducer(self) -> None:
        """Forget the producer."""
        self._gate.unregister()

    def has_room(self, size: int, *, small: bool = False) -> bool:
        """Tell whether a body of so many bytes would find room now."""
        return self._running and self.budget.has_room(size, small=small)

    def reserve(self, size: int, *, small: bool = False) -> bool:
        """Count C{size} bytes of a body that is arriving; False, and nothing counted, when there is no room."""
        return self._running and self.budget.reserve(size, small=small)

    def release(self, size: int) -> None:
        """Give back what was reserved."""
        self.budget.release(size)

    def write(self, message: Message, acknowledge: Acknowledge) -> None:
        """
        Put a message into the batch of this turn. C{acknowledge} is called exactly once, in a later turn.

        @raise NoRoom: the queue is full, or the chain does not run; C{acknowledge} is not called.
        """
        if not self._running or self.budget.is_full():
            raise NoRoom
        prepared: list[Prepared | None] = []
        failure: NotStored | None = None
        size = 0
        for prepare, spec in self._ways:
            item: Prepared | None
            try:
                item = prepare(message)
                size += len(item) if type(item) is bytes else size_of(item)
            except Exception as error:
                item = None
                failure = failure or NotStored(f"{spec}: {text_of(error)}")
                self._report(spec, text_of(error), 1)
            prepared.append(item)
        if not self.budget.add_message(size):
            raise NoRoom
        batch = self._gathered[-1]
        if batch.size + size > self._max_batch_bytes and batch.acknowledges:
            batch = Batch(len(self._ways))
            self._gathered.append(batch)
        if failure is not None:
            batch.has_gaps = True
            batch.fail(len(batch.acknowledges), failure)
        for items, item in zip(batch.prepared, prepared, strict=True):
            items.append(item)
        batch.acknowledges.append(acknowledge)
        batch.size += size
        if self._flush_call is None:
            self._flush_call = self._clock.callLater(0, self._end_turn)
        self._gate.grew()

    # The rest of its life

    def start(self) -> None:
        """
        Open the observers and start their workers.

        @raise ConfigError: an observer can't be opened; those before it are closed again.
        """
        opened: list[Lane] = []
        for lane in self._lanes:
            try:
                lane.observer.open()
            except Exception as error:
                for other in opened:
                    with suppress(Exception):  # what stopped the start is the one to tell
                        other.observer.close()
                if isinstance(error, ConfigError):
                    raise
                raise ConfigError(f"observer {lane.observer.spec} can't be opened: {error}") from error
            opened.append(lane)
        for lane in self._lanes:
            lane.start()
        self._open_lanes = len(self._lanes)
        self._running = True

    def flush(self) -> None:
        """
        Hand what was gathered so far to the observers.

        It happens by itself at the end of each turn. But C{callLater} goes by the wall clock, so a clock that is set
        back could hold a turn's end up for as long; something on the monotonic clock should call this now and then.
        """
        if self._flush_call is not None:
            self._flush_call.cancel()
            self._end_turn()

    def reopen(self) -> None:
        """Let all observers close and open anew by name, each between two of its batches. Failures are reported."""
        if self._running:
            for lane in self._lanes:
                lane.reopen()

    def stop(self) -> Deferred[None]:
        """
        Take no more messages, store and acknowledge what is there, and close the observers.

        The result comes when the last one is closed. An observer that hangs holds it up: the caller sets the limit.
        """
        result: Deferred[None] = Deferred()
        if self._running:
            self._running = False
            self._gate.stop()
            self.flush()
            self._stopping.append(result)
            for lane in self._lanes:
                lane.stop(self._lane_stopped)
        elif self._open_lanes:
            self._stopping.append(result)
        else:
            result.callback(None)
        return result

    def weaker_than_ack(self) -> list[str]:
        """Return a warning for each observer whose word means less than the C{--ack} level says. Call it once open."""
        return [
            f"--ack {self._ack} is more than observer {observer.spec} can promise: "
            f"its word means {observer.promise!r}, so a 200 means no more than that"
            for observer in (lane.observer for lane in self._lanes)
            if _STRENGTHS.get(observer.promise, 0) < _STRENGTHS[self._ack]
        ]

    def _way_of(self, observer: IMessageObserver) -> int:
        """Return the index of this observer's way to prepare. Observers with equal C{prepare} share one."""
        for index, (prepare, _) in enumerate(self._ways):
            if prepare == observer.prepare:
                return index
        self._ways.append((observer.prepare, observer.spec))
        return len(self._ways) - 1

    def _end_turn(self) -> None:
        """Hand the gathered batches to every lane, and begin another."""
        self._flush_call = None
        batches = self._gathered
        self._gathered = [Batch(len(self._ways))]
        for batch in batches:
            batch.outstanding = len(self._lanes)
            batch.count = len(batch.acknowledges)
            for lane in self._lanes:
                lane.submit(batch)
        # Only after the lanes have begun: the disk works while the answers are written.
        if self._acknowledge_on_flush:
            for batch in batches:
                _acknowledge(batch)

    def _settle(self, batches: list[Batch]) -> None:
        """Take note that one more lane is done with these batches, and finish those that were its last."""
        for batch in batches:
            batch.outstanding -= 1
            if not batch.outstanding:
                # First the room, so that who is acknowledged can send its next message at once.
                self.budget.remove_messages(batch.count, batch.size)
                if not self._acknowledge_on_flush:
                    _acknowledge(batch)
        self._gate.shrank()

    def _lane_stopped(self) -> None:
        self._open_lanes -= 1
        if not self._open_lanes:
            waiting, self._stopping = self._stopping, []
            for result in waiting:
                result.callback(None)


def _acknowledge(batch: Batch) -> None:
    """Tell everyone who waits for a message of this batch, whatever any of them does about it."""
    failures = batch.failures
    acknowledges, batch.acknowledges = batch.acknowledges, []
    for place, acknowledge in enumerate(acknowledges):
        try:
            acknowledge(failures.get(place))
        except Exception:
            _log.failure("An acknowledgement of a message failed")
