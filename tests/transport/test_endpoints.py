"""
Tests for L{webhookrx.transport.endpoints}.
"""

from __future__ import annotations

import os
import re

from twisted.internet.endpoints import TCP6ServerEndpoint
from twisted.internet.interfaces import IStreamServerEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.system.certificates import Authority, server_settings, write_ca_file
from tests.transport.in_memory import ANSWER, QUESTION, WORKS, Answerer, Meeting, ServerEnd, client_context
from webhookrx.errors import ConfigError
from webhookrx.settings import TLS, Listener
from webhookrx.transport.connection_creator import ServerConnectionCreator
from webhookrx.transport.endpoints import build_endpoint
from webhookrx.transport.unix_socket import UNIXSocketEndpoint

PROXY_HEADER = b"PROXY TCP4 192.0.2.7 192.0.2.1 4321 443\r\n"


class BuildEndpointTests(SynchronousTestCase):
    """
    Listeners, as they behave when something connects.
    """

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        root = Authority("Root")
        self.client = client_context(write_ca_file(self.directory, "ca", root))
        self.tls = server_settings(self.directory, root.issue("server"))
        self.reactor = MemoryReactorClock()

    def connect(self, listener: Listener) -> ServerEnd:
        """Listen in memory, and return the server's end of a first connection."""
        creator = None if listener.tls is None else ServerConnectionCreator(listener.tls)
        endpoint = build_endpoint(self.reactor, listener, creator)
        verifyObject(IStreamServerEndpoint, endpoint)
        self.successResultOf(endpoint.listen(Factory.forProtocol(Answerer)))
        ((port, factory, backlog, interface),) = self.reactor.tcpServers
        self.assertEqual((8181, 77, "127.0.0.1"), (port, backlog, interface))
        return ServerEnd(factory, self.reactor)

    def listener(self, *, proxy_protocol: bool = False, tls: TLS | None = None) -> Listener:
        return Listener("8181", "tcp:8181:backlog=77:interface=127.0.0.1", proxy_protocol, tls)

    def test_plain(self) -> None:
        """Without TLS the bytes go straight to the protocol."""
        server = self.connect(self.listener())
        self.assertEqual((ANSWER, QUESTION), (server.exchange(QUESTION), server.answerer.received))

    def test_tls(self) -> None:
        """With TLS the connections are the creator's."""
        server = self.connect(self.listener(tls=self.tls))
        self.assertEqual(WORKS, Meeting(server, self.client).outcome)

    def test_proxy(self) -> None:
        """A PROXY header gives the address of the peer."""
        server = self.connect(self.listener(proxy_protocol=True))
        self.assertEqual(ANSWER, server.exchange(PROXY_HEADER + QUESTION))
        self.assertEqual(QUESTION, server.answerer.received)
        self.assert_proxied(server)

    def test_proxy_outside_tls(self) -> None:
        """The PROXY header comes before the first byte of TLS, and its address reaches the protocol inside."""
        server = self.connect(self.listener(proxy_protocol=True, tls=self.tls))
        self.assertEqual(b"", server.exchange(PROXY_HEADER))
        self.assertEqual(WORKS, Meeting(server, self.client).outcome)
        self.assert_proxied(server)

    def test_missing_proxy_header(self) -> None:
        """A peer that sends no PROXY header where one is due gets nothing."""
        server = self.connect(self.listener(proxy_protocol=True, tls=self.tls))
        self.assertEqual((0, b"", b""), Meeting(server, self.client).outcome)

    def assert_proxied(self, server: ServerEnd) -> None:
        peer = server.answerer.transport.getPeer()
        self.assertEqual(("192.0.2.7", 4321), (peer.host, peer.port))

    def test_kinds_of_sockets(self) -> None:
        """What is inside is whatever Twisted makes of the string."""
        for inner, kind in (("tcp6:8181", TCP6ServerEndpoint), ("unix:/run/x.sock", UNIXSocketEndpoint)):
            self.assertIsInstance(build_endpoint(self.reactor, Listener(inner, inner), None), kind)

    def test_creator_and_tls_go_together(self) -> None:
        """A TLS listener is never opened in plain text by mistake."""
        creator = ServerConnectionCreator(self.tls)
        self.assertRaises(ValueError, build_endpoint, self.reactor, self.listener(tls=self.tls), None)
        self.assertRaises(ValueError, build_endpoint, self.reactor, self.listener(), creator)

    def test_impossible_strings(self) -> None:
        """A string that gives no endpoint is a ConfigError that quotes what the user wrote."""
        for inner, problem in (
            ("tcp:http", "is no endpoint to listen on: invalid literal"),
            ("nonsense:1", "is no endpoint to listen on: "),
            ("systemd:domain=INET:index=7", "names a socket that systemd did not pass"),
            ("systemd:domain=INET:name=web", "names a socket that systemd did not pass"),
            ("systemd:domain=INET", "is no endpoint to listen on: "),
        ):
            with self.assertRaisesRegex(ConfigError, f"'what they wrote' {re.escape(problem)}"):
                build_endpoint(self.reactor, Listener("what they wrote", inner), None)
