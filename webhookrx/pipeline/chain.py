"""
The chain: takes messages, brings each to every observer, and acknowledges it when all have it safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, fail
from zope.interface import implementer

from webhookrx.errors import NoRoom
from webhookrx.interfaces import IMessageConsumer
from webhookrx.pipeline.admission import Budget, DrainRate, ProducerGate
from webhookrx.pipeline.batch import Encoded, EncodedMessage, Encoders
from webhookrx.pipeline.held import HeldMessages
from webhookrx.pipeline.lane import Lane
from webhookrx.pipeline.lanes import Lanes, check_observers
from webhookrx.pipeline.queue_limit import QueueLimit
from webhookrx.settings import Limits, MiB

if TYPE_CHECKING:
    from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
    from twisted.python.failure import Failure

    from webhookrx.interfaces import Acknowledge, IMessageObserver, LaneStatus
    from webhookrx.message.message import Message
    from webhookrx.pipeline.batch import Batch, Report
    from webhookrx.pipeline.lane import Stored
    from webhookrx.pipeline.lane_counts import Counted
    from webhookrx.pipeline.observer_thread import ObserverThread

#: Messages of one turn beyond this go out as further batches, so that one C{store} stays bounded in time.
MAX_BATCH_BYTES = 4 * MiB

_LIMITS = Limits()


def _no_turns(call: Callable[[], None]) -> bool:
    """Leave C{call} to the turns of the reactor."""
    return False


@implementer(IMessageConsumer)
class Chain:
    """
    Brings messages to observers in batches, bounded by bytes and count.

    Every observer gets every message, whatever becomes of it at the others. With C{ack} C{"queued"} a message is
    acknowledged at the end of its turn, else when the last observer is done with it.

    Something must call L{tick} about twice a second.

    @param clock: calls at the end of a turn of the reactor.
    @param observers: at least one, each once; not open yet.
    @param ack: C{"durable"}, C{"written"} or C{"queued"}.
    @param max_bytes: limit of what is reserved, queued and being stored, together.
    @param max_messages: limit of messages without their last acknowledgement.
    @param make_thread: makes the thread of one observer from a name for it;
        C{partial(RealThread, reactor)} outside tests.
    @param report: called with each failure, in the reactor thread: an observer's spec, what went wrong, and how many
        messages it hit, or 0. It may be called for every message, so it limits its own rate; it must not raise.
    @param answer_time: seconds that a C{store} may run before its observer is given nothing more until it is back.
    @param pause_time: seconds, from the first pause, in which the producer may be paused.
    @param stored: called after each C{store}, whatever its outcome, in the reactor thread: the observer's spec,
        messages, bytes, and seconds that it took in the observer's thread; it must not raise.
    @param counted: called now and then with what an observer has counted itself, in the reactor thread; likewise.
    @param monotonic: seconds on a clock that nobody sets, from any thread.
    @param max_batch_bytes: a single message may be larger.
    @param at_turn_end: has a function called at the end of a shorter turn, if one is under way, see
        L{webhookrx.transport.turn_end.TurnEnd.add}; by default there are no such turns.
    """

    def __init__(
        self,
        clock: IReactorTime,
        observers: Sequence[IMessageObserver],
        *,
        ack: str,
        max_bytes: int,
        max_messages: int,
        make_thread: Callable[[str], ObserverThread],
        report: Report,
        answer_time: float = _LIMITS.answer_time,
        pause_time: float = _LIMITS.pause_time,
        stored: Stored | None = None,
        counted: Counted | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        at_turn_end: Callable[[Callable[[], None]], bool] = _no_turns,
    ) -> None:
        self.budget = Budget(max_bytes, max_messages)
        self._clock = clock
        self._ack = ack
        self._report = report
        self._monotonic = monotonic
        self._max_batch_bytes = max_batch_bytes
        self._make_thread = make_thread
        self._stored = stored
        self._counted = counted
        self._gate = ProducerGate(self.budget, monotonic, pause_time)
        self._drain_rate = DrainRate(monotonic())
        self._lanes = Lanes(observers, self._make_lane, answer_time, monotonic)
        self._gathered: list[Batch] = []
        self._find_encoders()
        self._at_turn_end = at_turn_end
        self._hand_over_due = False  # something is gathered, and its turn has an end
        self._flush_call: IDelayedCall | None = None  # by the reactor's turn
        self._running = False  # between start() and stop()
        self._takes = False  # running, and observers are not being exchanged
        self._held = HeldMessages(self.budget)  # what comes meanwhile
        self._replaced: Deferred[None] | None = None
        self._stopping: list[Deferred[None]] = []

    # -- IMessageConsumer ----------------------------------------------------------------------------------------

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """
        Register the producer, to be paused above three quarters of either limit and resumed at half of both.

        @raise RuntimeError: another one is registered.
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

    def prepare(self, message: Message) -> EncodedMessage:
        """Encode a message for the present observers, for L{write}. It may take long; see L{webhookrx.yield_point}."""
        return EncodedMessage(self._encoders, self._encoders.encode(message))

    def write(self, message: Message, acknowledge: Acknowledge, prepared: object = None) -> None:
        """
        Put a message into the batch of this turn. C{acknowledge} is called exactly once, at its end or later.

        @param prepared: what L{prepare} made of it; made anew if the observers have changed since.
        @raise NoRoom: the queue is full, or the chain does not run; C{acknowledge} is not called.
        """
        if not self._takes:
            if not self._running:
                raise NoRoom
            self._held.add(message, acknowledge)
            self._gate.pause_if_high()
            return
        budget = self.budget
        if budget.bytes > budget.ample and budget.is_full():  # encoding it would be in vain
            raise NoRoom
        if type(prepared) is EncodedMessage and prepared.encoders is self._encoders:
            encoded = prepared.content
        else:
            encoded = self._encoders.encode(message)
        if not budget.admit(encoded[1]):
            raise NoRoom
        self._gather(encoded, acknowledge)

    def write_all(
        self, messages: Sequence[Message], acknowledge: Acknowledge, prepared: Sequence[object] | None = None
    ) -> None:
        """
        Put messages into batches of this turn, all or none, with one acknowledgement: the first error wins.

        @param prepared: what L{prepare} made of each; made anew if the observers have changed since.
        @raise NoRoom: the queue has no room for all, or the chain does not run; C{acknowledge} is not called.
        """
        if not self._takes:
            if not self._running:
                raise NoRoom
            self._held.add_all(messages, acknowledge)
            self._gate.pause_if_high()
            return
        if self.budget.is_full():  # encoding them would be in vain
            raise NoRoom
        encoded = self._encoders.encode_all(messages, prepared)
        if not self.budget.admit_all(len(encoded), sum([size for _, size, _ in encoded])):
            raise NoRoom
        self._gather_all(encoded, acknowledge)

    def retry_after(self) -> int:
        """Return after how many seconds there should be room again, by how fast the queue drained lately; 1 to 60."""
        budget = self.budget
        return self._drain_rate.seconds_for(
            self._monotonic(), budget.messages_over_low_mark(), budget.bytes_over_low_mark()
        )

    # -- the rest of its life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """
        Open the observers and start their threads.

        @raise ConfigError: an observer can't be opened; those before it are closed again.
        """
        self._lanes.start()
        self._running = self._takes = True

    def tick(self) -> None:
        """
        Do what is due by time; call this about every half second of the monotonic clock.

        It hands over what was gathered, too: that happens by itself at the end of each turn, but C{callLater} goes by
        the wall clock, so a clock that is set back could hold a turn's end up for as long.
        """
        now = self._monotonic()
        self.flush()
        self._drain_rate.tick(now, self.budget.messages)
        self._lanes.tick(now)
        self._update_cap()

    def give_up(self) -> None:
        """Wait no longer for what observers have not stored: acknowledge it as not stored."""
        self._lanes.give_up()

    def flush(self) -> None:
        """Hand what was gathered so far to the observers."""
        if self._hand_over_due:
            if self._flush_call is not None:
                self._flush_call.cancel()
            self._hand_over()

    def reopen(self) -> None:
        """Let all observers close and open anew by name, each between two of its batches. Failures are reported."""
        if self._takes:
            self._lanes.reopen()

    def replace(self, observers: Sequence[IMessageObserver], *, ack: str) -> Deferred[None]:
        """
        Have exactly these observers from now on. One that is there already goes on as it is.

        Messages are taken all the time. Earlier ones go to the old observers; those that come while observers leave
        wait for the new ones. An observer that leaves and does not finish within C{answer_time}, or is known to hang,
        is left behind, and what it has not stored has failed.

        @return: errbacks with L{ConfigError} when a new observer can't be opened; then all is as it was. An old
            observer that can't be opened again is reported, and fails its messages until it can be.
            With C{ValueError}: no observer, or one of them twice. With C{RuntimeError}: the chain does not run, or
            observers are being replaced already.
        """
        if not self._takes:
            return fail(RuntimeError("observers can be replaced only while the chain runs, and once at a time"))
        try:
            check_observers(observers)
        except ValueError:
            return fail()
        result: Deferred[None] = Deferred()
        # Before the flush: an acknowledgement in it may bring the next message of its sender, which must be held.
        self._takes = False
        self._replaced = result
        self.flush()
        self._update_cap()
        Deferred.fromCoroutine(self._lanes.exchange(observers)).addBoth(self._exchanged, ack)
        return result

    def set_limits(self, *, max_bytes: int, max_messages: int, answer_time: float, pause_time: float) -> None:
        """Set other limits; see the constructor."""
        self.budget.resize(max_bytes, max_messages)
        self._lanes.answer_time = answer_time
        self._gate.pause_time = pause_time
        self._gate.pause_if_high()
        self._gate.resume_if_low()

    def stop(self) -> Deferred[None]:
        """
        Take no more messages, store and acknowledge those that wait, and close the observers.

        The result comes when the last one is closed. An observer that hangs delays it: the caller sets a deadline.
        """
        result: Deferred[None] = Deferred()
        if self._running:
            self._running = self._takes = False
            self._stopping.append(result)
            self._gate.stop()
            if self._replaced is None:
                self._stop_lanes()
        elif self._stopping:
            self._stopping.append(result)
        else:
            result.callback(None)
        return result

    # -- status ----------------------------------------------------------------------------------------------------

    def lanes(self) -> list[LaneStatus]:
        """Return the status of each observer."""
        return self._lanes.statuses(self._monotonic())

    @property
    def is_stuck(self) -> bool:
        """Whether an observer has not answered for too long."""
        return any(lane.is_stalled for lane in self._lanes.current)

    def weaker_than_ack(self) -> list[str]:
        """Return a warning for each observer that promises less than the C{--ack} level. Call it once they are open."""
        return self._lanes.weaker_than(self._ack)

    # -- gathering -------------------------------------------------------------------------------------------------

    def _gather(self, encoded: Encoded, acknowledge: Acknowledge) -> None:
        """Put a message that is counted into the batch of this turn."""
        batch = self._gathered[-1]
        items, size, failure = encoded
        if batch.size + size > self._max_batch_bytes and batch.acknowledges:
            batch = self._encoders.new_batch()
            self._gathered.append(batch)
        batch.add(items, size, failure, acknowledge)
        if not self._hand_over_due:
            self._await_turn_end()
        if self.budget.is_high:
            self._gate.pause_if_high()

    def _gather_all(self, encoded: Sequence[Encoded], acknowledge: Acknowledge) -> None:
        """Put messages that are counted, and have one acknowledgement, into batches of this turn."""
        if not self._gathered[-1].acknowledges:
            self._gathered.pop()
        self._gathered += self._encoders.bundle_batches(encoded, acknowledge, self._max_batch_bytes)
        self._gathered.append(self._encoders.new_batch())
        if not self._hand_over_due:
            self._await_turn_end()
        self._gate.pause_if_high()

    def _await_turn_end(self) -> None:
        self._hand_over_due = True
        if not self._at_turn_end(self._end_turn):
            self._flush_call = self._clock.callLater(0, self._end_turn)

    def _end_turn(self) -> None:
        """Hand over what this turn has gathered, and acknowledge it at once where observers are quick."""
        if not self._hand_over_due:
            return  # it was flushed before
        self._hand_over()
        if self._ack != "queued":
            # All of them are at work by now. When one takes its time, the answers wait anyway.
            for lane in self._lanes.current:
                if not lane.await_store():
                    break

    def _hand_over(self) -> None:
        """Hand the gathered batches to every lane, and begin another."""
        self._hand_over_due = False
        self._flush_call = None
        batches = self._gathered
        if not batches[-1].acknowledges:
            batches.pop()  # nothing came after messages that have one acknowledgement
        self._gathered = [self._encoders.new_batch()]
        refused: list[Batch] = []
        lanes, columns = self._lanes.current, self._encoders.columns
        for batch in batches:
            batch.outstanding = len(lanes)
            batch.count = len(batch.columns[0])
            for lane, column in zip(lanes, columns, strict=True):
                if not lane.submit(batch, batch.columns[column]):
                    refused.append(batch)
        # Only after the lanes have begun: the disk works while the answers are written.
        if refused:
            self._settle(refused)
        if self._ack == "queued":
            for batch in batches:
                batch.acknowledge()

    def _settle(self, batches: list[Batch]) -> None:
        """Note that one more lane is done with these batches, and finish those that were its last."""
        self._update_cap()
        for batch in batches:
            batch.outstanding -= 1
            if not batch.outstanding:
                # First the room, so that a sender that gets its answer can send its next message at once.
                self.budget.remove(batch.count, batch.size)
                self._drain_rate.left(batch.count, batch.size)
                batch.acknowledge()
        self._gate.resume_if_low()

    def _update_cap(self) -> None:
        """Refuse early what an observer that can't keep up would not store soon."""
        # While observers are exchanged nothing drains, and that is no fault of the senders.
        cap = min([lane.limit.cap for lane in self._lanes.current]) if self._replaced is None else inf
        if cap != self.budget.cap:
            was, self.budget.cap = self.budget.cap, cap
            if was == inf:
                # A sender that is not read from waits all the same, only elsewhere.
                self._gate.resume()

    # -- lanes -----------------------------------------------------------------------------------------------------

    def _make_lane(self, observer: IMessageObserver, number: int) -> Lane:
        return Lane(
            observer,
            self._make_thread(f"observer-{number}"),
            QueueLimit(self._max_batch_bytes),
            flush=self.flush,
            settle=self._settle,
            report=self._report,
            stored=self._stored,
            counted=self._counted,
            changed=self._lane_changed,
            monotonic=self._monotonic,
        )

    def _find_encoders(self) -> None:
        """Encode for the present observers from now on."""
        self._encoders = Encoders([lane.observer for lane in self._lanes.current], self._report)
        self.takes_lines = self._encoders.make_lines
        self.takes_only_lines = self._encoders.make_only_lines
        self._gathered = [self._encoders.new_batch()]

    def _exchanged(self, outcome: Failure | None, ack: str) -> None:
        """The lanes are the new ones, or the old ones again: go on with what was held."""
        result, self._replaced = self._replaced, None
        assert result is not None
        if outcome is None:
            self._ack = ack
        self._find_encoders()
        self._takes = self._running
        self._held.release(self._encoders, self._gather, self._gather_all)
        self._update_cap()
        self._gate.resume_if_low()
        if self._stopping:
            self._stop_lanes()
        result.callback(outcome)

    def _lane_changed(self) -> None:
        self._lanes.proceed()

    def _stop_lanes(self) -> None:
        self.flush()
        self._lanes.stop(self._stopped)

    def _stopped(self) -> None:
        waiting, self._stopping = self._stopping, []
        for result in waiting:
            result.callback(None)
