"""
A site with a sender at the other end of each connection, all in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IAddress, ISSLTransport, ITCPTransport
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from zope.interface import alsoProvides, implementer

from webhookrx.errors import Reason
from webhookrx.http.connections import Connections
from webhookrx.http.protocol import HTTPProtocol
from webhookrx.http.resources import RecordRequest, RootResource, WebhookResource, never_ready
from webhookrx.http.site import Site
from webhookrx.http.time_slices import TimeSlices
from webhookrx.intake.judge import Receipt, SourceRules
from webhookrx.settings import Limits
from webhookrx.testing import RecordingConsumer
from webhookrx.wire_interfaces import ITraffic

RECEIVED = 1_767_323_045_678_901_234
NOON = 1_767_268_800.0  # Thu, 01 Jan 2026 12:00:00 GMT


@implementer(ITCPTransport)
class Transport:
    """
    Our end of a connection, and what a sender sees of it.

    @ivar written: all that was written, taken or not.
    @ivar end: None, C{"half"} after a half-close, C{"closed"} or C{"aborted"}.
    """

    def __init__(self, peer: IAddress, high_water: int = 65536) -> None:
        self.written = b""
        self.end: str | None = None
        self.reading = True
        self.no_delay = False
        self.protocol: HTTPProtocol
        self.peer = peer
        self._producer: Any = None
        self._streaming = True
        self._held: int | None = None
        self._high_water = high_water

    # what the protocol calls

    def write(self, data: bytes) -> None:
        assert self.end not in ("closed", "half"), "written after the end"
        self.written += data
        if self._held is not None:
            self._held += len(data)
            if self._held > self._high_water and self._producer is not None and self._streaming:
                self._producer.pauseProducing()

    def writeSequence(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        assert self._producer is None, "two producers"
        self._producer, self._streaming = producer, streaming
        if not streaming:
            while self._producer is producer:
                producer.resumeProducing()

    def unregisterProducer(self) -> None:
        assert self._producer is not None, "no producer"
        self._producer = None

    def pauseProducing(self) -> None:
        self.reading = False

    def resumeProducing(self) -> None:
        self.reading = True

    def stopProducing(self) -> None:
        self.loseConnection()

    def loseWriteConnection(self) -> None:
        self.end = "half"

    def loseConnection(self) -> None:
        if self.end in (None, "half"):
            assert self._producer is None, "a registered producer holds the close up"
            self.end = "closed"
            if self._held is None:
                self.protocol.connectionLost(Failure(ConnectionDone()))

    def abortConnection(self) -> None:
        self.end = "aborted"
        self.protocol.connectionLost(Failure(ConnectionAborted()))

    def getPeer(self) -> IAddress:
        return self.peer

    def getHost(self) -> IAddress:
        return IPv4Address("TCP", "192.0.2.99", 8181)

    def setTcpNoDelay(self, enabled: bool) -> None:
        self.no_delay = enabled

    def getTcpNoDelay(self) -> bool:
        return self.no_delay

    def setTcpKeepAlive(self, enabled: bool) -> None: ...

    def getTcpKeepAlive(self) -> bool:
        return False

    def getPeerCertificate(self) -> object:
        return None

    # what the sender does

    def stop_taking(self) -> None:
        """Take no more of what is written, as a reader that has gone to sleep."""
        self._held = 0

    def take(self) -> None:
        """Take all again."""
        self._held = None
        if self.end == "closed":
            self.protocol.connectionLost(Failure(ConnectionDone()))
        elif self._producer is not None:
            self._producer.resumeProducing()


class AtOnce(TimeSlices):
    """Does work in one go."""

    def __init__(self) -> None:
        """Without a clock and a reactor."""

    def has_room(self, size: int) -> bool:
        return True

    def run(
        self, work: Callable[[], Any], done: Callable[[Any], None], size: int, is_wanted: Callable[[], bool]
    ) -> None:
        try:
            outcome = work()
        except Exception:
            outcome = Failure()
        done(outcome)


class Response:
    """
    One answer, taken apart.

    @ivar headers: the last of each name.
    @ivar cookies: all that it sets.
    """

    def __init__(self, status: int, headers: dict[str, str], body: bytes, cookies: Collection[str] = ()) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.cookies = list(cookies)

    def __repr__(self) -> str:
        return f"<{self.status} {self.headers} {self.body!r}>"


@implementer(ITraffic)
class Traffic:
    """An L{ITraffic} that remembers."""

    def __init__(self) -> None:
        self.refusals: list[tuple[str, str, bytes, bytes]] = []
        self.details: list[str] = []
        self.refused_by: list[tuple[str, str]] = []
        self.answers: list[tuple[str, float]] = []
        self.sizes: list[int] = []
        self.acceptances: list[tuple[str, tuple[str, ...], int]] = []
        self.bundles: list[tuple[str, Any, int]] = []
        self.expected: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        self.processings: list[tuple[str, tuple[tuple[str, str], ...], str]] = []
        self.handshakes: list[str] = []
        self.questions: list[tuple[str, str]] = []
        self.duplicates: list[str] = []
        self.verifications: list[tuple[str, str]] = []
        self.shown_tokens: list[tuple[str, str]] = []
        self.skews: list[tuple[str, float]] = []
        self.dropped = 0
        self.failures: list[str] = []
        self.accept_errors: list[str] = []

    @property
    def reasons(self) -> list[str]:
        """The words of all refusals, in order."""
        return [reason for reason, *_ in self.refusals]

    def refused(self, reason: Reason, detail: str, peer: str, method: bytes, path: bytes, source: str = "") -> None:
        self.refusals.append((reason.word, peer, method, path))
        self.details.append(detail)
        self.refused_by.append((source, reason.word))

    def answered(self, source: str, seconds: float) -> None:
        self.answers.append((source, seconds))

    def accepted(self, source: str, notes: Any, left_out: int, size: int = 0) -> None:
        self.acceptances.append((source, tuple(notes), left_out))
        self.sizes.append(size)

    def took_apart(self, source: str, judged: Any, size: int) -> None:
        self.bundles.append((source, judged, size))

    def expects(self, source: str, events: Any) -> None:
        self.expected.append((source, tuple(events)))

    def processed(self, source: str, events: Any, problem: str) -> None:
        self.processings.append((source, tuple(events), problem))

    def guards(
        self, source: str, secrets: Any, tokens: Any, kinds: Any, *, says_when: bool, sender: str = ""
    ) -> None: ...

    def verified(self, source: str, secret: str) -> None:
        self.verifications.append((source, secret))

    def token_shown(self, source: str, token: str) -> None:
        self.shown_tokens.append((source, token))

    def skewed(self, source: str, seconds: float) -> None:
        self.skews.append((source, seconds))

    def asked(self, source: str, kind: str) -> None:
        self.questions.append((source, kind))

    def duplicate(self, source: str) -> None:
        self.duplicates.append(source)

    def accept_failed(self, error: str) -> None:
        self.accept_errors.append(error)

    def handshake_failed(self, peer: str, failure: Failure) -> None:
        self.handshakes.append(peer)

    def dropped_unread(self) -> None:
        self.dropped += 1

    def failed(self, what: str, failure: Failure) -> None:
        self.failures.append(what)


class Sender:
    """One connection, from the sender's side."""

    def __init__(self, protocol: HTTPProtocol, transport: Transport) -> None:
        self.protocol = protocol
        self.transport = transport
        self._read = 0

    def send(self, data: bytes) -> None:
        """Send bytes; nothing arrives while the receiver doesn't read."""
        assert self.transport.reading, "the receiver is not reading"
        if self.transport.end not in ("closed", "aborted"):
            self.protocol.dataReceived(data)

    def end(self) -> None:
        """Say that no more comes, and wait for answers."""
        self.protocol.readConnectionLost()

    def leave(self) -> None:
        """Go away."""
        self.transport.end = "closed"
        self.protocol.connectionLost(Failure(ConnectionLost()))

    def responses(self) -> list[Response]:
        """Return the answers that came since the last call."""
        data = self.transport.written[self._read :]
        self._read = len(self.transport.written)
        found = []
        while data:
            head, _, rest = data.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            match = re.fullmatch(r"HTTP/1\.1 (\d\d\d) [A-Za-z -]+", first)
            assert match, first
            pairs = [(name.lower(), value) for name, value in (line.split(": ", 1) for line in lines)]
            headers = dict(pairs)
            if headers.get("transfer-encoding") == "chunked":
                body, _, data = rest.partition(b"0\r\n\r\n")
            else:
                length = int(headers.get("content-length", 0)) if match[1] != "100" else 0
                body, data = rest[:length], rest[length:]
            cookies = [value for name, value in pairs if name == "set-cookie"]
            found.append(Response(int(match[1]), headers, body, cookies))
        return found

    def statuses(self) -> list[int]:
        """Return the statuses of the answers that came since the last call."""
        return [response.status for response in self.responses()]


