"""
The port for routers: what a router may ask, decided by its client certificate alone.

Without a certificate only an enrolment is heard; with one, the router is the one to which the console has given it, and
nothing in a request can name another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import parse_qs

from msgspec import Raw
from OpenSSL import crypto
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import ISSLTransport
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from webhookrx.console.pace import Pace
from webhookrx.console.routers.agent_refused import (
    PROBLEM_TYPE,
    AgentRefused,
    no_router,
    not_found,
    too_fast,
    too_large,
)
from webhookrx.console.routers.authority import BadCertificateRequest
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.records import EnrolmentRefused
from webhookrx.console.routers.registry import EnrolledRouter, SendAll
from webhookrx.errors import StoreFull, StoreUnavailable
from webhookrx.http.answers import FixedAnswer
from webhookrx.http.interfaces import IEarlyResource, Verdict
from webhookrx.intake.client_address import sender_of
from webhookrx.intake.head import Head
from webhookrx.management.agent_body import MOST_REQUEST_BYTES, read_body, write_body
from webhookrx.management.agent_protocol import (
    ENROL,
    ENROL_PENDING,
    LONGEST_WAIT,
    MOST_REPORT_BYTES,
    RENEW,
    REPORT,
    SEND_ALL,
    SYNC,
    CountsReport,
    EnrolAnswer,
    EnrolRequest,
    IssuedCertificate,
    RenewRequest,
    RouterReport,
    SyncAnswer,
)
from webhookrx.management.enrolment_token import REFUSAL, read_token
from webhookrx.management.tap_protocol import TAPS, TapEvents

#: Bodies above this are decoded apart from the reactor.
_LARGE: Final = 128 * 1024

#: Bytes of reports that a router may bring in a second, and at once, since each takes time: one of 5,000 connectors has
#: some 500 KiB.
_REPORTED_A_SECOND: Final = 512 * 1024
_REPORTED_AT_ONCE: Final = 2 * MOST_REPORT_BYTES

#: Of a Content-Length.
_MOST_DIGITS: Final = 19

_LIMITS: Final = {RENEW: MOST_REQUEST_BYTES, REPORT: MOST_REPORT_BYTES}
_JSON: Final = b"application/json"

_log = Logger()


TakesCounts: TypeAlias = Callable[[EnrolledRouter, int, CountsReport], Awaitable[object]]
"""Takes the counts of a router, with the number of its report."""


async def _takes_no_counts(router: EnrolledRouter, number: int, counts: CountsReport) -> None:
    """Leave them."""


class HearsTaps(Protocol):
    """Hears what taps of routers show, each from the routers at which it is."""

    def takes_part(self, router: EnrolledRouter, id: str) -> bool:
        """Return whether a tap is at a router, and goes on there."""

    def hear(self, router: EnrolledRouter, id: str, events: TapEvents) -> bool:
        """Take what a tap of a router has shown; return False when it is not, or no more, at that router."""


@implementer(IEarlyResource)
class RoutersResource(Resource):
    """
    The root of the port.

    @param on_counts: see L{TakesCounts}.
    @param taps: takes what taps of routers have shown.
    @param decode_apart: decodes large bodies.
    """

    isLeaf = True
    wanted = (b"content-length",)

    def __init__(
        self,
        fleet: FleetOfRouters,
        monotonic: Callable[[], float],
        on_counts: TakesCounts = _takes_no_counts,
        taps: HearsTaps | None = None,
        decode_apart: Callable[..., Deferred[Any]] = deferToThread,
    ) -> None:
        super().__init__()
        self._fleet = fleet
        self._now = monotonic
        self._on_counts = on_counts
        self._taps = taps
        self._decode_apart = decode_apart
        self._by_router = Pace(10, 40)
        self._reported = Pace(_REPORTED_A_SECOND, _REPORTED_AT_ONCE)
        self._by_address = Pace(1, 10)
        self._enrolments = Pace(20, 100, 1)

    # -- at the end of the head ----------------------------------------------------------------------------------

    def dispatch(self, head: Head) -> Verdict:
        """See L{IEarlyResource}: what may not ask anything has no body read."""
        client = head.peer.client
        try:
            router = self._admit(head.method, head.path, None if client is None else client.fingerprint, head.peer.ip)
            length = self._check_length(head)
            if (
                router is not None
                and head.path == REPORT
                and not self._reported.allows(router.guid, self._now(), length)
            ):
                raise too_fast()
        except AgentRefused as refused:
            return FixedAnswer(refused.status, refused.body, refused.extra, PROBLEM_TYPE, once=True)
        return None

    def _admit(self, method: bytes, path: bytes, fingerprint: str | None, address: str) -> EnrolledRouter | None:
        """
        Return the router that asks; None for an enrolment.

        @raise AgentRefused: it may not ask this.
        """
        if path == ENROL and method == b"POST":
            if not (
                self._by_address.allows(sender_of(address), self._now()) and self._enrolments.allows("", self._now())
            ):
                raise too_fast()
            return None
        router = self._router_of(fingerprint, path)
        if not self._by_router.allows(router.guid, self._now()):
            raise too_fast()
        return router

    def _router_of(self, fingerprint: str | None, path: bytes) -> EnrolledRouter:
        """
        Return the router that has a certificate, if it may ask for a path.

        @raise AgentRefused: it may not.
        """
        fleet = self._fleet
        router = None if fingerprint is None else fleet.registry.by_fingerprint(fingerprint)
        if router is None or fingerprint is None or not fleet.may_renew(router, fingerprint):
            raise no_router()
        if path == RENEW:
            return router
        if fleet.has_ended(router, fingerprint):
            raise AgentRefused(403, "certificate_ended", "This certificate has ended; it is good for a renewal alone.")
        if router.state == "pending":
            taken = fleet.registry.by_name(router.name) is not None
            why = "its name is another router's" if taken else "nobody has approved it yet"
            raise AgentRefused(403, ENROL_PENDING, f"The router waits: {why}.")
        return router

    def _check_length(self, head: Head) -> int:
        """
        Return the length of a body, which it has, and none above what its path takes: what is read is counted before it
        comes.

        @raise AgentRefused: it is otherwise.
        """
        if head.method != b"POST":
            return 0
        most = _LIMITS.get(head.path, TapEvents.most_bytes if head.path.startswith(TAPS) else MOST_REQUEST_BYTES)
        lengths = head.values(b"content-length")
        if len(lengths) != 1 or not lengths[0].isdigit():
            raise AgentRefused(411, "length_required")
        # All digits count: zeros in front would hide those behind them.
        if len(lengths[0]) > _MOST_DIGITS or int(lengths[0]) > most:
            raise too_large()
        return int(lengths[0])

    # -- with the body -------------------------------------------------------------------------------------------

    def render(self, request: IRequest) -> int:
        """See L{twisted.web.resource.IResource.render}."""
        answering = Deferred.fromCoroutine(self._answer(request))
        waits = request.path == SYNC
        here = [True]

        def gone(failure: Failure) -> None:
            here.clear()
            if waits:  # all else ends by itself: what is being written is to be known here, too
                answering.cancel()

        request.notifyFinish().addErrback(gone)  # type: ignore[attr-defined]
        answering.addErrback(_answer_to_failure)
        answering.addCallback(lambda answer: _send(request, *answer) if here and answer else None)
        return NOT_DONE_YET

    async def _answer(self, request: IRequest) -> tuple[int, bytes]:
        path, _, query = request.uri.partition(b"?")
        method, body = request.method, request.content.read()
        if (method, path) == (b"POST", ENROL):
            return await self._enrol(body, getattr(request.getClientAddress(), "host", "unix"))
        fingerprint = fingerprint_of(request.transport)  # type: ignore[attr-defined]
        # Judged at the end of the head, and again: it may have been revoked while the body came.
        router = self._router_of(fingerprint, path)
        assert fingerprint is not None
        self._fleet.uses(router, fingerprint)
        if (method, path) == (b"GET", SYNC):
            return await self._sync(router, fingerprint, query)
        if (method, path) == (b"POST", REPORT):
            return await self._report(router, fingerprint, body)
        if (method, path) == (b"POST", RENEW):
            return await self._renew(router, fingerprint, body)
        if method == b"POST" and path.startswith(TAPS):
            return await self._events(router, fingerprint, path[len(TAPS) :], body)
        raise not_found()

    async def _enrol(self, body: bytes, address: str) -> tuple[int, bytes]:
        asked = _read(body, EnrolRequest)
        try:
            token = read_token(asked.token)
            router, certificate = await self._fleet.enrolments.enrol(token, asked.name, asked.csr, asked.facts)
        except ValueError:
            await self._fleet.enrolments.note_refused(REFUSAL, asked.name, address)
            raise AgentRefused(403, REFUSAL, "The enrolment token is wrong, used or expired.") from None
        except EnrolmentRefused as refused:
            await self._fleet.enrolments.note_refused(refused.code, asked.name, address)
            raise AgentRefused(503 if refused.code == "too_many" else 403, refused.code, str(refused)) from None
        except BadCertificateRequest as error:
            raise AgentRefused(400, "bad_request", str(error)) from None
        authority = self._fleet.authority
        return 200, write_body(
            EnrolAnswer(
                certificate=certificate.pem,
                authorities=authority.authorities,
                guid=router.guid,
                name=router.name,
                state="pending" if router.state == "pending" else "approved",
                signing_keys=authority.signing_keys,
            )
        )

    async def _renew(self, router: EnrolledRouter, fingerprint: str, body: bytes) -> tuple[int, bytes]:
        try:
            certificate = await self._fleet.renew(router, fingerprint, _read(body, RenewRequest).csr)
        except BadCertificateRequest as error:
            raise AgentRefused(400, "bad_request", str(error)) from None
        return 200, write_body(
            IssuedCertificate(certificate=certificate.pem, authorities=self._fleet.authority.authorities)
        )

    async def _sync(self, router: EnrolledRouter, fingerprint: str, query: bytes) -> tuple[int, bytes]:
        have, wait = _sync_query(query)
        fleet, until = self._fleet, self._now() + wait
        while True:
            router.seen_at = fleet.clock()
            commands = fleet.polls.due(router.guid)
            bundle = fleet.bundle_for(router, have)
            if bundle or commands:
                return 200, write_body(
                    SyncAnswer(bundle=Raw(bundle), commands=commands) if bundle else SyncAnswer(commands=commands)
                )
            left = until - self._now()
            if left <= 0:
                return 204, b""
            look = await fleet.polls.wait(router.guid, left)
            self._router_of(fingerprint, SYNC)
            if not look:
                return 204, b""

    async def _report(self, router: EnrolledRouter, fingerprint: str, body: bytes) -> tuple[int, bytes]:
        if len(body) > _LARGE:
            report = await self._decode_apart(_read, body, RouterReport)
            self._router_of(fingerprint, REPORT)
        else:
            report = _read(body, RouterReport)
        fleet = self._fleet
        facts, newest = router.facts, router.applied.newest
        try:
            is_new = router.hear(report, fleet.clock())
        except SendAll:
            raise AgentRefused(
                409, SEND_ALL, "The console does not have the report that this one builds upon."
            ) from None
        for answer in report.answers:
            fleet.polls.answered(router.guid, answer)
        if is_new:
            fleet.heard(router, facts, newest)
            if report.counts is not None:
                await self._on_counts(router, report.number, report.counts)
        return 204, b""

    async def _events(self, router: EnrolledRouter, fingerprint: str, tap: bytes, body: bytes) -> tuple[int, bytes]:
        taps, id = self._taps, tap.decode("ascii", "replace")
        # Asked before anything is decoded: a tap of others is no reason for work.
        if taps is None or not taps.takes_part(router, id):
            raise not_found()
        if len(body) > _LARGE:
            events = await self._decode_apart(_read, body, TapEvents)
            self._router_of(fingerprint, TAPS)
        else:
            events = _read(body, TapEvents)
        if not taps.hear(router, id, events):
            raise not_found()
        return 204, b""


def fingerprint_of(transport: Any) -> str | None:
    """Return the SHA-256 of the client's certificate, which TLS has verified; None without one."""
    if not ISSLTransport.providedBy(transport):
        return None
    certificate: Any = transport.getPeerCertificate()
    if certificate is None:
        return None
    return hashlib.sha256(crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)).hexdigest()


