"""
Tests for L{webhookrx.service.description}.
"""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.interfaces import IAddress
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.snapshots import make_snapshot
from webhookrx.errors import BAD_TOKEN
from webhookrx.intake.tokens import NamedToken
from webhookrx.operations.counters import Counters
from webhookrx.operations.snapshot import Level
from webhookrx.router.gate import GateReason
from webhookrx.router.steps.step import Preprocessing
from webhookrx.senders.definition import SenderDefinition, When
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.service.description import cannot_listen, describe, difference, renewals, rules_not_taken, summary
from webhookrx.settings import (
    TLS,
    AgentSettings,
    ConnectorSettings,
    GuardSettings,
    Listener,
    Observer,
    RouterSettings,
    Settings,
    Source,
)
from webhookrx.transport.listener_service import CannotListen

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
            (TLS("/key", "/cert"), "not requested"),
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
            (line,) = describe(make_settings(Source(listeners=(FIRST,))), {FIRST.socket: address})
            self.assertIn(f"Listening on {shown}", line)

    def test_guards(self) -> None:
        """What a guard asks for is said in a few words, of connectors, too; no secret is."""
        sender = SenderDefinition("demo", "v", "p", When(body_keys=("a",)))
        secrets, tokens = (NamedSecret("one", b"CANARY"),), (NamedToken("edge", b"CANARY"),)
        connector = ConnectorSettings("hooks", 8181, {}, Preprocessing())
        for guard, words in (
            (GuardSettings(sender, secrets, verify="required"), "no token; requests of demo, verified"),
            (GuardSettings(sender, secrets, verify="note"), "no token; requests of demo, verified if they can be"),
            (GuardSettings(sender, tokens=tokens), "token required; requests of demo, not verified"),
            (
                GuardSettings(allow={"office": ("::/0",)}, allow_clients=("a",)),
                "no token; some networks only; some clients only",
            ),
        ):
            source = Source("one", paths=("/a",), listeners=(FIRST,), guard=guard)
            (line,) = describe(make_settings(source), {})
            self.assertIn(f"webhook 'one' at /a ({words}); observers", line)
            self.assertNotIn("CANARY", line)
            (line,) = describe(make_settings(dataclasses.replace(source, connector=connector)), {})
            self.assertIn(f"connector 'one' at /a ({words}); observers", line)

    def test_connector(self) -> None:
        """A connector is called one; that no token is asked for goes without saying."""
        connector = ConnectorSettings("hooks", 8181, {}, Preprocessing())
        (line,) = describe(
            make_settings(Source("edge-1-hooks-in", "connector", ("/a",), listeners=(FIRST,), connector=connector)), {}
        )
        self.assertIn("for connector 'edge-1-hooks-in' at /a; observers", line)


class DifferenceTests(SynchronousTestCase):
    """What a reload says."""

    def test_table(self) -> None:
        """It says how many sources there are, and what has become of how many."""
        a, b, c = (Source(name) for name in "abc")
        other_b = Source("b", paths=("/b",))
        for before, after, text in (
            ((), (), "0 sources"),
            ((a,), (a,), "1 sources (1 unchanged)"),
            ((), (a,), "1 sources (1 added)"),
            ((a,), (), "0 sources (1 removed)"),
            ((a, b), (b, a), "2 sources (2 unchanged)"),
            ((a,), (Source("a"),), "1 sources (1 unchanged)"),
            ((a, b), (other_b, c), "2 sources (1 changed, 1 added, 1 removed)"),
            ((a, b), (a, other_b, c), "3 sources (1 unchanged, 1 changed, 1 added)"),
        ):
            self.assertEqual(text, difference(make_settings(*before), make_settings(*after)))


class CannotListenTests(SynchronousTestCase):
    """What is said of a port that can't be opened."""

    def test_rule(self) -> None:
        """The error names the rule of a connector, with a code if the port is in use; that of a source stays."""
        connector = ConnectorSettings("hooks", 8443, {}, Preprocessing())
        ours = Source("edge-hooks", "connector", listeners=(Listener("8443", "tcp:8443"),), connector=connector)
        settings = Settings((Source(listeners=(Listener("80", "tcp:80"),)), ours), ())
        taken = CannotListen("Address already in use", "8443")
        self.assertEqual(
            'Address already in use: can\'t listen on 8443, which the rule "hooks" wants. [port-in-use]',
            str(cannot_listen(taken, settings)),
        )
        refused = cannot_listen(CannotListen("Permission denied", "8443"), settings)
        self.assertNotIn("[", str(refused))
        of_source = CannotListen("Address already in use", "80")
        self.assertIs(of_source, cannot_listen(of_source, settings))


class SummaryTests(SynchronousTestCase):
    """One line on how the service does."""

    def test_counts(self) -> None:
        """It has messages, refusals and what waits; and why a router is blocked."""
        counters = Counters()
        counters.sources["github"].messages = 3
        counters.add("refused", BAD_TOKEN.word, "github")
        snapshot = make_snapshot(queue_messages=Level(2, 100))
        self.assertEqual("3 messages, 1 refused, 2 waiting", summary(counters, snapshot))
        settings = Settings((), (), router=RouterSettings("r", not_taken="at the start"))
        for given, failure, expected in (
            (settings, "", "The rules file is not in use: at the start"),
            (settings, "at a reload", "The rules file is not in use: at a reload"),
            (
                dataclasses.replace(settings, console=AgentSettings("https://c", "/d")),
                "",
                "The newest rules of the console are not in use: at the start",
            ),
            (Settings((), (), router=RouterSettings("r")), "", ""),
            (Settings((), ()), "at a reload", ""),
        ):
            self.assertEqual(expected, rules_not_taken(given, failure))
        not_taken = replace(snapshot, not_taken=rules_not_taken(settings))
        self.assertIn("2 waiting; the rules file is not in use: at the start", summary(counters, not_taken))
        for blocked, text in (
            (("f:1: error: a.",), "f:1: error: a."),
            (("f:1: error: a.", "f:2: error: b.", "f:3: error: c."), "f:1: error: a. And 2 more."),
        ):
            self.assertEqual(
                f"3 messages, 1 refused, 2 waiting; the router is blocked: {text}",
                summary(counters, replace(snapshot, blocked=tuple(map(GateReason, blocked)))),
            )


class RenewalTests(SynchronousTestCase):
    """Certificates at a reload."""

    def test_renewals(self) -> None:
        """Those that end at another time than before are named, but not too many; new ones and others are not."""
        before = {"/a.pem": 1_800_000_000.0, "/b.pem": 1_800_000_000.0, "/c.pem": 1.0}
        after = {"/a.pem": 1_800_003_600.0, "/b.pem": 1_800_000_000.0, "/d.pem": 1.0}
        self.assertEqual("; renewed certificates: /a.pem until 2027-01-15 09:00 UTC", renewals(before, after))
        self.assertEqual("", renewals(before, before))
        many = [{f"/{number}": float(end) for number in range(7)} for end in (0, 60)]
        text = renewals(*many)
        self.assertEqual((5, True), (text.count("until"), text.endswith("/4 until 1970-01-01 00:01 UTC and 2 more")))
