"""
The resource of a guarded source: takes each request through the decisions of its guard, and on to the chain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.errors import INTERNAL_ERROR, NO_ROOM, NOT_STORED, NoRoom, NotStored, Reason, RequestRefused
from webhookrx.guard.bundle_judge import BundleJudge, JudgedBundle
from webhookrx.guard.guard import Ending, Guard
from webhookrx.guard.passage import Passage
from webhookrx.http.answers import RECEIVED, FixedAnswer, answer_of, refusal_to
from webhookrx.http.head import RequestHead
from webhookrx.http.interfaces import IExchange, IReceiver, Verdict
from webhookrx.http.resources import (
    DIRECT,
    FEW,
    Judge,
    RecordRequest,
    WebhookResource,
    costs_connection,
    has_many_values,
)
from webhookrx.http.time_slices import TimeSlices
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Admission, Dropped, Receipt, Refused, unpacked
from webhookrx.interfaces import Acknowledge, Claim, IDeliveryWindow, IMessageConsumer, ITraffic
from webhookrx.senders.handshakes import HandshakeAnswer

DUPLICATE = FixedAnswer(200, b'{"status":"received","duplicate":true}')
"""The answer to a delivery that was stored before."""


class GuardedResource(WebhookResource):
    """
    One guarded source, or connector.

    @param window: remembers deliveries; needed where the guard looks them up.
    """

    is_guarded = True

    def __init__(
        self,
        guard: Guard,
        window: IDeliveryWindow | None,
        consumer: IMessageConsumer,
        traffic: ITraffic,
        receipts: Callable[[], Receipt],
        slices: TimeSlices,
        judge: Judge | None = None,
        for_lines: Judge | None = None,
        record: RecordRequest | None = None,
    ) -> None:
        super().__init__(guard.rules, consumer, traffic, receipts, slices, judge, for_lines, record)
        self.guard = guard
        self._window = window
        self._judge_bundle = BundleJudge(guard.rules, judge, for_lines) if guard.parts.splitter is not None else None

    def admit(self, head: Head, by_path: Admission | Refused) -> Verdict:
        """See L{WebhookResource.admit}."""
        verdict = self.guard.admit(head, by_path, head.content_length if isinstance(head, RequestHead) else None)
        if type(verdict) is Passage:
            admission = verdict.admission
            assert admission is not None, "its head was admitted"
            return GuardedRequest(self, verdict), admission
        if type(verdict) is HandshakeAnswer:
            self._traffic.asked(self.rules.name, verdict.kind)
            return answer_of(verdict.reply)
        assert type(verdict) is Refused
        return verdict

    def refusal(self, head: Head, reason: Reason, detail: str, retry_after: int = 0) -> FixedAnswer:
        """See L{IReceiver.refusal}."""
        refused = Refused(reason, detail, self.rules.name, retry_after=retry_after)
        ending = self.guard.in_sender_words(refused, head)
        assert isinstance(ending, Refused), "a refusal stays one"
        return refusal_to(ending, self._consumer)

    # -- on the body ---------------------------------------------------------------------------------------------

    def take(self, request: GuardedRequest, body: bytes) -> None:
        """Take a request with its body as it came."""
        passage, exchange = request.passage, request.exchange
        refused = self.guard.more(passage, len(body))
        if refused is not None:
            self._end(request, refused)
        elif not exchange.admission.encodings:
            self._check(request, body)
        else:
            passage.wire = body
            unpack = partial(unpacked, exchange.admission, body)
            if self._may_grow(len(body)):
                self._run(exchange, len(body), 0, unpack, partial(self._check, request))
            else:
                self._check(request, unpack())

    def _check(self, request: GuardedRequest, body: bytes | Refused) -> None:
        """Have the guard decide on a body, unpacked."""
        if isinstance(body, Refused):
            self._end(request, body)
            return
        request.passage.body = body
        guard = self.guard
        if guard.is_long(len(body)) or (guard.reads_bodies and self._is_large(body)):
            judge, go_on = partial(self._judged, request), partial(self._go_on, request)
            self._run(request.exchange, len(body), len(body), judge, go_on)
        else:
            self._go_on(request, self._judged(request))

    def _judged(self, request: GuardedRequest) -> tuple[Ending | None]:
        passage = request.passage
        if self._record is not None:
            self._record(passage.head, passage.body)
        return (self.guard.judge(passage),)

    def _go_on(self, request: GuardedRequest, judged: tuple[Ending | None]) -> None:
        """Go on with a request that the guard has decided on."""
        (ending,) = judged
        if ending is not None:
            self._end(request, ending)
            return
        passage, name = request.passage, self.rules.name
        verified = passage.verified
        if verified is not None:
            self._traffic.verified(name, verified.secret)
            if verified.skew is not None:
                self._traffic.skewed(name, verified.skew)
        if passage.token:
            self._traffic.verified(name, passage.token)
        if passage.key:
            self._look_up(request)
        else:
            self._store(request)

    # -- the idempotency window ----------------------------------------------------------------------------------

    def _look_up(self, request: GuardedRequest) -> None:
        """Claim a delivery, which may have to wait for another request with the same one."""
        window, seconds = self._window, self.guard.parts.window
        assert window is not None
        assert seconds is not None
        claim = window.claim(request.passage.key, seconds, partial(self._told, request))
        if claim is not Claim.UNDER_WAY:
            self._claimed(request, claim)
            return
        size = len(request.passage.body)
        if self._consumer.reserve(size, small=False):
            request.reserved = size
        else:
            self._end(request, Refused(NO_ROOM, NO_ROOM.detail, self.rules.name))

    def _told(self, request: GuardedRequest, claim: Claim) -> None:
        """Go on with a request that has waited, unless it has its answer."""
        reserved, request.reserved = request.reserved, 0
        if reserved:
            self._consumer.release(reserved)
        if not request.is_ended and request.exchange.is_open():
            self._claimed(request, claim)
        elif claim is Claim.NEW:
            self._settle(request, stored=False, is_ours=True)

    def _claimed(self, request: GuardedRequest, claim: Claim) -> None:
        try:
            if claim is Claim.NEW:
                request.has_claim = True
                self._store(request)
            elif claim is Claim.KNOWN:
                self._answer_known(request)
            else:
                self._end(request, Refused(NOT_STORED, NOT_STORED.detail, self.rules.name))
        except Exception:
            # The claim must not stay, and this may be a call of another request's end.
            self._settle(request, stored=False)
            self._traffic.failed("A request could not be judged.", Failure())
            self._end(request, Refused(INTERNAL_ERROR, INTERNAL_ERROR.detail, self.rules.name))

    def _answer_known(self, request: GuardedRequest) -> None:
        passage, guard = request.passage, self.guard
        refused = guard.answer(passage) if guard.parts.answers is not None else None
        if refused is not None:
            self._end(request, refused)
            return
        self._traffic.duplicate(self.rules.name)
        request.is_ended = True
        request.exchange.answer(DUPLICATE if passage.reply is None else answer_of(passage.reply))

    def _settle(self, request: GuardedRequest, *, stored: bool, is_ours: bool = False) -> None:
        """Give up the claim of a request, if it has one."""
        if request.has_claim or is_ours:
            request.has_claim = False
            assert self._window is not None
            self._window.settle(request.passage.key, stored)

    # -- storing -------------------------------------------------------------------------------------------------

    def _store(self, request: GuardedRequest) -> None:
        """Make messages of a request, and hand them over."""
        passage = request.passage
        body = passage.body
        is_usual = self._judge_usual is not None and not self.guard.on_storing and self._makes_only_lines()
        splitter = self.guard.parts.splitter
        is_large = len(body) > DIRECT or (not is_usual and self._is_large(body))
        if is_large or (splitter is not None and splitter.may_hold_many(body)):
            work = partial(self._made, request, is_large=True)
            given_up = partial(self._settle, request, stored=False)
            self._run(request.exchange, len(body), len(body), work, partial(self._hand_over, request), given_up)
        else:
            self._hand_over(request, self._made(request, is_large=False))

    def _made(
        self, request: GuardedRequest, *, is_large: bool
    ) -> Ending | JudgedBundle | tuple[Accepted | Dropped | Refused, object]:
        """Return what a request becomes: messages or a message, with what the chain has prepared of it."""
        passage, guard = request.passage, self.guard
        ending = guard.prepare(passage) if guard.on_storing else None
        if ending is not None:
            return ending
        consumer, head, receipt = self._consumer, passage.head, self._receipts()
        by_lines = consumer.takes_lines
        admission, provenance = passage.admission, guard.provenance(passage)
        assert admission is not None, "its head was admitted"
        admission = Admission(self.rules, admission.groups, admission.query, admission.encodings, provenance)
        bundle = passage.bundle
        if bundle is not None:
            assert self._judge_bundle is not None, "who takes apart judges"
            return self._judge_bundle.judge(bundle, head, admission, receipt, consumer.prepare, by_lines=by_lines)
        judge = self._judge_for_lines if by_lines else self._judge
        verdict = judge(head, admission, passage.body, receipt)
        if guard.parts.splitter is not None and isinstance(verdict, Accepted):
            verdict = replace(verdict, notes=(*verdict.notes, "unsplit_body"))
        return verdict, consumer.prepare(verdict.message) if is_large and isinstance(verdict, Accepted) else None

    def _hand_over(
        self,
        request: GuardedRequest,
        made: Ending | JudgedBundle | tuple[Accepted | Dropped | Refused, object],
    ) -> None:
        exchange = request.exchange
        if isinstance(made, (Refused, HandshakeAnswer)):
            self._settle(request, stored=False)
            self._end(request, made)
            return
        # The usual acknowledgement is that of the exchange itself.
        acknowledge: Acknowledge = exchange.acknowledged
        if request.has_claim or request.passage.reply is not None or self.guard.parts.answers is not None:
            acknowledge = partial(self._acknowledged, request)
        if isinstance(made, JudgedBundle):
            is_taken = self._take_bundle(request, made, acknowledge)
        else:
            verdict, prepared = made
            is_taken = self._take(exchange, verdict, request.wire_size, prepared, acknowledge)
        if not is_taken:
            self._settle(request, stored=False)

    def _take_bundle(self, request: GuardedRequest, made: JudgedBundle, acknowledge: Acknowledge) -> bool:
        """Carry out what was decided on all events of a request; see L{WebhookResource._take}."""
        if made.messages:
            try:
                self._consumer.write_all(made.messages, acknowledge, made.prepared)
            except NoRoom:
                self._end(request, Refused(NO_ROOM, NO_ROOM.detail, self.rules.name))
                return False
        self._traffic.took_apart(self.rules.name, made, request.wire_size)
        if not made.messages:
            acknowledge(None)
        return True

    def _acknowledged(self, request: GuardedRequest, error: NotStored | None) -> None:
        """Answer a request whose fate is known, and then remember its delivery."""
        exchange, reply = request.exchange, request.passage.reply
        try:
            question = request.passage.question
            if error is None and question is not None:
                self._traffic.asked(self.rules.name, question.kind)
            exchange.acknowledged(error, RECEIVED if reply is None else answer_of(reply))
        finally:
            self._settle(request, stored=error is None)

    # -- the end -------------------------------------------------------------------------------------------------

    def _end(self, request: GuardedRequest, ending: Ending) -> None:
        """Answer a request that becomes no message."""
        exchange = request.exchange
        request.is_ended = True
        if isinstance(ending, HandshakeAnswer):
            if exchange.answer(answer_of(ending.reply)):
                self._traffic.asked(self.rules.name, ending.kind)
            return
        head, reason, detail = exchange.head, ending.reason, ending.detail
        told = self.guard.in_sender_words(ending, head)
        assert isinstance(told, Refused), "a refusal stays one"
        unverified = request.passage.unverified
        if unverified is not None and unverified.skew is not None and unverified.reason is reason:
            self._traffic.skewed(self.rules.name, unverified.skew)
            detail = f"{detail} It is {unverified.skew:.0f} s old."
        if exchange.answer(refusal_to(told, self._consumer), close=costs_connection(reason)):
            self._traffic.refused(reason, detail, str(head.peer), head.method, head.path, self.rules.name)

    def _is_large(self, body: bytes) -> bool:
        return len(body) > DIRECT or (len(body) > FEW and self.rules.parse_json and has_many_values(body))


@implementer(IReceiver)
class GuardedRequest:
    """
    One request to a guarded source, from the end of its head on.

    @ivar reserved: bytes that are counted for it while it waits.
    @ivar has_claim: a claim of its delivery is to be settled.
    @ivar is_ended: it has its answer.
    """

    __slots__ = ("_came", "_resource", "exchange", "has_claim", "is_ended", "passage", "reserved", "wire_size")

    exchange: IExchange
    wire_size: int

    def __init__(self, resource: GuardedResource, passage: Passage) -> None:
        self._resource = resource
        self.passage = passage
        self._came = 0
        self.reserved = 0
        self.has_claim = False
        self.is_ended = False

    @property
    def watch(self) -> Callable[[bytes], None] | None:
        """See L{IReceiver}."""
        verification = self.passage.verification
        hashes = verification is not None and verification.takes_pieces
        return self._take_piece if hashes or self._resource.guard.parts.quota is not None else None

    def _take_piece(self, data: bytes) -> None:
        passage = self.passage
        self._came += len(data)
        refused = self._resource.guard.more(passage, self._came)
        if refused is not None:
            raise RequestRefused(refused.reason, refused.detail, retry_after=refused.retry_after)
        verification, admission = passage.verification, passage.admission
        assert admission is not None, "its head was admitted"
        if verification is not None and verification.takes_pieces and not admission.encodings:
            verification.update(data)
            passage.is_hashed = True

    def refusal(self, head: Head, reason: Reason, detail: str, retry_after: int = 0) -> FixedAnswer:
        """See L{IReceiver.refusal}."""
        return self._resource.refusal(head, reason, detail, retry_after)

    def receive(self, exchange: IExchange, body: bytes) -> None:
        """See L{IReceiver.receive}."""
        self.exchange = exchange
        self.wire_size = len(body)
        self._resource.take(self, body)
