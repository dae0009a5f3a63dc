"""
The resource of a guarded source: takes each request through the decisions of its guard, and on to the chain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.errors import INTERNAL_ERROR, NO_ROOM, NOT_STORED, NoRoom, NotStored, Reason
from webhookrx.guard.bundle_judge import BundleJudge, JudgedBundle
from webhookrx.guard.guard import Guard
from webhookrx.guard.passage import Ending
from webhookrx.http.answers import RECEIVED, FixedAnswer, answer_of, answer_to_question, refusal_to
from webhookrx.http.guarded_request import GuardedRequest
from webhookrx.http.head import RequestHead
from webhookrx.http.interfaces import IExchange, IReceiver, Verdict
from webhookrx.http.resources import (
    DIRECT,
    FEW,
    RecordRequest,
    WebhookResource,
    costs_connection,
    has_many_values,
)
from webhookrx.http.time_slices import TimeSlices
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Admission, Dropped, Judge, Receipt, Refused, unpacked
from webhookrx.interfaces import Acknowledge, Claim, IDeliveryWindow, IMessageConsumer
from webhookrx.senders.handshakes import HandshakeAnswer
from webhookrx.wire_interfaces import ITraffic

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
        self.wanted = guard.header_names
        self._window = window
        parts = guard.parts
        has_parts = not (parts.quota is None and parts.window is None and parts.stored is None)
        self._is_simple = record is None and not (has_parts or guard.on_storing or guard.kinds)
        self._short_way = _ShortWay(self) if self._is_simple and guard.needs_no_head else None
        self._judge_bundle = BundleJudge(guard.rules, judge, for_lines) if parts.splitter is not None else None
        self._untapped_bundles = self._judge_bundle

    def tap(self, looked_at: Callable[[Judge], Judge] | None) -> None:
        """See L{WebhookResource.tap}; each event of a bundle is looked at."""
        super().tap(looked_at)
        self._judge_bundle = self._untapped_bundles
        if looked_at is not None and self._untapped_bundles is not None:
            self._judge_bundle = BundleJudge(self.guard.rules, self._judge, self._judge_for_lines)

    def admit(self, head: Head, by_path: Admission | Refused) -> Verdict:
        """See L{WebhookResource.admit}."""
        length = head.content_length if type(head) is RequestHead else None
        if (
            self._short_way is not None
            and length is not None
            and length <= FEW
            and head.method == b"POST"
            and not head.query
            and not head.values(b"content-encoding")
            and type(by_path) is Admission
        ):
            # As it is, the path alone decides about such a head.
            return self._short_way, by_path
        request = GuardedRequest(head, by_path, length)
        ending = self.guard.admit(request)
        if ending is None:
            admission = request.admission
            assert admission is not None, "its head was admitted"
            request.resource = self
            return request, admission
        if isinstance(ending, HandshakeAnswer):
            self._traffic.asked(self.rules.name, ending.kind)
            return answer_to_question(ending.reply)
        return ending

    def refusal(self, head: Head, reason: Reason, detail: str, retry_after: int = 0) -> FixedAnswer:
        """See L{IReceiver.refusal}."""
        refused = Refused(reason, detail, self.rules.name, retry_after=retry_after)
        ending = self.guard.in_sender_words(refused, head)
        assert isinstance(ending, Refused), "a refusal stays one"
        return refusal_to(ending, self._consumer)

    # -- on the body ---------------------------------------------------------------------------------------------

    def take(self, request: GuardedRequest, body: bytes) -> None:
        """Take a request with its body as it came."""
        exchange = request.exchange
        encodings = exchange.admission.encodings
        quotas = self.guard.quotas
        refused = None if quotas is None else quotas.more(request, len(body))
        if refused is not None:
            self._end(request, refused)
        elif not encodings:
            self._check(request, body)
        else:
            request.wire = body
            unpack = partial(unpacked, exchange.admission, body)
            if self._may_grow(len(body)):
                self._run(exchange, len(body), 0, unpack, partial(self._go, request, self._check))
            else:
                self._check(request, unpack())

    def take_at_once(self, exchange: IExchange, body: bytes) -> None:
        """Take a usual request, whose path alone had to be decided on before its body came."""
        head, admission, guard = exchange.head, exchange.admission, self.guard
        found = guard.proved(head, body)
        if found is None:
            request = GuardedRequest(head, admission, len(body), admission=admission)
            request.resource = self
            request.receive(exchange, body)
            return
        self._traffic.verified(self.rules.name, found.secret)
        admission = Admission(self.rules, admission.groups, admission.query, admission.encodings, found)
        judge = self._judge_for_lines if self._consumer.takes_lines else self._judge
        self._take(exchange, judge(head, admission, body, self._receipts()), len(body))

    def _check(self, request: GuardedRequest, body: bytes | Refused) -> None:
        """Have the guard decide on a body, unpacked."""
        if isinstance(body, Refused):
            self._end(request, body)
            return
        request.body = body
        guard = self.guard
        if guard.is_long(len(body)) or (guard.reads_bodies and self._is_large(body)):
            # What the work returns is never None, which is for senders who have gone.
            def done(judged: tuple[Ending | None]) -> None:
                self._go(request, self._go_on, judged[0])

            self._run(request.exchange, len(body), len(body), lambda: (self._judged(request),), done)
        else:
            self._go_on(request, self._judged(request))

    def _judged(self, request: GuardedRequest) -> Ending | None:
        if self._record is not None:
            self._record(request.head, request.body)
        return self.guard.judge(request)

    def _go_on(self, request: GuardedRequest, ending: Ending | None) -> None:
        """Go on with a request that the guard has decided on."""
        if ending is not None:
            self._end(request, ending)
            return
        name = self.rules.name
        verified = request.verified
        if verified is not None:
            self._traffic.verified(name, verified.secret)
            if verified.skew is not None:
                self._traffic.skewed(name, verified.skew)
        if request.token:
            self._traffic.token_shown(name, request.token)
        if request.key:
            self._look_up(request)
        else:
            self._store(request)

    # -- the idempotency window ----------------------------------------------------------------------------------

    def _look_up(self, request: GuardedRequest) -> None:
        """Claim a delivery, which may have to wait for another request with the same one."""
        window, seconds = self._window, self.guard.parts.window
        assert window is not None
        assert seconds is not None
        claim = window.claim(request.key, seconds, partial(self._told, request))
        if claim is not Claim.UNDER_WAY:
            self._claimed(request, claim)
            return
        size = len(request.body)
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
        if claim is Claim.NEW:
            request.has_claim = True
            self._go(request, self._store)
        elif claim is Claim.KNOWN:
            self._go(request, self._answer_known)
        else:
            self._end(request, Refused(NOT_STORED, NOT_STORED.detail, self.rules.name))

    def _go(self, request: GuardedRequest, step: Callable[..., None], *args: Any) -> None:
        """
        Go on with a request where nobody else answers for what is raised: from work in time slices, or in a call of
        another request's end.
        """
        try:
            step(request, *args)
        except Exception:
            self._settle(request, stored=False)
            self._traffic.failed("A request could not be judged.", Failure())
            self._end(request, Refused(INTERNAL_ERROR, INTERNAL_ERROR.detail, self.rules.name))

    def _answer_known(self, request: GuardedRequest) -> None:
        guard = self.guard
        refused = guard.answer(request) if guard.parts.answers is not None else None
        if refused is not None:
            self._end(request, refused)
            return
        self._traffic.duplicate(self.rules.name)
        request.is_ended = True
        request.exchange.answer(DUPLICATE if request.reply is None else answer_of(request.reply))

    def _settle(self, request: GuardedRequest, *, stored: bool, is_ours: bool = False) -> None:
        """Give up the claim of a request, if it has one."""
        if request.has_claim or is_ours:
            request.has_claim = False
            assert self._window is not None
            self._window.settle(request.key, stored)

    # -- storing -------------------------------------------------------------------------------------------------

    def _store(self, request: GuardedRequest) -> None:
        """Make messages of a request, and hand them over."""
        body = request.body
        is_usual = self._judge_usual is not None and not self.guard.on_storing and self._makes_only_lines()
        splitter = self.guard.parts.splitter
        is_large = len(body) > DIRECT or (not is_usual and self._is_large(body))
        if is_large or (splitter is not None and splitter.may_hold_many(body)):
            work = partial(self._made, request, is_large=True)
            given_up = partial(self._settle, request, stored=False)
            self._run(
                request.exchange, len(body), len(body), work, partial(self._go, request, self._hand_over), given_up
            )
        else:
            self._hand_over(request, self._made(request, is_large=False))

    def _made(
        self, request: GuardedRequest, *, is_large: bool
    ) -> Ending | JudgedBundle | tuple[Accepted | Dropped | Refused, object]:
        """Return what a request becomes: messages or a message, with what the chain has prepared of it."""
        guard = self.guard
        ending = guard.prepare(request) if guard.on_storing else None
        if ending is not None:
            return ending
        consumer, bundle = self._consumer, request.bundle
        if bundle is not None:
            assert self._judge_bundle is not None, "who takes apart judges"
            head, admission, receipt = request.head, self._admission(request), self._receipts()
            by_lines = consumer.takes_lines
            return self._judge_bundle.judge(bundle, head, admission, receipt, consumer.prepare, by_lines=by_lines)
        verdict = self._verdict(request)
        if guard.parts.splitter is not None and isinstance(verdict, Accepted):
            verdict = replace(verdict, notes=(*verdict.notes, "unsplit_body"))
        return verdict, consumer.prepare(verdict.message) if is_large and isinstance(verdict, Accepted) else None

    def _admission(self, request: GuardedRequest) -> Admission:
        """Return all that a message gets besides its body."""
        admission = request.admission
        assert admission is not None, "its head was admitted"
        provenance = self.guard.provenance(request)
        return Admission(self.rules, admission.groups, admission.query, admission.encodings, provenance)

    def _verdict(self, request: GuardedRequest) -> Accepted | Dropped | Refused:
        judge = self._judge_for_lines if self._consumer.takes_lines else self._judge
        return judge(request.head, self._admission(request), request.body, self._receipts())

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
        parts = self.guard.parts
        if request.has_claim or request.reply is not None or not (parts.answers is None and parts.stored is None):
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
        exchange, reply = request.exchange, request.reply
        try:
            question = request.question
            if error is None and question is not None:
                self._traffic.asked(self.rules.name, question.kind)
            exchange.acknowledged(error, RECEIVED if reply is None else answer_of(reply))
        finally:
            self._settle(request, stored=error is None)
        stored = self.guard.parts.stored
        if error is None and stored is not None and request.verified is not None:
            stored(request.body)

    # -- the end -------------------------------------------------------------------------------------------------

    def _end(self, request: GuardedRequest, ending: Ending) -> None:
        """Answer a request that becomes no message."""
        exchange = request.exchange
        request.is_ended = True
        if isinstance(ending, HandshakeAnswer):
            if exchange.answer(answer_to_question(ending.reply)):
                self._traffic.asked(self.rules.name, ending.kind)
            return
        head, reason, detail = exchange.head, ending.reason, ending.detail
        told = self.guard.in_sender_words(ending, head)
        assert isinstance(told, Refused), "a refusal stays one"
        unverified = request.unverified
        if unverified is not None and unverified.skew is not None and unverified.reason is reason:
            self._traffic.skewed(self.rules.name, unverified.skew)
            skew = unverified.skew
            detail = (
                f"{detail} It is {skew:.0f} s old." if skew >= 0 else f"{detail} It is {-skew:.0f} s in the future."
            )
        if exchange.answer(refusal_to(told, self._consumer), close=costs_connection(reason)):
            self._traffic.refused(reason, detail, str(head.peer), head.method, head.path, self.rules.name)

    def _is_large(self, body: bytes) -> bool:
        return len(body) > DIRECT or (len(body) > FEW and self.rules.parse_json and has_many_values(body))


@implementer(IReceiver)
class _ShortWay:
    """
    Takes requests to a source that are as usual up to the end of their head: whose path alone was to be decided on, and
    whose body is short. If there is anything unusual in the body, L{GuardedRequest} takes them.
    """

    watch = None

    def __init__(self, resource: GuardedResource) -> None:
        self.receive = resource.take_at_once
        self.refusal = resource.refusal
