"""
Tests for L{webhookrx.transport.endpoints}.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile

from twisted.internet.endpoints import TCP6ServerEndpoint, UNIXServerEndpoint
from twisted.internet.interfaces import IStreamServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.system.certificates import Authority, server_settings, write_ca_file
from tests.transport.in_memory import ANSWER, QUESTION, WORKS, Answerer, Meeting, ServerEnd, client_context
from webhookrx.errors import ConfigError
from webhookrx.settings import TLS, Listener
from webhookrx.transport.endpoints import UNIXSocketEndpoint, build_endpoint, remove_abandoned
from webhookrx.transport.server_context import ServerConnectionCreator

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
            ("tcp:http", "is not an endpoint to listen on: invalid literal"),
            ("nonsense:1", "is not an endpoint to listen on: "),
            ("systemd:domain=INET:index=7", "names a socket that systemd did not pass"),
            ("systemd:domain=INET:name=web", "names a socket that systemd did not pass"),
            ("systemd:domain=INET", "is not an endpoint to listen on: "),
        ):
            with self.assertRaisesRegex(ConfigError, f"'what they wrote' {re.escape(problem)}"):
                build_endpoint(self.reactor, Listener("what they wrote", inner), None)


class UNIXSocketTests(SynchronousTestCase):
    """Sockets and what looks like them."""

    def setUp(self) -> None:
        # Not mktemp(): the path of a socket is short.
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "s")

    def bind(self) -> socket.socket:
        """Bind a socket to the path."""
        bound = socket.socket(socket.AF_UNIX)
        self.addCleanup(bound.close)
        bound.bind(self.path)
        return bound

    def test_abandoned(self) -> None:
        """A socket whose process has gone is removed."""
        self.bind().close()
        remove_abandoned(self.path)
        self.assertFalse(os.path.exists(self.path))

    def test_in_use(self) -> None:
        """A socket in use stays, also while its process accepts nothing."""
        self.bind().listen(0)
        for _ in range(3):
            remove_abandoned(self.path)
        self.assertTrue(os.path.exists(self.path))

    def test_others(self) -> None:
        """What is no socket stays, and where nothing is nothing happens."""
        remove_abandoned(self.path)
        with open(self.path, "w"):
            pass
        remove_abandoned(self.path)
        self.assertTrue(os.path.isfile(self.path))

    def test_endpoint(self) -> None:
        """A named socket is cleared before it is bound; an abstract one has nothing to clear."""
        self.bind().close()
        reactor = MemoryReactorClock()
        endpoint = build_endpoint(reactor, Listener("unix:s", f"unix:{self.path}:mode=660:lockfile=0"), None)
        verifyObject(IStreamServerEndpoint, endpoint)
        self.assertIsInstance(endpoint, UNIXSocketEndpoint)
        self.successResultOf(endpoint.listen(Factory.forProtocol(Protocol)))
        self.assertFalse(os.path.exists(self.path))
        self.assertEqual(self.path, reactor.unixServers[0][0])
        abstract = build_endpoint(reactor, Listener("unix:@s", "unix:@s:lockfile=0"), None)
        self.assertIsInstance(abstract, UNIXServerEndpoint)
