"""
Tests for L{webhookrx.agent.link}, in memory; with a real console it is tried in C{tests/system}.
"""

from __future__ import annotations

from typing import Any

import trustme
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.agent.link import ConsoleLink, shown_chain

URL = "https://127.0.0.1:8443"


class LogTests(SynchronousTestCase):
    """What the log says of connections."""

    def check(self, asking: Any, reactor: Any) -> None:
        """Check that it says nothing of one that begins or ends."""
        Deferred.fromCoroutine(asking)
        ((host, port, factory, *_),) = reactor.tcpClients
        self.assertEqual(("127.0.0.1", 8443), (host, port))
        with capturedLogs() as logged:
            factory.doStart()
            factory.doStop()
        self.assertEqual([], logged)

    def test_requests(self) -> None:
        """A router asks its console again and again."""
        reactor = MemoryReactorClock()
        authority = trustme.CA().cert_pem.bytes().decode()
        self.check(ConsoleLink(reactor, URL, [authority]).ask(b"GET", b"/agent/v1/sync"), reactor)

    def test_chain(self) -> None:
        """Before it enrols, it looks at the certificates of its console."""
        reactor = MemoryReactorClock()
        self.check(shown_chain(reactor, URL), reactor)
