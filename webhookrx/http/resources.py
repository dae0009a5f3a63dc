"""
The resources of sources: the root matches the whole path, a source turns its requests into messages.

They carry values to the decision, messages to the chain, and refusals back. An accepted request is answered by its
acknowledgement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from webhookrx.errors import (
    INTERNAL_ERROR,
    NO_MATCHING_PATH,
    NO_ROOM,
    NOT_STORED,
    UNPACK_RATIO,
    NoRoom,
    NotStored,
    Reason,
)
from webhookrx.http.answers import NOT_READY, READY, RECEIVED, FixedAnswer, refusal_now, refusal_to
from webhookrx.http.interfaces import IEarlyResource, IExchange, IReceiver
from webhookrx.http.time_slices import TimeSlices
from webhookrx.http.transport_queries import client_of
from webhookrx.intake.client_address import normal_ip
from webhookrx.intake.encodings import ALWAYS_UNPACKED
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.json_body import count_separators
from webhookrx.intake.judge import (
    Accepted,
    Admission,
    Dropped,
    Receipt,
    Refused,
    SourceRules,
    admission_of_path,
    admit_by_path,
    unpacked,
)
from webhookrx.intake.judge import judge as judge_values
from webhookrx.intake.line_judge import UsualJudge, judge_for_lines
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.intake.remembered import Remembered
from webhookrx.interfaces import IMessageConsumer, ITraffic

#: Takes a request that was read: its head, and its body unpacked.
RecordRequest: TypeAlias = Callable[[Head, bytes], None]
Judge: TypeAlias = Callable[[Head, Admission, bytes, Receipt], Accepted | Dropped | Refused]

DIRECT: Final = 128 * 1024
"""Bytes of a body, unpacked, that is judged at once: some milliseconds at most."""

MOST_SEPARATORS: Final = 1000
"""Commas and brackets of a body that is judged at once, if it may be JSON: each value may cost ten microseconds."""

UNPACKED_DIRECTLY: Final = 2 * 1024 * 1024
"""Bytes that a body may unpack to which is unpacked at once."""

#: Bytes of a body whose values are not worth counting.
_FEW: Final = 8 * 1024

_MAX_REMEMBERED: Final = 2048
_MAX_REMEMBERED_LENGTH: Final = 256
"""Paths whose target is remembered, and the bytes of each: some two mebibytes at most."""

#: Load balancers ask for health with these; a POST to the same path is a message.
_HEALTH_METHODS = (b"GET", b"HEAD", b"OPTIONS")


@implementer(IReceiver)
class WebhookResource:
    """
    One source, or one connector of the router form.

    @param receipts: gives the next L{Receipt}.
    @param slices: does the work on large bodies.
    @param judge: makes a message of a request, as L{webhookrx.intake.judge.judge} does, which is the default.
    @param for_lines: does the same for messages that are wanted as lines; by default it is C{judge}, or what
        L{webhookrx.intake.line_judge} has for the default.
    @param record: called with each request before it is judged, with its body unpacked; None for no recording.
    @ivar rules: how it decides.
    """

    def __init__(
        self,
        rules: SourceRules,
        consumer: IMessageConsumer,
        traffic: ITraffic,
        receipts: Callable[[], Receipt],
        slices: TimeSlices,
        judge: Judge | None = None,
        for_lines: Judge | None = None,
        record: RecordRequest | None = None,
    ) -> None:
        self.rules = rules
        self._consumer = consumer
        self._traffic = traffic
        self._receipts = receipts
        self._judge = judge or judge_values
        self._judge_for_lines: Judge
        self._judge_usual: UsualJudge | None = None
        if for_lines is not None or judge is not None:
            self._judge_for_lines = for_lines or self._judge
        else:
            self._judge_for_lines, self._judge_usual = judge_for_lines(rules)
        self._slices = slices
        self._record = record

    def receive(self, exchange: IExchange, body: bytes) -> None:
        """See L{IReceiver.receive}."""
        admission = exchange.admission
        wire_size = len(body)
        if admission.encodings:
            if max(ALWAYS_UNPACKED, wire_size * self.rules.unpack_ratio) > UNPACKED_DIRECTLY:
                self._unpack_in_slices(exchange, body)
                return
            plain = unpacked(admission, body)
            if isinstance(plain, Refused):
                self.refuse(exchange, plain.reason, plain.detail)
                return
            body = plain
        by_lines = self._consumer.takes_lines
        if _FEW < len(body) <= DIRECT and self._judge_usual is not None and self._makes_only_lines():
            accepted = self._judge_usual(exchange.head, admission, body, self._receipts())
            if accepted is not None:
                self._take(exchange, accepted, wire_size)
                return
            by_lines = False  # it is not usual
        if len(body) > DIRECT or (len(body) > _FEW and self.rules.parse_json and _has_many_values(body)):
            self._judge_in_slices(exchange, body, wire_size)
        else:
            head = exchange.head
            if self._record is not None:
                self._record(head, body)
            judge = self._judge_for_lines if by_lines else self._judge
            self._take(exchange, judge(head, admission, body, self._receipts()), wire_size)

    def _makes_only_lines(self) -> bool:
        """Return whether nothing else is done with a request, so that its cost is that of the line."""
        return self._record is None and self._consumer.takes_only_lines

    def _take(
        self, exchange: IExchange, verdict: Accepted | Dropped | Refused, wire_size: int, prepared: object = None
    ) -> None:
        """
        Carry out a verdict. A dropped message is answered with 200 all the same: it was meant to be dropped.

        @param prepared: see L{IMessageConsumer.write}.
        """
        traffic, name = self._traffic, self.rules.name
        if isinstance(verdict, Accepted):
            try:
                self._consumer.write(verdict.message, exchange.acknowledged, prepared)
            except NoRoom:
                self.refuse(exchange, NO_ROOM, NO_ROOM.detail)
                return
            traffic.accepted(name, verdict.notes, verdict.left_out, wire_size)
            if verdict.events:
                traffic.processed(name, verdict.events, verdict.problem)
        elif isinstance(verdict, Refused):
            self.refuse(exchange, verdict.reason, verdict.detail)
        else:
            traffic.processed(name, verdict.events, verdict.problem)
            exchange.acknowledged(None)

    def refuse(self, exchange: IExchange, reason: Reason, detail: str) -> None:
        """Refuse a request, and report it."""
        head = exchange.head
        # A sender that gains by unpacking pays for each try with a connection.
        close = reason is UNPACK_RATIO or reason is INTERNAL_ERROR
        if exchange.answer(refusal_now(reason, detail, self._consumer), close=close):
            self._traffic.refused(reason, detail, str(head.peer), head.method, head.path, self.rules.name)

    # -- large bodies --------------------------------------------------------------------------------------------

    def _unpack_in_slices(self, exchange: IExchange, body: bytes) -> None:
        """Unpack a body that may become large, and go on with what it has become."""
        admission = exchange.admission

        def done(plain: bytes | Refused) -> None:
            if isinstance(plain, Refused):
                self.refuse(exchange, plain.reason, plain.detail)
            else:
                self._judge_in_slices(exchange, plain, len(body))

        self._run(exchange, len(body), 0, lambda: unpacked(admission, body), done)

    def _judge_in_slices(self, exchange: IExchange, body: bytes, wire_size: int) -> None:
        """Make a message of a large body, and prepare it for the observers."""
        head, admission = exchange.head, exchange.admission

        def work() -> tuple[Accepted | Dropped | Refused, object]:
            if self._record is not None:
                self._record(head, body)
            judge = self._judge_for_lines if self._consumer.takes_lines else self._judge
            verdict = judge(head, admission, body, self._receipts())
            return verdict, self._consumer.prepare(verdict.message) if isinstance(verdict, Accepted) else None

        def done(outcome: tuple[Accepted | Dropped | Refused, object]) -> None:
            verdict, prepared = outcome
            self._take(exchange, verdict, wire_size, prepared)

        self._run(exchange, len(body), len(body), work, done)

    def _run(
        self, exchange: IExchange, counted: int, size: int, work: Callable[[], Any], done: Callable[[Any], None]
    ) -> None:
        """
        Do work on a request that may need many milliseconds, unless its sender has gone by then.

        @param counted: bytes that are counted meanwhile.
        @param size: see L{TimeSlices.run}.
        """
        consumer, slices = self._consumer, self._slices
        if not (slices.has_room(size) and consumer.reserve(counted, small=False)):
            self.refuse(exchange, NO_ROOM, NO_ROOM.detail)
            return

        def ended(outcome: Any) -> None:
            consumer.release(counted)
            if isinstance(outcome, Failure):
                self._traffic.failed("A request could not be judged.", outcome)
                self.refuse(exchange, INTERNAL_ERROR, INTERNAL_ERROR.detail)
            elif outcome is None:
                self._traffic.dropped_unread()
            else:
                done(outcome)

        slices.run(work, ended, size, exchange.is_open)


def _has_many_values(body: bytes) -> bool:
    return count_separators(body, MOST_SEPARATORS) > MOST_SEPARATORS


def never_ready() -> bool:
    """Return that the service is not ready."""
    return False


class _Target(NamedTuple):
    """
    Where a path leads.

    @ivar by_path: see L{admission_of_path}.
    @ivar verdict: what L{RootResource.dispatch} returns when that is the decision.
    """

    resource: WebhookResource
    by_path: Admission | Refused
    verdict: tuple[WebhookResource, Admission] | Refused


@implementer(IEarlyResource)
class RootResource(Resource):
    """
    Dispatches by regular expression, the first pattern that matches wins.

    Other resources can be hung below it with C{putChild}; a first segment of theirs wins over the patterns. Under a
    C{Site} of C{twisted.web}'s own it works too, judging requests when their body is there.

    @param targets: patterns with the resource of each, in the order in which they are tried.
    @param health: paths at which load balancers ask for health, without a token.
    @param ready: whether the service as a whole should be sent messages.
    """

    def __init__(
        self,
        targets: Sequence[tuple[str, WebhookResource]],
        traffic: ITraffic,
        health: Collection[bytes] = (),
        ready: Callable[[], bool] = never_ready,
    ) -> None:
        super().__init__()
        self._health = health
        self._ready = ready
        self._patterns = PathPatterns([pattern for pattern, _ in targets])
        self._resources = [resource for _, resource in targets]
        # A path that matches nothing is cheap to judge again; a scanner must not wash out the others.
        self._targets: Remembered[bytes, _Target | None] = Remembered(
            self._target, most=_MAX_REMEMBERED, longest=_MAX_REMEMBERED_LENGTH
        )
        self._traffic = traffic

    def dispatch(self, head: Head) -> tuple[WebhookResource, Admission] | FixedAnswer | Refused | None:
        """See L{IEarlyResource.dispatch}."""
        if self.children and head.path[1:].partition(b"/")[0] in self.children:
            return None
        if head.method in _HEALTH_METHODS and head.path in self._health:
            return READY if self._ready() else NOT_READY
        target = self._targets[head.path]
        if target is None:
            return Refused(NO_MATCHING_PATH, NO_MATCHING_PATH.detail)
        resource, by_path, verdict = target
        admission = admit_by_path(head, resource.rules, by_path)
        if admission is by_path:
            return verdict
        return (resource, admission) if type(admission) is Admission else admission

    def _target(self, path: bytes) -> _Target | None:
        match = self._patterns.match(path)
        if match is None:
            return None
        index, raw_groups = match
        resource = self._resources[index]
        by_path = admission_of_path(resource.rules, raw_groups)
        return _Target(resource, by_path, (resource, by_path) if isinstance(by_path, Admission) else by_path)

    def getChild(self, path: bytes, request: IRequest) -> IResource:
        """See L{IResource.getChildWithDefault}: what is not hung below us is matched as a whole."""
        return _Matched(self, self._traffic)


class _Matched(Resource):
    """The rest of the path is no tree."""

    isLeaf = True

    def __init__(self, root: RootResource, traffic: ITraffic) -> None:
        super().__init__()
        self._root = root
        self._traffic = traffic

    def render(self, request: IRequest) -> int:
        """See L{IResource.render}: judge a request of C{twisted.web}'s own."""
        head = _head_of(request)
        verdict = self._root.dispatch(head) or Refused(NO_MATCHING_PATH, NO_MATCHING_PATH.detail)
        if isinstance(verdict, Refused):
            self._traffic.refused(
                verdict.reason, verdict.detail, str(head.peer), head.method, head.path, verdict.source
            )
            _send(request, refusal_to(verdict))
        elif isinstance(verdict, FixedAnswer):
            _send(request, verdict)
        else:
            resource, admission = verdict
            exchange = _StockExchange(request, head, resource, admission, self._traffic)
            resource.receive(exchange, request.content.read())
        return NOT_DONE_YET


