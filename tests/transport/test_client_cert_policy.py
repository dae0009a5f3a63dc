"""
Tests for L{webhookrx.transport.client_cert_policy}: the table of the specification's section 5.2, cell by cell.
"""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import (
    A_YEAR_BEFORE,
    A_YEAR_LATER,
    CLIENT,
    SERVER,
    Authority,
    hashed_name,
    self_signed,
    server_settings,
    write,
    write_ca_file,
    write_hashed_directory,
)
from tests.transport.in_memory import REFUSED, TLS12, TLS13, WORKS, Meeting, client_context, meet
from webhookrx.config.files import Snapshot
from webhookrx.config.pem import check_tls_files, contents_of
from webhookrx.diagnostics import ERROR
from webhookrx.errors import ConfigError
from webhookrx.settings import Listener, Source
from webhookrx.transport.handshake import describe_failure
from webhookrx.transport.server_context import ServerConnectionCreator

VERSIONS = (TLS12, TLS13)

#: Each kind of client, and why a server that verifies refuses it; None where it does not.
CLIENTS = {
    "none": "peer did not return a certificate",
    "valid": None,
    "no EKU": None,
    "intermediate sent": None,
    "intermediate not sent": "certificate verify failed: unknown CA",
    "self-signed": "certificate verify failed: self-signed certificate",
    "other CA": "certificate verify failed: unknown CA",
    "expired": "certificate verify failed: certificate has expired",
    "not yet valid": "certificate verify failed: certificate is not yet valid",
    "serverAuth only": "certificate verify failed: certificate is not for clients",
}


class _World:
    """
    One authority that servers trust, one that they don't, and clients of every kind.
    """

    def __init__(self, directory: str) -> None:
        os.makedirs(directory)
        self.directory = directory
        self.trusted = Authority("Trusted Root")
        self.other = Authority("Other Root")
        self.server = self.trusted.issue("server", (SERVER,))
        self.ca_file = write_ca_file(directory, "trusted", self.trusted)
        self.other_ca_file = write_ca_file(directory, "other", self.other)
        self.ca_dir = write_hashed_directory(os.path.join(directory, "hashed"), self.trusted)
        self.other_ca_dir = write_hashed_directory(os.path.join(directory, "other-hashed"), self.other)
        self.clients = self._clients(Authority("Intermediate", self.trusted))

    def _clients(self, intermediate: Authority) -> dict[str, tuple[str, str] | None]:
        below = intermediate.issue("below", (CLIENT,))
        identities = {
            "valid": self.trusted.issue("valid", (CLIENT,)),
            "no EKU": self.trusted.issue("no EKU", ()),
            "intermediate sent": below,
            "self-signed": self_signed("self-signed"),
            "other CA": self.other.issue("other CA", (CLIENT,)),
            "expired": self.trusted.issue("expired", (CLIENT,), not_after=A_YEAR_LATER),
            "not yet valid": self.trusted.issue("not yet valid", (CLIENT,), not_before=A_YEAR_BEFORE),
            "serverAuth only": self.trusted.issue("serverAuth only", (SERVER,)),
        }
        clients: dict[str, tuple[str, str] | None] = {"none": None}
        for kind, identity in identities.items():
            clients[kind] = identity.write(self.directory, kind)
        clients["intermediate not sent"] = below.write(self.directory, "alone", with_intermediates=False)
        return clients

    def creator(self, **policy: object) -> ServerConnectionCreator:
        return ServerConnectionCreator(server_settings(self.directory, self.server, **policy))

    def meet(
        self, creator: ServerConnectionCreator, kind: str = "valid", version: ssl.TLSVersion | None = None
    ) -> Meeting:
        return meet(creator, client_context(self.ca_file, version, self.clients[kind]))


class _PolicyCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = _World(self.mktemp())

    def assert_everyone_works(self, creator: ServerConnectionCreator) -> None:
        for kind in CLIENTS:
            for version in VERSIONS:
                self.assertEqual(WORKS, self.world.meet(creator, kind, version).outcome, (kind, version))

    def assert_required_trusted(self, creator: ServerConnectionCreator) -> None:
        for kind, refusal in CLIENTS.items():
            for version in VERSIONS:
                meeting = self.world.meet(creator, kind, version)
                if refusal is None:
                    self.assertEqual(WORKS, meeting.outcome, (kind, version))
                else:
                    self.assert_refused(refusal, meeting, (kind, version))

    def assert_as_checked(self, **policy: object) -> None:
        """Only CAs that were in the files when they were checked are trusted, whatever is in them by now."""
        tls = server_settings(self.world.directory, self.world.server, peer_verify=True, **policy)
        files = Snapshot()
        self.assertEqual(
            [], [each for each in check_tls_files(tls, datetime.now(UTC), files) if each.severity == ERROR]
        )
        known = contents_of([Source(listeners=(Listener("1", "tcp:1", tls=tls),))], files)
        for path in known:
            os.remove(path)
        self.assertRaises(ConfigError, ServerConnectionCreator, tls)
        if tls.ca_dir is not None:
            write_hashed_directory(tls.ca_dir, self.world.other)
        self.assert_required_trusted(ServerConnectionCreator(tls, known))

    def assert_refused(self, refusal: str, meeting: Meeting, case: object = None) -> None:
        """Nothing came through on either side, the client got an alert, and the log has a reason."""
        self.assertEqual(REFUSED, meeting.outcome, case)
        self.assertIsNotNone(meeting.client.error, case)
        assert meeting.server.answerer.lost is not None, case
        self.assertEqual(refusal, describe_failure(meeting.server.answerer.lost), case)


