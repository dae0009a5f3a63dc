"""
Tests for L{webhookrx.service}: what can be told before anything is opened. The rest is in C{tests/system}.
"""

from __future__ import annotations

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx import service
from webhookrx.config.settings import Listener, Observer, Settings, Source
from webhookrx.service import build, by_listener, rules_of

FIRST = Listener("8181", "tcp:8181")
SECOND = Listener("unix:/run/x", "unix:/run/x", proxy_protocol=True)


def make_settings(*sources: Source) -> Settings:
    """Return settings of those sources."""
    return Settings(sources, (Observer("stdout", "stdout"),))


class BuildTests(SynchronousTestCase):
    """From settings to services."""

    def test_shared_endpoints(self) -> None:
        """Sources that name the same endpoint share it, in the order of the settings."""
        one = Source("one", listeners=(FIRST,))
        two = Source("two", listeners=(SECOND, FIRST))
        self.assertEqual([(FIRST, [one, two]), (SECOND, [two])], by_listener([one, two]))

    def test_rules(self) -> None:
        """A source's options become its rules."""
        source = Source(
            "one",
            "webhook-json",
            prefix="p.",
            auth_tokens=(b"t",),
            include_request_headers=True,
            proxy_header="forwarded",
            on_parse_error="reject",
        )
        rules = rules_of(source, make_settings(source))
        self.assertEqual(
            ("one", True, "p.", True, b"forwarded", False, 10 * 2**20),
            (
                rules.name,
                rules.parse_json,
                rules.prefix,
                rules.include_request_headers,
                rules.proxy_header,
                rules.keep_unparsed,
                rules.body_limit,
            ),
        )
        self.assertTrue(rules.tokens.accepts([b"Bearer t"]))
        self.assertFalse(rules.tokens.accepts([]))

    def test_description(self) -> None:
        """The lines at the start say where it listens, with which patterns, policy and observers, and no secret."""
        paths = tuple(f"/{number}" for number in range(7))
        one = Source("one", paths=paths, auth_tokens=(b"CANARY",), listeners=(FIRST,))
        two = Source("two", "webhook-json", listeners=(FIRST, SECOND))
        receiver = build(make_settings(one, two), MemoryReactorClock())
        self.assertEqual(
            "Listening on 8181 (plain HTTP) for webhook 'one' at /0, /1, /2, /3, /4 and 2 more (token required); "
            "webhook-json 'two' at /.* (no token); observers: stdout; ack: durable\n"
            "Listening on unix:/run/x (plain HTTP, behind a PROXY header) for webhook-json 'two' at /.* "
            "(no token); observers: stdout; ack: durable",
            "\n".join(receiver.describe()),
        )

    def test_addresses(self) -> None:
        """Where it listens is said as people write it."""
        receiver = build(make_settings(Source(listeners=(FIRST,))), MemoryReactorClock())
        for address, shown in (
            (IPv4Address("TCP", "127.0.0.1", 8181), "127.0.0.1:8181 "),
            (IPv6Address("TCP", "::", 8181), "[::]:8181 "),
            (UNIXAddress("/run/x"), "unix:/run/x "),
            (UNIXAddress(None), "8181 "),
        ):
            receiver.listeners[0].address = address
            self.assertIn(f"Listening on {shown}", receiver.describe()[0])

    def test_secret_limit(self) -> None:
        """Where the limit on open files may not be asked for, as in a sandbox, nothing is said of it."""

        def forbidden(limit: int) -> tuple[int, int]:
            raise PermissionError

        self.patch(service.resource, "getrlimit", forbidden)
        self.assertEqual([], service._too_few_files(make_settings(Source(listeners=(FIRST,)))))

    def test_nothing_opened(self) -> None:
        """To build is not to open."""
        reactor = MemoryReactorClock()
        build(make_settings(Source(listeners=(FIRST,))), reactor)
        self.assertEqual([], reactor.tcpServers)
