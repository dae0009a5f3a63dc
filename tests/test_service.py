"""
Tests for L{webhookrx.service}: what can be told before anything is opened. The rest is in C{tests/system}.
"""

from __future__ import annotations

from twisted.application.service import IService
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.config.settings import Listener, Observer, Settings, Source
from webhookrx.errors import ConfigError
from webhookrx.operations.facts import Phase
from webhookrx.service import ReceiverService, build


class BuildTests(SynchronousTestCase):
    """From settings to a service."""

    def build(self, *sources: Source) -> ReceiverService:
        """Build it of those sources."""
        self.reactor = MemoryReactorClock()
        return build(Settings(sources, (Observer("stdout", "stdout"),)), self.reactor)

    def test_nothing_opened(self) -> None:
        """To build is not to open, and not to be ready."""
        service = self.build(Source(listeners=(Listener("8181", "tcp:8181"),)))
        self.assertTrue(verifyObject(IService, service))
        self.assertEqual(
            ([], Phase.STARTING, False), (self.reactor.tcpServers, service.receiver.phase, bool(service.running))
        )

    def test_listeners(self) -> None:
        """There is one for each endpoint, whoever shares it, with a line that says where it will listen."""
        shared, other = Listener("8181", "tcp:8181"), Listener("8182", "tcp:8182")
        service = self.build(Source("a", listeners=(shared, other)), Source("b", listeners=(shared,)))
        self.assertEqual(2, len(service.listeners))
        first, second = service.receiver.describe()
        self.assertIn("Listening on 8181 (plain HTTP) for webhook 'a' at /.* (no token); webhook 'b'", first)
        self.assertIn("Listening on 8182", second)

    def test_impossible(self) -> None:
        """A socket that systemd did not pass is found when it is built."""
        listener = Listener("systemd", "systemd:domain=INET:index=7")
        self.assertRaises(ConfigError, self.build, Source(listeners=(listener,)))

    def test_stop_before_the_start(self) -> None:
        """What was not started has nothing to stop."""
        service = self.build(Source(listeners=(Listener("8181", "tcp:8181"),)))
        self.successResultOf(service.stopService())