class OptionalUntrustedTests(_PolicyCase):
    """
    C{peer_verify} off.
    """

    def test_every_client_gets_tls(self) -> None:
        """Whatever certificate a client has, or none, it gets TLS."""
        self.assert_everyone_works(self.world.creator())

    def test_trust_options_change_nothing(self) -> None:
        """A CA file and a CA directory without verification leave everyone in."""
        self.assert_everyone_works(self.world.creator(ca_file=self.world.ca_file, ca_dir=self.world.ca_dir))

    def test_session_is_resumed_by_ticket(self) -> None:
        """Nothing was verified, so a client that comes back may skip the full handshake."""
        creator = self.world.creator()
        for version in VERSIONS:
            context = client_context(self.world.ca_file, version)
            first = meet(creator, context)

            second = meet(creator, context, first.client.tls.session)

            self.assertEqual((WORKS, True), (second.outcome, second.client.tls.session_reused), version)


class RequiredTrustedTests(_PolicyCase):
    """
    C{peer_verify} on.
    """

    def test_ca_file(self) -> None:
        """With a CA file each kind of certificate has its outcome."""
        self.assert_required_trusted(self.world.creator(peer_verify=True, ca_file=self.world.ca_file))

    def test_ca_directory(self) -> None:
        """With a hashed CA directory each kind of certificate has its outcome."""
        self.assert_required_trusted(self.world.creator(peer_verify=True, ca_dir=self.world.ca_dir))

    def test_as_checked(self) -> None:
        """Only CAs that were in files and directory when they were checked are trusted, whatever is there by now."""
        copy = write_ca_file(self.world.directory, "copy", self.world.trusted)
        self.assert_as_checked(ca_file=copy)
        self.assert_as_checked(ca_dir=self.world.ca_dir)

    def test_ca_file_and_directory(self) -> None:
        """With the same CA in both each kind of certificate has its outcome."""
        self.assert_required_trusted(
            self.world.creator(peer_verify=True, ca_file=self.world.ca_file, ca_dir=self.world.ca_dir)
        )

    def test_system_store(self) -> None:
        """With the system's store each kind of certificate has its outcome."""
        self._with_system_store(self.world.ca_file)
        self.assert_required_trusted(self.world.creator(peer_verify=True, system_store=True))

    def test_trust_adds_up(self) -> None:
        """A client passes when any one of the trust options knows its CA."""
        self._with_system_store(self.world.other_ca_file)
        world = self.world
        combinations: list[dict[str, object]] = [
            {"ca_file": world.other_ca_file, "ca_dir": world.ca_dir},
            {"ca_file": world.ca_file, "ca_dir": world.other_ca_dir},
            {"ca_file": world.ca_file, "system_store": True},
            {"ca_dir": world.ca_dir, "system_store": True},
            {"ca_file": world.ca_file, "ca_dir": world.ca_dir, "system_store": True},
        ]
        for trust in combinations:
            creator = world.creator(peer_verify=True, **trust)
            for kind in ("valid", "other CA"):
                self.assertEqual(WORKS, world.meet(creator, kind).outcome, (trust, kind))

    def test_system_store_alone_does_not_trust_a_private_ca(self) -> None:
        """The system's store knows nothing of a CA that only a file would name."""
        self._with_system_store(self.world.other_ca_file)
        meeting = self.world.meet(self.world.creator(peer_verify=True, system_store=True))
        self.assert_refused("certificate verify failed: unknown CA", meeting)

    def test_intermediate_as_the_trusted_ca(self) -> None:
        """A CA file may name just the intermediate CA: what it issued passes, what its root issued does not."""
        intermediate = Authority("Issuing", self.world.trusted)
        ca_file = write_ca_file(self.world.directory, "issuing", intermediate)
        self.world.clients["below"] = intermediate.issue("below", (CLIENT,)).write(self.world.directory, "below")
        creator = self.world.creator(peer_verify=True, ca_file=ca_file)
        self.assertEqual(WORKS, self.world.meet(creator, "below").outcome)
        self.assert_refused("certificate verify failed: unknown CA", self.world.meet(creator, "valid"))

    def test_no_session_is_resumed(self) -> None:
        """A client that comes back is verified again: no ticket, no cached session, in either version."""
        creator = self.world.creator(peer_verify=True, ca_file=self.world.ca_file)
        for version in VERSIONS:
            context = client_context(self.world.ca_file, version, self.world.clients["valid"])
            first = meet(creator, context)

            second = meet(creator, context, first.client.tls.session)

            self.assertEqual((WORKS, False), (second.outcome, second.client.tls.session_reused), version)

    def test_session_of_an_unverified_endpoint(self) -> None:
        """A ticket of an endpoint without verification opens no endpoint with it."""
        lax = self.world.creator()
        strict = self.world.creator(peer_verify=True, ca_file=self.world.ca_file)
        for version in VERSIONS:
            context = client_context(self.world.ca_file, version)
            session = meet(lax, context).client.tls.session

            meeting = meet(strict, context, session)

            self.assert_refused("peer did not return a certificate", meeting, version)

    def test_removed_ca(self) -> None:
        """A CA that left the file and the directory is no longer trusted after a reload."""
        world = self.world
        ca_file = write_ca_file(world.directory, "both", world.trusted, world.other)
        ca_dir = write_hashed_directory(os.path.join(world.directory, "dir"), world.trusted, world.other)
        trusts = ({"ca_file": ca_file}, {"ca_dir": ca_dir})
        for trust in trusts:
            self.assertEqual(WORKS, world.meet(world.creator(peer_verify=True, **trust), "other CA").outcome)

        write_ca_file(world.directory, "both", world.trusted)
        os.remove(os.path.join(ca_dir, hashed_name(world.other)))
        for trust in trusts:
            creator = world.creator(peer_verify=True, **trust)

            self.assert_refused("certificate verify failed: unknown CA", world.meet(creator, "other CA"))
            self.assertEqual(WORKS, world.meet(creator, "valid").outcome)

    def test_names_of_the_ca_file_are_sent(self) -> None:
        """With only a CA file clients get the names of its CAs; with more, none, since the list would be incomplete."""
        for trust, names in (
            ({"ca_file": self.world.ca_file}, ["Trusted Root"]),
            ({"ca_file": self.world.ca_file, "ca_dir": self.world.other_ca_dir}, []),
        ):
            creator = self.world.creator(peer_verify=True, **trust)
            connection = creator.serverConnectionForTLS(None)  # type: ignore[arg-type]
            authorities = connection.get_client_ca_list(as_cryptography=True)
            self.assertEqual(names, [name.rdns[0].rfc4514_string().removeprefix("CN=") for name in authorities])

    def _with_system_store(self, path: str) -> None:
        """OpenSSL reads the environment of the process itself, so only a real change reaches it."""
        for name, value in (("SSL_CERT_FILE", path), ("SSL_CERT_DIR", "/nonexistent")):
            before = os.environ.get(name)
            os.environ[name] = value
            self.addCleanup(_restore, name, before)


