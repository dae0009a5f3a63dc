"""
Tests for L{webhookrx.transport.unix_socket}, on sockets in a directory of their own.
"""

from __future__ import annotations

import os
import socket
import tempfile

from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.internet.interfaces import IStreamServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.settings import Listener
from webhookrx.transport.endpoints import build_endpoint
from webhookrx.transport.unix_socket import UNIXSocketEndpoint, remove_abandoned


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
        """A socket on which somebody listens stays, also when nobody accepts at the moment."""
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
