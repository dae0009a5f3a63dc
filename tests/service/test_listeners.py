"""
Tests for L{webhookrx.service.listeners}.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from hypothesis import given
from hypothesis.strategies import dictionaries, integers, lists, sampled_from
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import AtOnce, Sender, Traffic, Transport, post
from tests.system.certificates import Authority, server_settings, write
from tests.transport.test_swappable_endpoint import OpenPort
from webhookrx.config.files import read_file
from webhookrx.errors import ConfigError, WebhookrxError
from webhookrx.intake.judge import Receipt
from webhookrx.service.listeners import Listeners, ListenersChange
from webhookrx.service.routes import build_roots
from webhookrx.service.source_rules import by_listener
from webhookrx.settings import TLS, FileContents, Limits, Listener, Settings, Source
from webhookrx.testing import RECEIVED, RecordingConsumer

TLSFiles: TypeAlias = Mapping[str, FileContents] | None
"""See L{Listeners.plan}."""

PEER = IPv4Address("TCP", "192.0.2.7", 40000)


class PortReactor(MemoryReactorClock):
    """
    Opens ports that start and stop their factories.

    @ivar ports: those that are open, by number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ports: dict[int, OpenPort] = {}

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Any:
        if port in self.ports:
            raise CannotListenError(interface, port, OSError(98, "Address already in use"))
        opened = _Port(factory, self.ports, port)
        opened.startListening()
        return opened


class _Port(OpenPort):
    def __init__(self, factory: Any, ports: dict[int, OpenPort], number: int) -> None:
        super().__init__(factory)
        self._ports = ports
        self._number = number

    def startListening(self) -> None:
        super().startListening()
        self._ports[self._number] = self

    def stopListening(self) -> None:
        super().stopListening()
        del self._ports[self._number]

    def getHost(self) -> Any:
        return IPv4Address("TCP", "127.0.0.1", self._number)


def tcp(port: int, tls: TLS | None = None, *, proxy_protocol: bool = False) -> Listener:
    """Return a listener on a TCP port."""
    return Listener(str(port), f"tcp:{port}", proxy_protocol, tls)