def _sync_query(query: bytes) -> tuple[str, float]:
    try:
        given = parse_qs(query.decode("ascii"), strict_parsing=bool(query), max_num_fields=4)
        have, wait = given.get("have", [""])[0], float(int(given.get("wait", ["0"])[0]))
    except ValueError:
        raise AgentRefused(400, "bad_request", "The query is have=DIGEST&wait=SECONDS.") from None
    return have[:64], min(max(wait, 0.0), LONGEST_WAIT)


def _read(body: bytes, kind: Any) -> Any:
    try:
        return read_body(body, kind)
    except ValueError as error:
        raise AgentRefused(400, "bad_request", str(error)) from None


def _send(request: IRequest, status: int, body: bytes, content_type: bytes = _JSON, retry_after: int = 0) -> None:
    request.setResponseCode(status)
    if body:
        request.setHeader(b"Content-Type", content_type)
    if status != 204:
        request.setHeader(b"Content-Length", b"%d" % len(body))
    if retry_after:
        request.setHeader(b"Retry-After", b"%d" % retry_after)
    request.setHeader(b"Cache-Control", b"no-store")
    request.write(body)
    request.finish()


def _answer_to_failure(failure: Failure) -> tuple[int, bytes, bytes, int] | None:
    """Return what L{_send} takes; None when the router is gone."""
    error = failure.value
    if isinstance(error, CancelledError):
        return None
    if isinstance(error, (StoreFull, StoreUnavailable)):
        error = AgentRefused(503, "unavailable", "The console can't write now.", 10)
    elif not isinstance(error, AgentRefused):
        _log.failure("A request of a router has failed", failure)
        error = AgentRefused(500, "failed")
    return error.status, error.body, PROBLEM_TYPE, error.retry_after
