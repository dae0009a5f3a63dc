"""
Tests for L{webhookrx.config.admin_endpoint} and C{--drain-timeout}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK, errors_of, start
from webhookrx.settings import Listener


class AdminTests(SynchronousTestCase):
    """
    Tests for L{webhookrx.config.admin_endpoint.admin_listener}.
    """

    def admin(self, text: str) -> Listener:
        """Return where the option puts the endpoint."""
        listener = start(port=LOOPBACK, admin=text).settings.admin
        assert listener is not None
        return listener

    def test_off(self) -> None:
        """Nobody gets it who did not ask for it."""
        self.assertIsNone(start(port=LOOPBACK).settings.admin)

    def test_loopback(self) -> None:
        """Where no address is said it is that of this machine alone."""
        for text in ("9090", "tcp:9090"):
            self.assertEqual(r"tcp:9090:interface=127.0.0.1:backlog=4096", self.admin(text).inner)
            self.assertEqual((), start(port=LOOPBACK, admin=text).settings.warnings)

    def test_elsewhere(self) -> None:
        """Another address is taken, with a warning that everybody may read there."""
        settings = start(port=LOOPBACK, admin="tcp:9090:interface=192.0.2.1").settings
        self.assertIn("nobody is asked for a token", settings.warnings[0])
        self.assertIn("unix:", self.admin("unix:admin.sock").inner)

    def test_any_port(self) -> None:
        """Port 0 is any free one, so it is never taken by the senders' endpoint."""
        self.assertIn("tcp:0:", self.admin(LOOPBACK).inner)

    def test_errors(self) -> None:
        """TLS, the PROXY protocol, a taken address, and what is no endpoint are errors."""
        cases = {
            "ssl:9090:privateKey=k": "plain HTTP",
            "haproxy:tcp:9090": "plain HTTP",
            "8181": "takes the same address",
            "nine": "nine",
            "": "",
        }
        for text, problem in cases.items():
            (error,) = errors_of(port="8181", admin=text)
            self.assertEqual("--admin", error.option)
            self.assertIn(problem, error.problem, text)


class DrainTimeoutTests(SynchronousTestCase):
    """
    Tests for C{--drain-timeout}.
    """

    def test_values(self) -> None:
        """It takes a time, and is 30 seconds without one."""
        self.assertEqual(30.0, start(port=LOOPBACK).settings.drain_timeout)
        self.assertEqual(90.0, start(port=LOOPBACK, drain_timeout="90s").settings.drain_timeout)

    def test_errors(self) -> None:
        """What is no time, or none to do anything in, is an error."""
        for text in ("soon", "0", "-1s"):
            (error,) = errors_of(port=LOOPBACK, drain_timeout=text)
            self.assertEqual("--drain-timeout", error.option)
            self.assertIn(repr(text).strip("'"), error.problem)
