"""
Requests that C{twisted.web}'s own C{Site} has read, judged by our resources when their body is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from twisted.web.iweb import IRequest
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from webhookrx.errors import NO_MATCHING_PATH, NOT_STORED, NotStored
from webhookrx.http.answers import RECEIVED, FixedAnswer, refusal_to
from webhookrx.http.interfaces import IExchange, IReceiver, Verdict
from webhookrx.http.transport_queries import client_of
from webhookrx.intake.client_address import normal_ip
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Admission, Refused
from webhookrx.wire_interfaces import ITraffic


class MatchedResource(Resource):
    """
    What takes requests whose path is matched as a whole, so that the rest of it is no tree.

    @param dispatch: see L{webhookrx.http.interfaces.IEarlyResource}.
    """

    isLeaf = True

    def __init__(self, dispatch: Callable[[Head], Verdict], traffic: ITraffic) -> None:
        super().__init__()
        self._dispatch = dispatch
        self._traffic = traffic

    def render(self, request: IRequest) -> int:
        """See L{IResource.render}: judge a request of C{twisted.web}'s own."""
        head = _head_of(request)
        verdict = self._dispatch(head) or Refused(NO_MATCHING_PATH, NO_MATCHING_PATH.detail)
        if isinstance(verdict, Refused):
            self._traffic.refused(
                verdict.reason, verdict.detail, str(head.peer), head.method, head.path, verdict.source
            )
            _send(request, refusal_to(verdict))
        elif isinstance(verdict, FixedAnswer):
            _send(request, verdict)
        else:
            receiver, admission = verdict
            exchange = _StockExchange(request, head, receiver, admission, self._traffic)
            receiver.receive(exchange, request.content.read())
        return NOT_DONE_YET


@implementer(IExchange)
class _StockExchange:
    """An admitted request of C{twisted.web}'s own."""

    def __init__(
        self, request: IRequest, head: Head, receiver: IReceiver, admission: Admission, traffic: ITraffic
    ) -> None:
        self._request: IRequest | None = request
        self._receiver = receiver
        self._traffic = traffic
        self._began = time.monotonic()
        self.head = head
        self.admission = admission
        request.notifyFinish().addErrback(self._lost)  # type: ignore[attr-defined]

    def acknowledged(self, error: NotStored | None, answer: FixedAnswer = RECEIVED) -> None:
        """See L{IExchange.acknowledged}."""
        head = self.head
        if error is None:
            if self.answer(answer):
                self._traffic.answered(self.admission.rules.name, time.monotonic() - self._began)
        elif self.answer(self._receiver.refusal(head, NOT_STORED, NOT_STORED.detail)):
            self._traffic.refused(
                NOT_STORED,
                NOT_STORED.detail,
                str(head.peer),
                head.method,
                head.path,
                self.admission.rules.name,
            )

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
