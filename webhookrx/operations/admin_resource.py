"""
The pages for operators and their programs: health and metrics, as a tree of C{twisted.web} resources.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import cast

import msgspec
from twisted.internet.interfaces import IConsumer, IPullProducer, IPushProducer
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from webhookrx.errors import NoRoom
from webhookrx.interfaces import Acknowledge, IMessageConsumer
from webhookrx.message.message import Message
from webhookrx.operations.health import Health
from webhookrx.settings import Limits

#: Limits of the endpoint: requests have no body, and slow or many clients must not keep a probe from its answer.
ADMIN_LIMITS = Limits(body=0, connections=100, connections_per_peer=50, header_time=5.0, answer_time=10.0)

_METHODS = (b"GET", b"HEAD")
_NO_WEIGHT = re.compile(rb"\s*q=0(\.0*)?\s*")
_GZIP = 16 + zlib.MAX_WBITS


class AdminResource(Resource):
    """
    The root: C{/livez}, C{/readyz} with its other name C{/healthz}, and C{/metrics}.

    @param metrics: takes the value of an C{Accept} header, and returns the type of all metrics and the pieces of their
        text.
    @param health: returns the health of the receiver.
    """

    def __init__(self, metrics: Callable[[bytes], tuple[bytes, Iterator[bytes]]], health: Callable[[], Health]) -> None:
        super().__init__()
        ready = _StatusPage(lambda: _health_answer(health()))
        self.putChild(b"livez", _StatusPage(lambda: (200, _json("alive"))))
        self.putChild(b"readyz", ready)
        self.putChild(b"healthz", ready)
        self.putChild(b"metrics", _MetricsPage(metrics))

    def getChild(self, path: bytes, request: IRequest) -> IResource:
        return _NOTHING


class _AdminPage(Resource):
    """A page that is only read."""

    def getChild(self, path: bytes, request: IRequest) -> IResource:
        return _NOTHING

    def render(self, request: IRequest) -> bytes | int:
        if request.method not in _METHODS:
            request.setHeader(b"Allow", b", ".join(_METHODS))
            return _answer(request, 405, _json("method_not_allowed"))
        return self.show(request)

    def show(self, request: IRequest) -> bytes | int:
        """Return the body, or C{NOT_DONE_YET}."""
        raise NotImplementedError


class _StatusPage(_AdminPage):
    """
    @param read: returns status and body.
    """

    def __init__(self, read: Callable[[], tuple[int, bytes]]) -> None:
        super().__init__()
        self._read = read

    def show(self, request: IRequest) -> bytes:
        return _answer(request, *self._read())


class _MetricsPage(_AdminPage):
    """
    @param read: see L{AdminResource}.
    """

    def __init__(self, read: Callable[[bytes], tuple[bytes, Iterator[bytes]]]) -> None:
        super().__init__()
        self._read = read

    def show(self, request: IRequest) -> bytes | int:
        """See L{_AdminPage.show}. A long text goes out at the pace of the client, with other work in between."""
        content_type, pieces = self._read(_asked(request, b"Accept"))
        if request.method != b"HEAD":
            pieces = chain((next(pieces),), pieces)  # a failure here can still be a 500
        request.setHeader(b"Vary", b"Accept, Accept-Encoding")
        if _takes_gzip(_asked(request, b"Accept-Encoding")):
            request.setHeader(b"Content-Encoding", b"gzip")
            pieces = _packed(pieces)
        _set_head(request, 200, content_type)
        if request.method == b"HEAD":
            return b""  # without a length, which is unknown yet (RFC 9110 §9.3.2)
        cast(IConsumer, request).registerProducer(_Pieces(request, pieces), False)
        return NOT_DONE_YET


@implementer(IPullProducer)
class _Pieces:
    """Writes an answer, each piece when the one before is sent."""

    def __init__(self, request: IRequest, pieces: Iterator[bytes]) -> None:
        self._request = request
        self._pieces = pieces

    def resumeProducing(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            cast(IConsumer, self._request).unregisterProducer()
            self._request.finish()
        else:
            self._request.write(piece)

    def stopProducing(self) -> None:
        """See L{twisted.internet.interfaces.IProducer.stopProducing}: the client is gone."""
        self._pieces = iter(())


class _Nothing(Resource):
    """The page of all other paths."""

    isLeaf = True

    def render(self, request: IRequest) -> bytes:
        return _answer(request, 404, _json("not_found"))


_NOTHING = _Nothing()


def _health_answer(health: Health) -> tuple[int, bytes]:
    return 200 if health.is_ready else 503, _json(health.state, health.reasons)


def _json(status: str, reasons: tuple[str, ...] = ()) -> bytes:
    return msgspec.json.encode({"status": status, "reasons": reasons}) + b"\n"


def _answer(request: IRequest, status: int, body: bytes) -> bytes:
    _set_head(request, status, b"application/json")
    if request.method == b"HEAD":
        request.setHeader(b"Content-Length", b"%d" % len(body))
        return b""
    return body


def _set_head(request: IRequest, status: int, content_type: bytes) -> None:
    request.setResponseCode(status)
    request.setHeader(b"Content-Type", content_type)
    request.setHeader(b"X-Content-Type-Options", b"nosniff")
    request.setHeader(b"Cache-Control", b"no-store")


def _asked(request: IRequest, name: bytes) -> bytes:
    return b",".join(request.requestHeaders.getRawHeaders(name, ()))


def _takes_gzip(accept_encoding: bytes) -> bool:
    """Return whether this value of C{Accept-Encoding} allows gzip by its name (RFC 9110 §12.5.3)."""
    for coding in accept_encoding.lower().split(b","):
        name, _, weight = coding.partition(b";")
        if name.strip() == b"gzip":
            return not _NO_WEIGHT.fullmatch(weight)
    return False


def _packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Compress piece by piece: no result is empty or waits for the next piece."""
    packer = zlib.compressobj(zlib.Z_BEST_SPEED, zlib.DEFLATED, _GZIP)
    for piece in pieces:
        yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


@implementer(IMessageConsumer)
class NoMessages:
    """
    A consumer that gets no messages, and is never full: health and metrics matter most when the queue is full.
    """

    takes_lines = False
    takes_only_lines = False

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """The producer is never paused."""

    def unregisterProducer(self) -> None:
        """The producer was never paused."""

    def has_room(self, size: int, *, small: bool) -> bool:
        """There is always room: L{ADMIN_LIMITS} allows no bodies."""
        return True

    def reserve(self, size: int, *, small: bool) -> bool:
        """There is always room, likewise."""
        return True

    def release(self, size: int) -> None:
        """Nothing was counted."""

    def prepare(self, message: Message) -> bytes:
        """There are no messages."""
        return b""

    def write(self, message: Message, acknowledge: Acknowledge, prepared: object = None) -> None:
        """
        @raise NoRoom: always.
        """
        raise NoRoom

    def write_all(
        self, messages: Sequence[Message], acknowledge: Acknowledge, prepared: Sequence[object] | None = None
    ) -> None:
        """
        @raise NoRoom: always.
        """
        raise NoRoom

    def retry_after(self) -> int:
        """Messages never have room."""
        return 1