class ListenersTests(SynchronousTestCase):
    """
    Endpoints, and others in their place.
    """

    def setUp(self) -> None:
        self.reactor = PortReactor()
        self.traffic = Traffic()
        self.consumer = RecordingConsumer(self.reactor)
        self.listeners = Listeners(self.reactor, self.consumer, self.traffic, Limits())

    def plan(self, *sources: Source, limits: Limits | None = None, tls_files: TLSFiles = None) -> ListenersChange:
        """Prepare for these sources."""
        settings = Settings(sources, (), limits=limits or Limits())
        roots = build_roots(settings, self.consumer, self.traffic, lambda: Receipt(RECEIVED, "id"), AtOnce())
        return self.listeners.plan(
            [listener for listener, _ in by_listener(sources)], roots, settings.limits, tls_files
        )

    def change(self, *sources: Source, limits: Limits | None = None, tls_files: TLSFiles = None) -> None:
        """Go by these sources."""
        change = self.plan(*sources, limits=limits, tls_files=tls_files)
        change.open()
        self.listeners.commit(change)

    def connect(self, port: int, header: bytes = b"") -> Sender:
        """Connect to an open port."""
        protocol: Any = self.reactor.ports[port].factory.buildProtocol(PEER)
        transport = Transport(PEER)
        transport.protocol = protocol
        protocol.makeConnection(transport)
        sender = Sender(protocol, transport)
        if header:
            sender.send(header)
        return sender

    def ask(self, sender: Sender, target: bytes = b"/in", headers: bytes = b"") -> tuple[int, str]:
        """Ask on a connection; return status and what is said of the connection."""
        sender.send(post(b"x", target, headers))
        self.reactor.advance(0)
        (response,) = sender.responses()
        return response.status, response.headers.get("connection", "keep")

    def test_first(self) -> None:
        """Nothing is open before it is opened; then each endpoint has the patterns of its sources."""
        change = self.plan(Source("a", paths=("/a",), listeners=(tcp(1), tcp(2))), Source("b", listeners=(tcp(2),)))
        self.assertEqual({}, self.reactor.ports)
        change.open()
        self.listeners.commit(change)
        self.assertEqual([1, 2], sorted(self.reactor.ports))
        self.assertEqual(404, self.ask(self.connect(1), b"/b")[0])
        self.assertEqual(200, self.ask(self.connect(2), b"/b")[0])

    def test_no_root_yet(self) -> None:
        """An endpoint without a root answers 404 until it gets one."""
        source = Source(listeners=(tcp(1),))
        change = self.listeners.plan([tcp(1)], {}, Limits())
        change.open()
        self.listeners.commit(change)
        self.assertEqual(404, self.ask(self.connect(1))[0])
        self.listeners.use(self.plan(source).roots, Limits())
        self.assertEqual(200, self.ask(self.connect(1))[0])

    def test_kept(self) -> None:
        """An endpoint that stays keeps its port and its connections; the next request on them goes by the new rules."""
        self.change(Source(auth_tokens=(b"old",), listeners=(tcp(1),)))
        port, sender = self.reactor.ports[1], self.connect(1)
        self.assertEqual((200, "keep"), self.ask(sender, headers=b"Authorization: Bearer old\r\n"))
        self.change(Source(auth_tokens=(b"new",), listeners=(tcp(1),)), limits=Limits(body=2))
        self.assertIs(port, self.reactor.ports[1])
        self.assertEqual((200, "keep"), self.ask(sender, headers=b"Authorization: Bearer new\r\n"))
        self.assertEqual((403, "keep"), self.ask(sender, headers=b"Authorization: Bearer old\r\n"))
        sender.send(post(b"long", headers=b"Authorization: Bearer new\r\n"))
        self.assertEqual([413], sender.statuses())

    @given(lists(dictionaries(integers(1, 4), sampled_from(("/a", "/b")), max_size=4), min_size=1, max_size=6))
    def test_any_changes(self, states: list[dict[int, str]]) -> None:
        """After any changes the ports are open that are wanted; those that stayed kept sockets and connections."""
        self.setUp()
        senders: dict[int, Sender] = {}
        for state in states:
            before = dict(self.reactor.ports)
            self.change(*(Source(f"s{port}", paths=(path,), listeners=(tcp(port),)) for port, path in state.items()))
            self.assertEqual(set(state), set(self.reactor.ports))
            senders = {port: senders.get(port) or self.connect(port) for port in state}
            for port, path in state.items():
                self.assertIs(before.get(port, self.reactor.ports[port]), self.reactor.ports[port])
                other = "/a" if path == "/b" else "/b"
                self.assertEqual((200, "keep"), self.ask(senders[port], path.encode()))
                self.assertEqual((404, "keep"), self.ask(senders[port], other.encode()))

    def test_request_under_way(self) -> None:
        """A request goes on under the rules that it was admitted by."""
        self.change(Source("old", auth_tokens=(b"old",), listeners=(tcp(1),)))
        sender = self.connect(1)
        request = post(b"body", headers=b"Authorization: Bearer old\r\n")
        sender.send(request[:-2])
        self.change(Source("new", paths=("/other",), listeners=(tcp(1),)))
        sender.send(request[-2:])
        self.reactor.advance(0)
        self.assertEqual([200], sender.statuses())
        self.assertEqual(["old"], [message.values["SOURCE"] for message in self.consumer.messages])

    def test_removed(self) -> None:
        """An endpoint that goes is closed; what is sent by then is answered, then idle connections end."""
        self.change(Source(listeners=(tcp(1), tcp(2))))
        idle, busy, late, other = self.connect(2), self.connect(2), self.connect(2), self.connect(1)
        request = post(b"body")
        busy.send(request[:-2])
        self.change(Source(listeners=(tcp(1),)))
        self.assertEqual([1], list(self.reactor.ports))
        self.listeners.sweep()
        late.send(request)
        self.reactor.advance(0)
        (response,) = late.responses()
        self.assertEqual((200, "close"), (response.status, response.headers.get("connection", "keep")))
        self.assertEqual((None, None), (idle.transport.end, busy.transport.end))
        self.listeners.sweep()
        self.assertEqual(("closed", None), (idle.transport.end, busy.transport.end))
        self.assertEqual((1, 2), (self.listeners.requests, len(self.listeners.sites)))
        busy.send(request[-2:])
        self.reactor.advance(0)
        (response,) = busy.responses()
        self.assertEqual((200, "close"), (response.status, response.headers.get("connection", "keep")))
        self.assertEqual((200, "keep"), self.ask(other))
        self.assertEqual((0, 1), (self.listeners.requests, len(self.listeners.sites)))

    def test_closing(self) -> None:
        """A change tells when what it removes is closed."""
        self.change(Source(listeners=(tcp(1), tcp(2), tcp(3))))
        closing: Deferred[None] = Deferred()
        self.patch(self.reactor.ports[3], "stopListening", lambda: closing)
        change = self.plan(Source(listeners=(tcp(1),)))
        change.open()
        quick, slow = self.listeners.commit(change)
        self.assertIsNone(self.successResultOf(quick))
        self.assertNoResult(slow)
        closing.callback(None)
        self.assertIsNone(self.successResultOf(slow))

    def test_removed_and_slow(self) -> None:
        """A sender at an endpoint that is gone still has its deadline."""
        self.change(Source(listeners=(tcp(1), tcp(2))), limits=Limits(body_time=0))
        slow = self.connect(2)
        slow.send(post(b"body")[:-2])
        self.change(Source(listeners=(tcp(1),)), limits=Limits(body_time=0))
        self.listeners.sweep()
        self.assertEqual([408], slow.statuses())

    def test_order(self) -> None:
        """They come in the order of the settings, whenever they were opened."""
        self.change(Source(listeners=(tcp(2), tcp(3))))
        self.change(Source(listeners=(tcp(1), tcp(2))))
        self.assertEqual(["tcp:1", "tcp:2"], [each.listener.socket for each in self.listeners])
        self.assertEqual([1, 2], sorted(self.reactor.ports))

    def test_port_taken(self) -> None:
        """When one of several new ports can't be opened, none stays open, and the old ones are as they were."""
        self.change(Source(paths=("/old",), listeners=(tcp(1),)))
        self.reactor.listenTCP(9, self.reactor.ports[1].factory)
        change = self.plan(Source(paths=("/new",), listeners=(tcp(1), tcp(2), tcp(9))))
        self.assertIn("Address already in use", str(self.assertRaises(WebhookrxError, change.open)))
        self.assertEqual([1, 9], sorted(self.reactor.ports))
        self.assertEqual(200, self.ask(self.connect(1), b"/old")[0])

    def test_abandoned(self) -> None:
        """What was opened for a change that is given up is closed, with the connections that came meanwhile."""
        self.change(Source(listeners=(tcp(1),)))
        change = self.plan(Source(paths=("/new",), listeners=(tcp(1), tcp(2))))
        change.open()
        early = self.connect(2)
        self.assertEqual(200, self.ask(early, b"/new")[0])
        change.abandon()
        self.assertEqual(([1], "aborted"), (list(self.reactor.ports), early.transport.end))
        self.assertEqual(200, self.ask(self.connect(1), b"/old")[0])

    def test_proxy_header(self) -> None:
        """When the PROXY header comes or goes, the port stays open, and connections by the old terms end."""
        self.change(Source(listeners=(tcp(1),)))
        port, old = self.reactor.ports[1], self.connect(1)
        self.assertEqual(200, self.ask(old)[0])
        self.change(Source(listeners=(tcp(1, proxy_protocol=True),)))
        self.assertIs(port, self.reactor.ports[1])
        self.assertEqual("closed", old.transport.end)
        new = self.connect(1, b"PROXY TCP4 192.0.2.8 192.0.2.1 4321 80\r\n")
        self.assertEqual(200, self.ask(new)[0])
        self.assertEqual("192.0.2.8", self.consumer.messages[-1].values["SOURCEIP"])
        self.change(Source(listeners=(tcp(1),)))
        self.assertEqual(200, self.ask(self.connect(1))[0])
        self.assertEqual([1], list(self.reactor.ports))

    def test_no_proxy_header(self) -> None:
        """Who sends no PROXY header where one is due is counted as refused."""
        self.change(Source(listeners=(tcp(1, proxy_protocol=True),)))
        protocol: Any = self.reactor.ports[1].factory.buildProtocol(PEER)
        protocol.makeConnection(StringTransport(peerAddress=PEER))
        protocol.dataReceived(b"GET / HTTP/1.1\r\n\r\n")
        self.assertEqual([("bad_request", "192.0.2.7", b"", b"")], self.traffic.refusals)

    def test_tls(self) -> None:
        """Connections outlive a renewed certificate, but not a change of what is asked of clients."""
        directory = self.mktemp()
        os.makedirs(directory)
        authority = Authority("Root")
        tls = server_settings(directory, authority.issue("one"))
        renewed = TLS(write(os.path.join(directory, "key2"), _read(tls.key_file)), tls.cert_file)
        verifying = TLS(tls.key_file, tls.cert_file, peer_verify=True, system_store=True)
        self.change(Source(listeners=(tcp(1, tls),)))
        (open_listener,) = self.listeners
        for number, (other, stays) in enumerate(
            ((tls, True), (renewed, True), (verifying, False), (None, False), (tls, False))
        ):
            port, site, behind = self.reactor.ports[1], open_listener.site, _behind(self.reactor.ports[1])
            self.change(Source(listeners=(tcp(1, other),)))
            (open_listener,) = self.listeners
            self.assertIs(port, self.reactor.ports[1])
            self.assertNotEqual(behind, _behind(port), number)
            self.assertEqual(stays, site is open_listener.site, number)
            self.assertEqual(tcp(1, other), open_listener.listener)

    def test_bad_certificate(self) -> None:
        """A certificate that can't be used fails the plan, and names the file."""
        self.change(Source(listeners=(tcp(1),)))
        error = self.assertRaises(ConfigError, self.plan, Source(listeners=(tcp(1, TLS("/no/key", "/no/cert")),)))
        self.assertIn("/no/key", str(error))

    def test_files_as_checked(self) -> None:
        """
        Where it is told what was in the files of TLS, that is used, whatever has become of them; others are read, also
        those of the same names.
        """
        directory = self.mktemp()
        os.makedirs(directory)
        authority = Authority("Root")
        tls = server_settings(directory, authority.issue("one"))
        checked = {path: read_file(path) for path in (tls.key_file, tls.cert_file)}
        end = datetime(2097, 1, 1, tzinfo=UTC)
        authority.issue("renewed", not_after=end).write(directory, "server")
        one, two, three = (Source(str(port), listeners=(tcp(port, tls),)) for port in (1, 2, 3))
        self.change(one, two, three, tls_files={each.listeners[0].socket: checked for each in (one, three)})
        first, second, third = (each.creator for each in self.listeners)
        assert first is not None and second is not None
        self.assertIs(first, third)
        self.assertEqual(end.timestamp(), second.ends)
        self.assertNotEqual(first.ends, second.ends)
        # The earliest of those in use, whichever listener has it.
        self.assertEqual({tls.cert_file: min(first.ends, second.ends)}, self.listeners.certificates)
        os.remove(tls.key_file)
        self.change(one, tls_files={one.listeners[0].socket: checked})
        self.assertEqual({tls.cert_file: first.ends}, self.listeners.certificates)
        self.assertRaises(ConfigError, self.plan, one)

    def test_limits_over_all(self) -> None:
        """The limits that count over all endpoints change too; connections that are too many now stay."""
        self.change(Source(listeners=(tcp(1),)))
        sender = self.connect(1)
        sender.send(post(b"hello")[:-1])
        self.change(Source(listeners=(tcp(1),)), limits=Limits(connections=1))
        self.assertEqual([503], self.connect(1).statuses())
        sender.send(b"o")
        self.reactor.advance(0)
        self.assertEqual([200], sender.statuses())

    def test_accept_failures(self) -> None:
        """Connections that can't be accepted are counted; ports that rest accept again at the next sweep."""
        failures = self.listeners._accept_failures
        tried: list[str] = []
        self.patch(failures, "try_again", lambda: tried.append("again"))
        self.listeners.sweep()
        self.assertEqual(["again"], tried)
        failures._failed("ENFILE")
        failures._refused("192.0.2.1")
        self.assertEqual(["ENFILE"], self.traffic.accept_errors)
        self.assertEqual([("too_many_connections", "192.0.2.1", b"", b"")], self.traffic.refusals)

    def test_producer(self) -> None:
        """All are paused and resumed as one, those that come or go meanwhile as well."""
        self.change(Source(listeners=(tcp(1), tcp(2))))
        senders = [self.connect(1), self.connect(2)]
        senders[1].send(post(b"body")[:-2])
        self.listeners.pauseProducing()
        self.change(Source(listeners=(tcp(1), tcp(3))))
        senders.append(self.connect(3))
        self.assertEqual([False, False, False], [sender.transport.reading for sender in senders])
        self.listeners.resumeProducing()
        self.assertEqual([True, True, True], [sender.transport.reading for sender in senders])
        self.listeners.pauseProducing()
        self.listeners.stopProducing()
        self.assertEqual((503, "close"), self.ask(senders[0]))

    def test_last_requests(self) -> None:
        """Before the end each request is answered as the last on its connection, also when reading was off."""
        self.change(Source(listeners=(tcp(1),)))
        sender = self.connect(1)
        self.assertEqual((200, "keep"), self.ask(sender))
        self.listeners.pauseProducing()
        self.assertTrue(self.listeners.paused)
        self.listeners.finish()
        self.assertFalse(self.listeners.paused)
        self.assertEqual((200, "close"), self.ask(sender))
        self.assertEqual((200, "close"), self.ask(self.connect(1)))

    def test_end(self) -> None:
        """The end in its parts: ports closed, idle connections ended, those left cut off."""
        self.change(Source(listeners=(tcp(1),)))
        idle, busy = self.connect(1), self.connect(1)
        busy.send(post(b"body")[:-2])
        for closed in self.listeners.close():
            self.successResultOf(closed)
        self.assertEqual({}, self.reactor.ports)
        (drained,) = self.listeners.drain()
        self.assertEqual(("closed", None), (idle.transport.end, busy.transport.end))
        self.assertNoResult(drained)
        self.listeners.abort()
        self.assertEqual("aborted", busy.transport.end)
        self.successResultOf(drained)

    def test_port_that_does_not_close(self) -> None:
        """A port that fails to close is said, and holds nothing up."""
        self.change(Source(listeners=(tcp(1),)))
        self.patch(self.reactor.ports[1], "stopListening", lambda: 1 / 0)
        (closed,) = self.listeners.close()
        self.successResultOf(closed)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))


def _behind(port: OpenPort) -> object:
    """What gets the next connection, and makes its TLS."""
    behind: Any = port.factory
    return behind.factory, behind._creator


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