class Wire:
    """
    A site and its senders.

    @param patterns: pattern to options of L{SourceRules}; each becomes a source of its own.
    """

    def __init__(
        self,
        patterns: dict[str, dict[str, Any]] | None = None,
        limits: Limits | None = None,
        root: Any = None,
        consumer: Any = None,
        slices: TimeSlices | None = None,
        record: RecordRequest | None = None,
        health: Collection[bytes] = (),
        ready: Callable[[], bool] = never_ready,
        **site_options: Any,
    ) -> None:
        self.clock = Clock()
        self.traffic = Traffic()
        self.limits = limits or Limits()
        self.consumer = consumer or RecordingConsumer(self.clock)
        self.connections = Connections(self.limits)
        self._receipts = 0
        targets = [
            (
                pattern,
                WebhookResource(
                    SourceRules(
                        **{
                            "name": "default",
                            "parse_json": False,
                            "body_limit": self.limits.body,
                            "unpack_ratio": self.limits.unpack_ratio,
                            **options,
                        }
                    ),
                    self.consumer,
                    self.traffic,
                    self._receipt,
                    slices or AtOnce(),
                    record=record,
                ),
            )
            for pattern, options in (patterns or {"/.*": {}}).items()
        ]
        self.root = RootResource(targets, self.traffic, health, ready) if root is None else root
        self.site = Site(
            self.root,
            self.consumer,
            self.traffic,
            limits=self.limits,
            connections=self.connections,
            clock=self.clock.seconds,
            wall_clock=lambda: NOON + self.clock.seconds(),
            **site_options,
        )

    def _receipt(self) -> Receipt:
        self._receipts += 1
        return Receipt(RECEIVED, f"id-{self._receipts}")

    def connect(self, peer: str | None = "192.0.2.7", secure: bool = False) -> Sender:
        """Open a connection; from a UNIX socket when C{peer} is None."""
        address: Any = UNIXAddress(None) if peer is None else IPv4Address("TCP", peer, 40000)
        transport = Transport(address)
        if secure:
            alsoProvides(transport, ISSLTransport)
        protocol = self.site.buildProtocol(address)
        transport.protocol = protocol
        protocol.makeConnection(transport)
        if secure and transport.end is None:
            protocol.handshakeCompleted()
        return Sender(protocol, transport)

    def ask(self, data: bytes, **options: Any) -> Response:
        """Send one request on a connection of its own and return its answer."""
        sender = self.connect(**options)
        sender.send(data)
        self.settle()
        (response,) = sender.responses()
        return response

    def settle(self) -> None:
        """Let everything happen that happens at once."""
        self.clock.advance(0)

    def advance(self, seconds: float) -> None:
        """Let time pass, with the sweeps of that time."""
        end = self.clock.seconds() + seconds
        while self.clock.seconds() < end:
            self.clock.advance(min(0.5, end - self.clock.seconds()))
            self.site.sweep()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The values of all messages so far."""
        return [message.values for message in self.consumer.messages]


def post(body: bytes = b"", target: bytes = b"/in", headers: bytes = b"", version: bytes = b"1.1") -> bytes:
    """Return a POST request."""
    return b"POST %s HTTP/%s\r\nHost: receiver\r\n%sContent-Length: %d\r\n\r\n%s" % (
        target,
        version,
        headers,
        len(body),
        body,
    )
