"""
The resources of sources: the root matches the whole path, a source turns its requests into messages.

They carry values to the decision, messages to the chain, and refusals back. An accepted request is answered by its
acknowledgement.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource, Resource
from zope.interface import implementer

from webhookrx.errors import (
    INTERNAL_ERROR,
    NO_MATCHING_PATH,
    NO_ROOM,
    UNPACK_RATIO,
    NoRoom,
    Reason,
)
from webhookrx.http.answers import NOT_READY, READY, FixedAnswer, refusal_now
from webhookrx.http.interfaces import IEarlyResource, IExchange, IReceiver, Verdict
from webhookrx.http.stock_request import MatchedResource
from webhookrx.http.time_slices import TimeSlices
from webhookrx.intake.encodings import ALWAYS_UNPACKED
from webhookrx.intake.head import Head
from webhookrx.intake.json_body import count_separators
from webhookrx.intake.judge import (
    Accepted,
    Admission,
    Dropped,
    Judge,
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
from webhookrx.interfaces import Acknowledge, IMessageConsumer
from webhookrx.wire_interfaces import ITraffic

#: Takes a request that was read: its head, and its body unpacked.
RecordRequest: TypeAlias = Callable[[Head, bytes], None]

DIRECT: Final = 128 * 1024
"""Bytes of a body, unpacked, that is judged at once: some milliseconds at most."""

MOST_SEPARATORS: Final = 1000
"""Commas and brackets of a body that is judged at once, if it may be JSON: each value may cost ten microseconds."""

UNPACKED_DIRECTLY: Final = 2 * 1024 * 1024
"""Bytes that a body may unpack to which is unpacked at once."""

FEW: Final = 8 * 1024
"""Bytes of a body whose values are not worth counting."""

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
    @ivar is_guarded: it decides on heads itself.
    @ivar wanted: see L{IEarlyResource}.
    """

    is_guarded = False
    wanted: tuple[bytes, ...] = ()
    watch: Callable[[bytes], None] | None = None
    _untapped: tuple[Judge, Judge, UsualJudge | None] | None = None

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

    def admit(self, head: Head, by_path: Admission | Refused) -> Verdict:
        """
        Decide on a head.

        @param by_path: see L{admission_of_path}.
        """
        admission = admit_by_path(head, self.rules, by_path)
        return (self, admission) if type(admission) is Admission else admission

    def refusal(self, head: Head, reason: Reason, detail: str, retry_after: int = 0) -> FixedAnswer:
        """See L{IReceiver.refusal}."""
        return refusal_now(reason, detail, self._consumer)

    def receive(self, exchange: IExchange, body: bytes) -> None:
        """See L{IReceiver.receive}."""
        admission = exchange.admission
        wire_size = len(body)
        if admission.encodings:
            if self._may_grow(wire_size):
                self._unpack_in_slices(exchange, body)
                return
            plain = unpacked(admission, body)
            if isinstance(plain, Refused):
                self.refuse(exchange, plain.reason, plain.detail)
                return
            body = plain
        by_lines = self._consumer.takes_lines
        if FEW < len(body) <= DIRECT and self._judge_usual is not None and self._makes_only_lines():
            accepted = self._judge_usual(exchange.head, admission, body, self._receipts())
            if accepted is not None:
                self._take(exchange, accepted, wire_size)
                return
            by_lines = False  # it is not usual
        if len(body) > DIRECT or (len(body) > FEW and self.rules.parse_json and has_many_values(body)):
            self._judge_in_slices(exchange, body, wire_size)
        else:
            head = exchange.head
            if self._record is not None:
                self._record(head, body)
            judge = self._judge_for_lines if by_lines else self._judge
            self._take(exchange, judge(head, admission, body, self._receipts()), wire_size)

    def _may_grow(self, wire_size: int) -> bool:
        """Return whether a body may become large once it is unpacked."""
        return max(ALWAYS_UNPACKED, wire_size * self.rules.unpack_ratio) > UNPACKED_DIRECTLY

    def _makes_only_lines(self) -> bool:
        """Return whether nothing else is done with a request, so that its cost is that of the line."""
        return self._record is None and self._consumer.takes_only_lines

    def _take(
        self,
        exchange: IExchange,
        verdict: Accepted | Dropped | Refused,
        wire_size: int,
        prepared: object = None,
        acknowledge: Acknowledge | None = None,
    ) -> bool:
        """
        Carry out a verdict. A dropped message is answered with 200 all the same: it was meant to be dropped.

        @param prepared: see L{IMessageConsumer.write}.
        @param acknowledge: called in place of the exchange, which then does it.
        @return: False if the request was refused, and nobody is called.
        """
        traffic, name = self._traffic, self.rules.name
        if isinstance(verdict, Accepted):
            try:
                self._consumer.write(verdict.message, acknowledge or exchange.acknowledged, prepared)
            except NoRoom:
                self.refuse(exchange, NO_ROOM, NO_ROOM.detail)
                return False
            traffic.accepted(name, verdict.notes, verdict.left_out, wire_size)
            if verdict.events:
                traffic.processed(name, verdict.events, verdict.problem)
        elif isinstance(verdict, Refused):
            self.refuse(exchange, verdict.reason, verdict.detail)
            return False
        else:
            traffic.processed(name, verdict.events, verdict.problem)
            (acknowledge or exchange.acknowledged)(None)
        return True

    def tap(self, looked_at: Callable[[Judge], Judge] | None) -> None:
        """
        Have each decision on a body looked at, or none. While nobody looks, requests cost what they always do.

        @param looked_at: returns a decision that is looked at in place of one that is not; None to end that.
        """
        if self._untapped is None:
            self._untapped = self._judge, self._judge_for_lines, self._judge_usual
        judge, for_lines, usual = self._untapped
        if looked_at is None:
            self._judge, self._judge_for_lines, self._judge_usual = judge, for_lines, usual
            self._untapped = None
        else:
            self._judge, self._judge_for_lines = looked_at(judge), looked_at(for_lines)
            self._judge_usual = None

    def refuse(self, exchange: IExchange, reason: Reason, detail: str) -> None:
        """Refuse a request, and report it."""
        head = exchange.head
        if exchange.answer(self.refusal(head, reason, detail), close=costs_connection(reason)):
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
        self,
        exchange: IExchange,
        counted: int,
        size: int,
        work: Callable[[], Any],
        done: Callable[[Any], None],
        given_up: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Do work on a request that may need many milliseconds, unless its sender has gone by then.

        @param counted: bytes that are counted meanwhile.
        @param size: see L{TimeSlices.run}.
        @param given_up: called when C{done} will never be called.
        """
        consumer, slices = self._consumer, self._slices
        if not (slices.has_room(size) and consumer.reserve(counted, small=False)):
            given_up()
            self.refuse(exchange, NO_ROOM, NO_ROOM.detail)
            return

        def ended(outcome: Any) -> None:
            consumer.release(counted)
            if isinstance(outcome, Failure):
                given_up()
                self._traffic.failed("A request could not be judged.", outcome)
                self.refuse(exchange, INTERNAL_ERROR, INTERNAL_ERROR.detail)
            elif outcome is None:
                given_up()
                self._traffic.dropped_unread()
            else:
                done(outcome)

        slices.run(work, ended, size, exchange.is_open)


def costs_connection(reason: Reason) -> bool:
    """Tell whether a sender pays for a refusal with its connection: one gains by unpacking, and may try often."""
    return reason is UNPACK_RATIO or reason is INTERNAL_ERROR


def has_many_values(body: bytes) -> bool:
    """Tell whether a body that may be JSON holds so many values that it is not judged at once."""
    return count_separators(body, MOST_SEPARATORS) > MOST_SEPARATORS


def never_ready() -> bool:
    """Return that the service is not ready."""
    return False


class _Target(NamedTuple):
    """
    Where a path leads.

    @ivar by_path: see L{admission_of_path}.
    @ivar verdict: what L{RootResource.dispatch} returns when that is the decision; None where the resource decides.
    """

    resource: WebhookResource
    by_path: Admission | Refused
    verdict: tuple[WebhookResource, Admission] | Refused | None


@implementer(IEarlyResource)
class RootResource(Resource):
    """
    Dispatches by regular expression, the first pattern that matches wins.

    Other resources can be hung below it with C{putChild}; a first segment of theirs wins over the patterns. Under a
    C{Site} of C{twisted.web}'s own it works too, judging requests when their body is there.

    @param targets: patterns with the resource of each, in the order in which they are tried.
    @param health: paths at which load balancers ask for health, without a token.
    @param ready: whether the service as a whole should be sent messages.
    @ivar sources: the resource of each source, by its name.
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
        self.sources = {resource.rules.name: resource for resource in self._resources}
        self.wanted = tuple(name for resource in self._resources for name in resource.wanted)
        # A path that matches nothing is cheap to judge again; a scanner must not wash out the others.
        self._targets: Remembered[bytes, _Target | None] = Remembered(
            self._target, most=_MAX_REMEMBERED, longest=_MAX_REMEMBERED_LENGTH
        )
        self._traffic = traffic

    def dispatch(self, head: Head) -> Verdict:
        """See L{IEarlyResource.dispatch}."""
        if self.children and head.path[1:].partition(b"/")[0] in self.children:
            return None
        if head.method in _HEALTH_METHODS and head.path in self._health:
            return READY if self._ready() else NOT_READY
        target = self._targets[head.path]
        if target is None:
            return Refused(NO_MATCHING_PATH, NO_MATCHING_PATH.detail)
        resource, by_path, verdict = target
        if verdict is None:
            return resource.admit(head, by_path)
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
        if resource.is_guarded:
            return _Target(resource, by_path, None)
        return _Target(resource, by_path, (resource, by_path) if isinstance(by_path, Admission) else by_path)

    def getChild(self, path: bytes, request: IRequest) -> IResource:
        """See L{IResource.getChildWithDefault}: what is not hung below us is matched as a whole."""
        return MatchedResource(self.dispatch, self._traffic)
