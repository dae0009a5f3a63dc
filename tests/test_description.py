"""
Tests for L{webhookrx.description}.
"""

from __future__ import annotations

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.interfaces import IAddress
from twisted.trial.unittest import SynchronousTestCase

from webhookrx import description
from webhookrx.config.settings import TLS, Limits, Listener, Observer, Settings, Source
from webhookrx.description import describe, too_few_files

FIRST = Listener("8181", "tcp:8181")
SECOND = Listener("unix:/run/x", "unix:/run/x", proxy_protocol=True)


def make_settings(*sources: Source) -> Settings:
    """Return settings of those sources."""
    return Settings(sources, (Observer("stdout", "stdout"),))


class DescribeTests(SynchronousTestCase):
    """The lines at the start."""

    def test_description(self) -> None:
        """They say where it listens, with which patterns, policy and observers, and no secret."""
        paths = tuple(f"/{number}" for number in range(7))
        one = Source("one", paths=paths, auth_tokens=(b"CANARY",), listeners=(FIRST,))
        two = Source("two", "webhook-json", listeners=(FIRST, SECOND))
        self.assertEqual(
            "Listening on 8181 (plain HTTP) for webhook 'one' at /0, /1, /2, /3, /4 and 2 more (token required); "
            "webhook-json 'two' at /.* (no token); observers: stdout; ack: durable\n"
            "Listening on unix:/run/x (plain HTTP, behind a PROXY header) for webhook-json 'two' at /.* "
            "(no token); observers: stdout; ack: durable",
            "\n".join(describe(make_settings(one, two), {})),
        )

    def test_tls(self) -> None:
        """With TLS they name the certificate and the policy."""
        for tls, policy in (
            (TLS("/key", "/cert"), "not asked for"),
            (TLS("/key", "/cert", peer_verify=True, system_store=True), "required and verified"),
        ):
            (line,) = describe(make_settings(Source(listeners=(Listener("443", "tcp:443", tls=tls),))), {})
            self.assertIn(f"TLS with /cert, client certificate {policy}", line)

    def test_addresses(self) -> None:
        """Where it listens is said as people write it."""
        addresses: tuple[tuple[IAddress, str], ...] = (
            (IPv4Address("TCP", "127.0.0.1", 8181), "127.0.0.1:8181 "),
            (IPv6Address("TCP", "::", 8181), "[::]:8181 "),
            (UNIXAddress("/run/x"), "unix:/run/x "),
            (UNIXAddress(None), "8181 "),
        )
        for address, shown in addresses:
            (line,) = describe(make_settings(Source(listeners=(FIRST,))), {FIRST.inner: address})
            self.assertIn(f"Listening on {shown}", line)


class OpenFilesTests(SynchronousTestCase):
    """The limit on open files."""

    def test_few(self) -> None:
        """Fewer files than connections are said."""
        settings = Settings((), (), limits=Limits(connections=100))
        for may_open, warnings in ((100, 1), (101, 0), (description.resource.RLIM_INFINITY, 0)):
            self.patch(description.resource, "getrlimit", lambda _, may_open=may_open: (may_open, may_open))
            self.assertEqual(warnings, len(too_few_files(settings)))

    def test_secret_limit(self) -> None:
        """Where the limit may not be asked for, as in a sandbox, nothing is said of it."""

        def forbidden(limit: int) -> tuple[int, int]:
            raise PermissionError

        self.patch(description.resource, "getrlimit", forbidden)
        self.assertEqual([], too_few_files(make_settings(Source(listeners=(FIRST,)))))