class TrustErrorTests(_PolicyCase):
    """
    Trust that can't be loaded.
    """

    def test_errors(self) -> None:
        """Each mistake in a trust option is a ConfigError that names the file or directory."""
        directory = self.world.directory
        missing = os.path.join(directory, "missing")
        not_pem = write(os.path.join(directory, "text"), b"hello")
        empty = os.path.join(directory, "empty")
        os.mkdir(empty)
        unhashed = os.path.join(directory, "unhashed")
        os.mkdir(unhashed)
        write_ca_file(unhashed, "ca", self.world.trusted)
        for trust, problem in (
            ({}, "without a CA file, a CA directory or the system store"),
            ({"ca_file": missing}, missing),
            ({"ca_file": not_pem}, "holds no certificate in PEM format"),
            ({"ca_dir": missing}, missing),
            ({"ca_dir": not_pem}, not_pem),
            ({"ca_dir": empty}, "is empty"),
            ({"ca_dir": unhashed}, "has no hashed names"),
        ):
            error = self.assertRaises(ConfigError, self.world.creator, peer_verify=True, **trust)
            self.assertIn(problem, str(error))


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


class OptionalKnownTests(_PolicyCase):
    """
    C{asks_clients}, the policy of a console's port for routers.
    """

    def test_the_dates_alone_do_not_count(self) -> None:
        """No certificate and an expired one get TLS; another CA's, and one that is for servers, do not."""
        creator = self.world.creator(asks_clients=True, ca_file=self.world.ca_file)
        for kind, refusal in CLIENTS.items():
            for version in VERSIONS:
                meeting = self.world.meet(creator, kind, version)
                if kind in ("none", "expired", "not yet valid") or refusal is None:
                    self.assertEqual(WORKS, meeting.outcome, (kind, version))
                else:
                    self.assert_refused(refusal, meeting, (kind, version))

    def test_no_session_is_resumed(self) -> None:
        """A router that comes back shows its certificate again."""
        creator = self.world.creator(asks_clients=True, ca_file=self.world.ca_file)
        for version in VERSIONS:
            context = client_context(self.world.ca_file, version, self.world.clients["valid"])
            first = meet(creator, context)

            second = meet(creator, context, first.client.tls.session)

            self.assertEqual((WORKS, False), (second.outcome, second.client.tls.session_reused), version)
