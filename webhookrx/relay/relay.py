"""
The relay: moves records from a consumer to an observer, one batch at a time, and settles what that has stored.

L{Relay.step} does the next thing and returns when to call it again, so that tests need no thread and no clock;
L{webhookrx.relay.relay_thread.RelayThread} is the thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger

from webhookrx.errors import Rejected
from webhookrx.operations.counters import Counters
from webhookrx.pipeline.guarded_calls import error_text
from webhookrx.relay.consumer import FETCH_WAIT, KEEP_ALIVE, Consumer, Record
from webhookrx.relay.dead_letters import dead_letter
from webhookrx.relay.decoding import decode_record
from webhookrx.relay.part import RelayPart
from webhookrx.relay.target import RelayTarget
from webhookrx.spool.drain_log import NOT_ENCODED, RefusalLog, printable

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared
    from webhookrx.message.message import Message

RECORDS: Final = "relay_records"
BYTES: Final = "relay_bytes"
TEXTS: Final = "relay_texts"
REDELIVERED: Final = "relay_redelivered"
STORED: Final = "relay_stored"
DEAD: Final = "relay_dead"
LOST: Final = "relay_lost"
COUNTS: Final = (RECORDS, BYTES, TEXTS, REDELIVERED, STORED, DEAD, LOST)
"""Names of what is counted."""

MANY: Final = 50
"""Records that come at once, behind which more are likely: a larger batch costs each message less."""

_log = Logger()


class _Held:
    """
    A record that the relay has not done with.

    @ivar prepared: the message as the observer takes it; None before it is encoded, and once it is refused.
    @ivar letter: the dead letter as its observer takes it; None until it is refused.
    @ivar done: it is stored, as one or the other.
    """

    __slots__ = ("done", "letter", "message", "prepared", "record")

    def __init__(self, record: Record, message: Message) -> None:
        self.record = record
        self.message = message
        self.prepared: Prepared | None = None
        self.letter: Prepared | None = None
        self.done = False


class Relay:
    """
    Moves records. Use it in one thread, but for L{finish}, L{reopen} and what is read.

    @param consumer: open; L{close} closes it.
    @param target: where messages go; likewise.
    @param dead: where messages go that the target refuses for good; None if it refuses none.
    @param counters: only this thread adds to it.
    @param jitter: a number from 0 to 1.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    @ivar broker: whether the broker delivers.
    @ivar targets: the observer, and that of dead letters.
    @ivar held: how many records are not settled.
    @ivar lag: how many wait in the broker, if that is known.
    @ivar beat: the time of the last sign of life.
    """

    def __init__(
        self,
        consumer: Consumer,
        target: RelayTarget,
        dead: RelayTarget | None,
        counters: Counters,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.broker = RelayPart(f"Broker {consumer.spec}", "deliver", "delivers", jitter, clock)
        self.held = 0
        self.lag: int | None = None
        self.beat = clock()
        self.targets = (target,) if dead is None else (target, dead)
        self._consumer = consumer
        self._target = target
        self._dead = dead
        self._counters = counters
        self._clock = clock
        self._wall_clock = wall_clock
        self._refusals = RefusalLog(target.spec, clock)
        self._size = target.batch_size
        self._hand: list[_Held] = []
        self._hand_bytes = 0
        self._since = 0.0  # the time of the first record in hand
        self._complete = False  # the batch is not made larger
        self._stored: list[Record] = []  # to be settled
        self._next_call = 0.0  # of the broker
        self._next_offer = 0.0
        self._finishing = False
        self._reopen = False
        for name in COUNTS:
            # The reactor's thread copies the counts: their number must not change.
            counters.add(name, amount=0)

    @property
    def broker_spec(self) -> str:
        """The spec of the consumer, fit for a log line."""
        return self._consumer.spec

    @property
    def is_finished(self) -> bool:
        """Whether L{finish} was called, and nothing is left that can be done now."""
        now = self._clock()
        offers = bool(self._hand) and now >= self._next_offer
        settles = bool(self._stored) and now >= self._next_call
        return self._finishing and not offers and not settles

    def finish(self) -> None:
        """Fetch no more; store and settle the batch under way as far as that can be done now. Call it in any thread."""
        self._finishing = True
        self._consumer.hurry()

    def reopen(self) -> None:
        """Reopen consumer and observers before the next batch; call it in any thread."""
        self._reopen = True

    def step(self) -> float:
        """
        Do the next thing. Never raises.

        @return: seconds until the next step is due; 0 for at once.
        """
        try:
            return self._step()
        except BaseException as error:
            # Even SystemExit: a thread that ends here leaves every later record waiting for ever.
            _log.failure("The relay has failed and tries again")
            self._next_call = self._next_offer = self._clock() + self.broker.failed(error)
            return KEEP_ALIVE
        finally:
            self._look()

    def close(self) -> None:
        """Close observers and consumer, after the last step. What is not settled goes to other relays of the group."""
        self._refusals.end()
        for target in self.targets:
            for problem in target.close(self._stay):
                _log.error("Observer {spec} could not be closed: {why}", spec=target.spec, why=printable(problem))
        try:
            self._consumer.close()
        except BaseException as error:
            self._could_not("be left", error)

    # -- one step ------------------------------------------------------------------------------------------------

    def _step(self) -> float:
        if self._reopen:
            self._reopen = False
            self._reopen_all()
        self._refusals.tick()
        now = self._clock()
        if now >= self._next_call and self._stored:
            return self._settle()
        if self._hand and (self._complete or self._finishing):
            if now >= self._next_offer:
                return self._offer()
            due = self._next_offer
        else:
            if now >= self._next_call and not self._finishing:
                return self._fetch()
            due = self._next_call
        self._stay()
        return min(max(due - now, 0.0), KEEP_ALIVE)

    def _fetch(self) -> float:
        """Fetch records until the batch is large enough, or the first one has waited for long enough."""
        size = self._size
        wait = min(FETCH_WAIT, self._wait_left()) if self._hand else FETCH_WAIT
        try:
            records = self._consumer.fetch(size.messages - len(self._hand), size.bytes - self._hand_bytes, wait)
        except BaseException as error:
            return self._call_failed(error)
        self.broker.succeeded()
        if records and not self._hand:
            self._since = self._clock()
        for record in records:
            self._take(record)
        self._complete = bool(self._hand) and (
            len(self._hand) >= size.messages
            or self._hand_bytes >= size.bytes
            or (self._wait_left() <= 0 and len(records) < MANY)
        )
        return 0.0

    def _wait_left(self) -> float:
        return max(0.0, self._since + self._size.seconds - self._clock())

    def _take(self, record: Record) -> None:
        decoded = decode_record(record, self._wall_clock())
        count = self._counters.add
        count(RECORDS)
        count(BYTES, amount=len(record.value))
        count(TEXTS, amount=not decoded.is_line)
        count(REDELIVERED, amount=record.redelivered)
        self._hand.append(_Held(record, decoded.message))
        self._hand_bytes += record.size

    def _settle(self) -> float:
        try:
            self._consumer.settle(self._stored)
        except BaseException as error:
            # Another relay gets what is lost, and stores it once more.
            self._stored = [record for record in self._stored if self._is_ours(record)]
            return self._call_failed(error)
        self._stored = []
        return 0.0

    def _call_failed(self, error: BaseException) -> float:
        self._next_call = self._clock() + self.broker.failed(error)
        return 0.0

    def _offer(self) -> float:
        """Offer what is in hand: to the observer, and what that refuses for good to the one of dead letters."""
        self._hand = [held for held in self._hand if self._is_ours(held.record)]
        if not self._hand:
            # Another relay has them: what has failed is not tried here any more.
            for target in self.targets:
                target.part.forget()
        failure = self._encode()
        waiting = [held for held in self._hand if held.prepared is not None]
        if waiting:
            failure = self._store(waiting) or failure
        letters = [held for held in self._hand if held.letter is not None]
        dead_failure = self._bury(letters) if letters else None
        self._stored += [held.record for held in self._hand if held.done]
        self._hand = [held for held in self._hand if not held.done]
        self._hand_bytes = sum(held.record.size for held in self._hand)
        self._complete = bool(self._hand)
        pauses = [0.0]
        if failure is not None:
            pauses.append(self._target.part.failed(failure))
        if dead_failure is not None and self._dead is not None:
            pauses.append(self._dead.part.failed(dead_failure))
        self._next_offer = self._clock() + max(pauses)
        return 0.0

    def _encode(self) -> BaseException | None:
        """Encode what is not encoded yet; return why something can't be, and can't be a dead letter either."""
        failure: BaseException | None = None
        for held in self._hand:
            if held.prepared is None and held.letter is None:
                try:
                    held.prepared = self._target.observer.prepare(held.message)
                except MemoryError:
                    raise
                except BaseException as error:
                    # It depends on the message alone, so every retry would fail the same way.
                    failure = self._refuse(held, f"{NOT_ENCODED}: {error_text(error)}", error) or failure
        return failure

    def _store(self, waiting: Sequence[_Held]) -> BaseException | None:
        """Offer messages to the observer; return why one is neither stored nor refused."""
        outcomes = self._target.store([held.prepared for held in waiting if held.prepared is not None], self._stay)
        failure: BaseException | None = None
        for held, outcome in zip(waiting, outcomes, strict=True):
            held.done = outcome is None
            if isinstance(outcome, Rejected):
                failure = failure or self._refuse(held, error_text(outcome), outcome)
            else:
                failure = failure or outcome
        stored = sum(held.done for held in waiting)
        self._counters.add(STORED, amount=stored)
        if failure is None:
            self._target.part.succeeded()
        elif stored:
            self._target.part.progressed()
        return failure

    def _refuse(self, held: _Held, reason: str, error: BaseException) -> BaseException | None:
        """Make a message a dead letter. Return why it can't be one; then it waits until a person has looked."""
        if self._dead is None:
            return _about(held.record, "the message", error)
        letter = dead_letter(held.message, reason, self._target.spec, held.record.origin)
        try:
            held.letter = self._dead.observer.prepare(letter)
        except Exception as problem:
            return _about(held.record, "the dead letter", problem)
        held.prepared = None
        self._refusals.refused(reason)
        return None

    def _bury(self, letters: Sequence[_Held]) -> BaseException | None:
        """Store dead letters; return why one is not stored, which waits until it is, even if it is refused again."""
        assert self._dead is not None
        outcomes = self._dead.store([held.letter for held in letters if held.letter is not None], self._stay)
        for held, outcome in zip(letters, outcomes, strict=True):
            held.done = outcome is None
        self._counters.add(DEAD, amount=sum(held.done for held in letters))
        failures = [(held, outcome) for held, outcome in zip(letters, outcomes, strict=True) if outcome is not None]
        if not failures:
            self._dead.part.succeeded()
            return None
        # A refusal is what a person has to mend; the rest mends itself.
        refusals = [
            _about(held.record, "the dead letter", outcome)
            for held, outcome in failures
            if isinstance(outcome, Rejected)
        ]
        return refusals[0] if refusals else failures[0][1]

    # -- the broker ----------------------------------------------------------------------------------------------

    def _stay(self) -> None:
        """Keep the records, between two other calls of the consumer."""
        self.beat = self._clock()
        try:
            self._consumer.keep_alive()
        except BaseException as error:
            self.broker.failed(error)

    def _is_ours(self, record: Record) -> bool:
        ours = self._consumer.is_ours(record)
        self._counters.add(LOST, amount=not ours)
        return ours

    def _look(self) -> None:
        """Note what others read."""
        self.beat = self._clock()
        self.held = len(self._hand) + len(self._stored)
        try:
            self.lag = self._consumer.lag()
        except BaseException:
            self.lag = None

    def _reopen_all(self) -> None:
        try:
            self._consumer.reopen()
        except BaseException as error:
            self._could_not("be reopened", error)
        for target in self.targets:
            try:
                target.reopen(self._stay)
            except BaseException as error:
                why = printable(error_text(error))
                _log.error("Observer {spec} could not be reopened: {why}", spec=target.spec, why=why)

    def _could_not(self, verb: str, error: BaseException) -> None:
        why = printable(error_text(error))
        _log.error("Broker {spec} could not {verb}: {why}", spec=self._consumer.spec, verb=verb, why=why)


def _about(record: Record, what: str, error: BaseException) -> Rejected:
    """Return an error that names the record for which all others wait: a person has to find it in the broker."""
    kind = "" if isinstance(error, Rejected) else f"{type(error).__name__}: "
    return Rejected(f"{what} of record {record.origin} is refused: {kind}{error_text(error)}")
