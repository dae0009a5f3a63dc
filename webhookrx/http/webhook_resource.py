"""
Where a request becomes a message: it carries values to the decision, messages to the chain, and answers back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.errors import INTERNAL_ERROR, NO_ROOM, NOT_STORED, UNPACK_RATIO, NoRoom, NotStored, Reason
from webhookrx.http.answers import FAILED, RECEIVED, refusal_now
from webhookrx.http.interfaces import IExchange, IReceiver
from webhookrx.intake.encodings import ALWAYS_UNPACKED
from webhookrx.intake.head import Head
from webhookrx.intake.json_body import count_brackets
from webhookrx.intake.judge import Admission, Receipt, Refused, SourceRules, admit, judge, unpacked
from webhookrx.interfaces import IMessageConsumer, ITraffic
from webhookrx.message.message import Message


class Slices(Protocol):
    """Does long work: L{webhookrx.http.time_slices.TimeSlices}, or L{AtOnce}."""

    def has_room(self, size: int) -> bool:
        """Tell whether work on so many bytes would begin soon."""

    def run(
        self, work: Callable[[], Any], done: Callable[[Any], None], size: int, is_wanted: Callable[[], bool]
    ) -> None:
        """Do work, and call back with its outcome, with a L{Failure}, or with None if it was not wanted any more."""


class AtOnce:
    """Does work in one go."""

    def has_room(self, size: int) -> bool:
        """There is nothing to wait for."""
        return True

    def run(
        self, work: Callable[[], Any], done: Callable[[Any], None], size: int, is_wanted: Callable[[], bool]
    ) -> None:
        """See L{Slices.run}."""
        try:
            outcome = work()
        except Exception:
            outcome = Failure()
        done(outcome)


#: Takes a request that was read: its head, and its body unpacked.
Record: TypeAlias = Callable[[Head, bytes], None]

DIRECT: Final = 128 * 1024
"""Bytes of a body, unpacked, that is judged at once: some milliseconds at most."""

MOST_SEPARATORS: Final = 1000
"""Commas and brackets of a body that is judged at once, if it may be JSON: each value may cost ten microseconds."""

UNPACKED_DIRECTLY: Final = 2 * 1024 * 1024
"""Bytes that a body may turn out to have which is unpacked at once."""


@implementer(IReceiver)
class WebhookResource:
    """
    One source.

    @param receipts: gives the next L{Receipt}.
    @param clock: seconds on the monotonic clock.
    @param slices: does what a large body needs.
    @param record: is given each request before it is judged, with its body unpacked; None: nobody wants them.
    """

    def __init__(
        self,
        rules: SourceRules,
        consumer: IMessageConsumer,
        traffic: ITraffic,
        receipts: Callable[[], Receipt],
        clock: Callable[[], float] = time.monotonic,
        slices: Slices | None = None,
        record: Record | None = None,
    ) -> None:
        self._rules = rules
        self._consumer = consumer
        self._traffic = traffic
        self._receipts = receipts
        self._slices = slices or AtOnce()
        self._clock = clock
        self._record = record

    def admit(self, head: Head, raw_groups: dict[str, bytes]) -> Admission | Refused:
        """See L{webhookrx.intake.judge.admit}."""
        return admit(head, self._rules, raw_groups)

    def receive(self, exchange: IExchange, body: bytes) -> None:
        """See L{IReceiver.receive}."""
        admission = exchange.admission
        wire_size = len(body)
        if admission.encodings:
            if max(ALWAYS_UNPACKED, wire_size * self._rules.unpack_ratio) > UNPACKED_DIRECTLY:
                self._unpack_in_slices(exchange, body)
                return
            plain = unpacked(admission, body)
            if isinstance(plain, Refused):
                self.refuse(exchange, plain.reason, plain.detail)
                return
            body = plain
        if len(body) > DIRECT or (len(body) > _FEW and self._rules.parse_json and _has_many_values(body)):
            self._judge_in_slices(exchange, body, wire_size)
        else:
            if self._record is not None:
                self._record(exchange.head, body)
            self._take(exchange, self._judge(exchange.head, admission, body, self._receipts()), wire_size)

    #: Returns L{Refused}, or what L{_take} knows.
    _judge: Callable[[Head, Admission, bytes, Receipt], Any] = staticmethod(judge)

    def _take(self, exchange: IExchange, verdict: Any, wire_size: int, prepared: object = None) -> None:
        """
        Do as was decided.

        @param prepared: see L{IMessageConsumer.write}.
        """
        if isinstance(verdict, Refused):
            self.refuse(exchange, verdict.reason, verdict.detail)
        elif self._write(exchange, verdict.message, prepared):
            self._traffic.accepted(self._rules.name, verdict.notes, verdict.left_out, wire_size)

    def _write(self, exchange: IExchange, message: Message, prepared: object) -> bool:
        """Hand a message over; False, and the request refused, when there is no room."""
        try:
            self._consumer.write(message, exchange, prepared)
        except NoRoom:
            self.refuse(exchange, NO_ROOM, NO_ROOM.detail)
            return False
        return True

    def acknowledged(self, exchange: IExchange, error: NotStored | None) -> None:
        """See L{IReceiver.acknowledged}."""
        if error is not None:
            self.refuse(exchange, NOT_STORED, NOT_STORED.detail)
        elif exchange.answer(RECEIVED):
            self._traffic.answered(self._rules.name, self._clock() - exchange.began)

    def refuse(self, exchange: IExchange, reason: Reason, detail: str) -> None:
        """Refuse a request, and say so."""
        head = exchange.head
        # A sender that gains by unpacking pays for each try with a connection.
        if exchange.answer(refusal_now(reason, detail, self._consumer), close=reason is UNPACK_RATIO):
            self._traffic.refused(reason, detail, str(head.peer), head.method, head.path, self._rules.name)

    # -- large bodies --------------------------------------------------------------------------------------------

    def _unpack_in_slices(self, exchange: IExchange, body: bytes) -> None:
        """Unpack a body that may become large, and go on with what it has become."""

        def done(plain: bytes | Refused) -> None:
            if isinstance(plain, Refused):
                self.refuse(exchange, plain.reason, plain.detail)
            else:
                self._judge_in_slices(exchange, plain, len(body))

        self._run(exchange, len(body), 0, lambda: unpacked(exchange.admission, body), done)

    def _judge_in_slices(self, exchange: IExchange, body: bytes, wire_size: int) -> None:
        """Make a message of a large body, and prepare it for the observers."""

        def work() -> tuple[Any, object]:
            if self._record is not None:
                self._record(exchange.head, body)
            verdict = self._judge(exchange.head, exchange.admission, body, self._receipts())
            message = getattr(verdict, "message", None)
            return verdict, None if message is None else self._consumer.prepare(message)

        def done(outcome: tuple[Any, object]) -> None:
            verdict, prepared = outcome
            self._take(exchange, verdict, wire_size, prepared)

        self._run(exchange, len(body), len(body), work, done)

    def _run(
        self, exchange: IExchange, counted: int, size: int, work: Callable[[], Any], done: Callable[[Any], None]
    ) -> None:
        """
        Do work on a request that may need many milliseconds, unless its sender has gone by then.

        @param counted: bytes that are counted meanwhile.
        @param size: see L{Slices.run}.
        """
        consumer, slices = self._consumer, self._slices
        if not (slices.has_room(size) and consumer.reserve(counted, small=False)):
            self.refuse(exchange, NO_ROOM, NO_ROOM.detail)
            return

        def ended(outcome: Any) -> None:
            consumer.release(counted)
            if isinstance(outcome, Failure):
                self._traffic.failed("A request could not be judged.", outcome)
                if exchange.answer(FAILED):
                    head, detail = exchange.head, INTERNAL_ERROR.detail
                    self._traffic.refused(
                        INTERNAL_ERROR, detail, str(head.peer), head.method, head.path, self._rules.name
                    )
            elif outcome is None:
                self._traffic.dropped_unread()
            else:
                done(outcome)

        slices.run(work, ended, size, exchange.is_open)


#: Bytes of a body whose values are not worth counting.
_FEW: Final = 8 * 1024


def _has_many_values(body: bytes) -> bool:
    return body.count(b",") + count_brackets(body) > MOST_SEPARATORS