@implementer(IExchange)
class _StockExchange:
    """An admitted request of C{twisted.web}'s own."""

    def __init__(
        self, request: IRequest, head: Head, resource: WebhookResource, admission: Admission, traffic: ITraffic
    ) -> None:
        self._request: IRequest | None = request
        self._resource = resource
        self._traffic = traffic
        self._began = time.monotonic()
        self.head = head
        self.admission = admission
        request.notifyFinish().addErrback(self._lost)  # type: ignore[attr-defined]

    def acknowledged(self, error: NotStored | None) -> None:
        """See L{IExchange.acknowledged}."""
        if error is not None:
            self._resource.refuse(self, NOT_STORED, NOT_STORED.detail)
        elif self.answer(RECEIVED):
            self._traffic.answered(self.admission.rules.name, time.monotonic() - self._began)

    def _lost(self, reason: object) -> None:
        self._request = None

    def is_open(self) -> bool:
        """See L{IExchange.is_open}."""
        return self._request is not None

    def answer(self, answer: FixedAnswer, *, close: bool = False) -> bool:
        """See L{IExchange.answer}."""
        request, self._request = self._request, None
        if request is None:
            return False
        if close:
            request.setHeader(b"Connection", b"close")
        _send(request, answer)
        return True


def _head_of(request: IRequest) -> Head:
    path, _, query = request.uri.partition(b"?")
    peer = request.getClientAddress()
    headers = [(name.lower(), value) for name, values in request.requestHeaders.getAllRawHeaders() for value in values]
    ip = normal_ip(getattr(peer, "host", "")) or "127.0.0.1"
    client = client_of(request.transport)  # type: ignore[attr-defined]  # as those of twisted.web have it
    return Head(request.method, path, query, headers, Peer(ip, getattr(peer, "port", None), request.isSecure(), client))


def _send(request: IRequest, answer: FixedAnswer) -> None:
    request.setResponseCode(answer.status)
    # Without one of ours, twisted.web would send its own.
    request.responseHeaders.setRawHeaders(b"Content-Type", [answer.content_type] if answer.content_type else [])
    if answer.status != 204:
        request.setHeader(b"Content-Length", b"%d" % len(answer.body))
    for line in answer.extra.splitlines():
        name, _, value = line.partition(b": ")
        request.setHeader(name, value)
    request.write(answer.body)
    request.finish()
