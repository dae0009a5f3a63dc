"""
The root of the tree: it matches the whole path against the path patterns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from twisted.web.iweb import IRequest
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from webhookrx.errors import NO_MATCHING_PATH, NotStored
from webhookrx.http.answers import NOT_READY, READY, Answer, refusal
from webhookrx.http.interfaces import IEarlyResource, IExchange, IReceiver
from webhookrx.http.webhook_resource import WebhookResource
from webhookrx.intake.client_address import normal_ip
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Admission, Refused
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.interfaces import ITraffic

#: With these load balancers ask for health; what is posted at the same path is a message.
_ASKING = (b"GET", b"HEAD", b"OPTIONS")


def nobody_knows() -> bool:
    """Say that the service is not ready."""
    return False


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
        ready: Callable[[], bool] = nobody_knows,
    ) -> None:
        super().__init__()
        self._health = health
        self._ready = ready
        self._patterns = PathPatterns([pattern for pattern, _ in targets])
        self._resources = [resource for _, resource in targets]
        self._traffic = traffic

    def dispatch(self, head: Head) -> tuple[WebhookResource, Admission] | Answer | Refused | None:
        """See L{IEarlyResource.dispatch}."""
        if self.children and head.path[1:].partition(b"/")[0] in self.children:
            return None
        if head.method in _ASKING and head.path in self._health:
            return READY if self._ready() else NOT_READY
        match = self._patterns.match(head.path)
        if match is None:
            return Refused(NO_MATCHING_PATH, NO_MATCHING_PATH.detail)
        index, raw_groups = match
        resource = self._resources[index]
        admission = resource.admit(head, raw_groups)
        return (resource, admission) if isinstance(admission, Admission) else admission

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
            _send(request, refusal(verdict.reason, verdict.detail))
        elif isinstance(verdict, Answer):
            _send(request, verdict)
        else:
            resource, admission = verdict
            resource.receive(_StockExchange(request, head, resource, admission), request.content.read())
        return NOT_DONE_YET


@implementer(IExchange)
class _StockExchange:
    """An admitted request of C{twisted.web}'s own."""

    def __init__(self, request: IRequest, head: Head, receiver: IReceiver, admission: Admission) -> None:
        self._request: IRequest | None = request
        self._receiver = receiver
        self.head = head
        self.admission = admission
        self.began = time.monotonic()
        request.notifyFinish().addErrback(self._lost)  # type: ignore[attr-defined]

    def __call__(self, error: NotStored | None) -> None:
        """See L{IExchange.__call__}."""
        self._receiver.acknowledged(self, error)

    def _lost(self, reason: object) -> None:
        self._request = None

    def is_open(self) -> bool:
        """See L{IExchange.is_open}."""
        return self._request is not None

    def answer(self, answer: Answer, *, close: bool = False) -> bool:
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
    return Head(request.method, path, query, headers, Peer(ip, getattr(peer, "port", None), request.isSecure()))


def _send(request: IRequest, answer: Answer) -> None:
    request.setResponseCode(answer.status)
    request.setHeader(b"Content-Type", b"application/json")
    request.setHeader(b"Content-Length", b"%d" % len(answer.body))
    for line in answer.extra.splitlines():
        name, _, value = line.partition(b": ")
        request.setHeader(name, value)
    request.write(answer.body)
    request.finish()
