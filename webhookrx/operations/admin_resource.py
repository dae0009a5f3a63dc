"""
What operators and their programs ask for: health and metrics, as a tree of C{twisted.web} resources.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from twisted.internet.interfaces import IPushProducer
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource, Resource
from zope.interface import implementer

from webhookrx.config.settings import Limits
from webhookrx.errors import NoRoom
from webhookrx.interfaces import Acknowledge, IMessageConsumer
from webhookrx.message.message import Message
from webhookrx.operations.health import Health

#: What one who asks for these pages may take. There is nothing to send us.
ADMIN_LIMITS = Limits(body=0, connections=100, connections_per_peer=100)

_JSON = b"application/json"
_METHODS = (b"GET", b"HEAD")


class AdminResource(Resource):
    """
    The root: C{/livez}, C{/readyz} with its other name C{/healthz}, and C{/metrics}.

    @param metrics_text: from the value of an C{Accept} header to the type and the text of all metrics.
    @param health: judges how the receiver is.
    """

    def __init__(self, metrics_text: Callable[[bytes], tuple[bytes, bytes]], health: Callable[[], Health]) -> None:
        super().__init__()
        ready = _Page(lambda _: _health_answer(health()))
        self.putChild(b"livez", _Page(lambda _: (200, _JSON, _json("alive"))))
        self.putChild(b"readyz", ready)
        self.putChild(b"healthz", ready)
        self.putChild(b"metrics", _Page(lambda accept: (200, *metrics_text(accept))))

    def getChild(self, path: bytes, request: IRequest) -> IResource:
        """See L{IResource.getChildWithDefault}."""
        return _NOTHING


class _Page(Resource):
    """
    A page to look at.

    @param read: from the value of the C{Accept} header to status, type and text.
    """

    def __init__(self, read: Callable[[bytes], tuple[int, bytes, bytes]]) -> None:
        super().__init__()
        self._read = read

    def getChild(self, path: bytes, request: IRequest) -> IResource:
        """See L{IResource.getChildWithDefault}."""
        return _NOTHING

    def render(self, request: IRequest) -> bytes:
        """See L{IResource.render}."""
        if request.method not in _METHODS:
            request.setHeader(b"Allow", b", ".join(_METHODS))
            return _answer(request, 405, _JSON, _json("method_not_allowed"))
        accept = b",".join(request.requestHeaders.getRawHeaders(b"accept", ()))
        return _answer(request, *self._read(accept))


class _Nothing(Resource):
    """There is no such page."""

    isLeaf = True

    def render(self, request: IRequest) -> bytes:
        """See L{IResource.render}."""
        return _answer(request, 404, _JSON, _json("not_found"))


_NOTHING = _Nothing()


def _health_answer(health: Health) -> tuple[int, bytes, bytes]:
    return 200 if health.fit else 503, _JSON, _json(health.state, health.reasons)


def _json(status: str, reasons: tuple[str, ...] = ()) -> bytes:
    return msgspec.json.encode({"status": status, "reasons": reasons}) + b"\n"


def _answer(request: IRequest, status: int, content_type: bytes, body: bytes) -> bytes:
    request.setResponseCode(status)
    request.setHeader(b"Content-Type", content_type)
    request.setHeader(b"X-Content-Type-Options", b"nosniff")
    request.setHeader(b"Cache-Control", b"no-store")
    return body


@implementer(IMessageConsumer)
class NoMessages:
    """
    The end of a chain that messages never reach. It never runs out of room: who asks how the receiver is must be told
    so above all when its queue is full.
    """

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """There is nothing to pause it for."""

    def unregisterProducer(self) -> None:
        """It was never paused."""

    def has_room(self, size: int, *, small: bool) -> bool:
        """There is always room: L{ADMIN_LIMITS} allows no bodies."""
        return True

    def reserve(self, size: int, *, small: bool) -> bool:
        """There is always room, likewise."""
        return True

    def release(self, size: int) -> None:
        """Nothing was counted."""

    def write(self, message: Message, acknowledge: Acknowledge) -> None:
        """
        @raise NoRoom: always.
        """
        raise NoRoom

    def retry_after(self) -> int:
        """There will never be room for messages."""
        return 1
