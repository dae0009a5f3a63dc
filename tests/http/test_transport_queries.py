"""
Tests for L{webhookrx.http.transport_queries}: whom the client certificate of a connection names, with real handshakes
of both kinds of TLS.
"""

from __future__ import annotations

import os
import ssl
from types import SimpleNamespace
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from OpenSSL import SSL
from OpenSSL.crypto import X509
from twisted.internet.address import IPv4Address
from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Sender, Wire, post
from tests.system.certificates import CLIENT, Authority, Identity, server_settings, write_ca_file
from tests.transport.in_memory import TLS12, TLS13, client_context, meet
from tests.transport.stepped import TLSClient, World
from webhookrx.http.states import HANDSHAKE
from webhookrx.http.transport_queries import client_of
from webhookrx.intake import client_certificates
from webhookrx.intake.provenance import ClientIdentity
from webhookrx.transport.native_tls import TLSServer
from webhookrx.transport.server_context import ServerConnectionCreator

NAMES = (x509.DNSName("relay.shippers.example"), x509.RFC822Name("ops@shippers.example"))


class ClientOfTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        self.root = Authority("Our CA")
        self.ca_file = write_ca_file(self.directory, "ca", self.root)
        self.server = self.root.issue("server")
        self.client = self.root.issue("relay-7", (CLIENT,), names=NAMES)

    def creator(self, **policy: object) -> ServerConnectionCreator:
        return ServerConnectionCreator(server_settings(self.directory, self.server, **policy))

    def verifying(self) -> ServerConnectionCreator:
        return self.creator(peer_verify=True, ca_file=self.ca_file)

    def context(self, identity: Identity | None, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        files = None if identity is None else identity.write(self.directory, "client")
        return client_context(self.ca_file, version, files)

    def native(self, creator: ServerConnectionCreator, context: ssl.SSLContext) -> Any:
        """Return a transport of ours after its handshake."""
        world = World()
        self.addCleanup(world.close)
        ours, theirs = world.pair()
        transport, recorder = world.serve(TLSServer, ours, creator.connection_on(ours))
        client = TLSClient(context, theirs)
        for _ in range(3):
            client.turn()
            world.reactor.settle()
        self.assertEqual(["handshake"], recorder.events)
        return transport

    def both(self, creator: ServerConnectionCreator, context: ssl.SSLContext) -> list[ClientIdentity | None]:
        """Return whom both kinds of TLS find at the other end."""
        return [
            client_of(meet(creator, context).server.answerer.transport),
            client_of(self.native(creator, context)),
        ]

    def test_verified(self) -> None:
        """A verified certificate names the client, with either version of TLS."""
        expected = ClientIdentity(
            "relay-7",
            ("relay.shippers.example", "ops@shippers.example"),
            "CN=Our CA",
            self.client.certificate.fingerprint(SHA256()).hex(),
        )
        for version in (TLS12, TLS13):
            self.assertEqual([expected] * 2, self.both(self.verifying(), self.context(self.client, version)))

    def test_not_asked(self) -> None:
        """Where no certificate is asked for, none is known, whatever the client has."""
        self.assertEqual([None, None], self.both(self.creator(), self.context(self.client)))

    def test_not_verified(self) -> None:
        """A certificate that the context has not verified names nobody."""
        transport = self.native(self.verifying(), self.context(self.client))
        self.assertIsNotNone(transport.getPeerCertificate())
        transport.getHandle().set_verify(SSL.VERIFY_NONE)
        self.assertIsNone(client_of(transport))

    def test_plain(self) -> None:
        """A connection without TLS has no client."""
        world = World()
        self.addCleanup(world.close)
        self.assertIsNone(client_of(meet(self.creator(), self.context(None)).server.protocol.transport))

    def test_ten_thousand_names(self) -> None:
        """A certificate of thousands of names ends no connection, and names nobody."""
        many = [x509.DNSName(f"a{number}.example") for number in range(3000)]
        large = self.root.issue("relay-7", (CLIENT,), names=many)

        found = self.both(self.verifying(), self.context(large))

        self.assertGreater(len(large.certificate.tbs_certificate_bytes), client_certificates.MOST_BYTES)
        nobody = ClientIdentity("", (), "", large.certificate.fingerprint(SHA256()).hex())
        self.assertEqual([nobody, nobody], found)


class ConnectionTests(SynchronousTestCase):
    """What messages have of the client of a connection."""

    def shaken(self, wire: Wire, identity: Identity) -> Sender:
        """Open a connection with a verified certificate."""
        sender = wire.connect(peer="192.0.2.7", secure=True)
        transport: Any = sender.transport
        transport.getPeerCertificate = lambda: X509.from_cryptography(identity.certificate)
        transport.getHandle = lambda: SimpleNamespace(get_verify_mode=lambda: SSL.VERIFY_PEER)
        sender.protocol._lifetime = HANDSHAKE
        sender.protocol.handshakeCompleted()
        return sender

    def test_messages(self) -> None:
        """Each message of the connection has the client, and the certificate is read once."""
        identity = Authority("Our CA").issue("relay-7", names=NAMES)
        reads: list[bytes] = []
        read = client_certificates.identity_of
        self.patch(client_certificates, "identity_of", lambda der: reads.append(der) or read(der))
        for options in ({}, {"knows_peers_at_once": False}):
            reads.clear()
            wire = Wire(**options)  # type: ignore[arg-type]
            sender = self.shaken(wire, identity)
            sender.transport.peer = IPv4Address("TCP", "192.0.2.7" if not options else "192.0.2.9", 5)
            sender.send(post(b"a") + post(b"b"))
            wire.settle()

            self.assertEqual(1, len(reads))
            self.assertEqual([200, 200], sender.statuses())
            for values in wire.messages:
                self.assertEqual("192.0.2.9" if options else "192.0.2.7", values["SOURCEIP"])
                self.assertEqual("relay-7", values["webhook.client.cn"])
                self.assertEqual(["relay.shippers.example", "ops@shippers.example"], values["webhook.client.san"])
                self.assertEqual("CN=Our CA", values["webhook.client.issuer"])
                self.assertEqual(identity.certificate.fingerprint(SHA256()).hex(), values["webhook.client.fingerprint"])

    def test_others(self) -> None:
        """A connection without a certificate has no such values."""
        wire = Wire()
        sender = wire.connect(secure=True)
        sender.send(post(b"a"))
        wire.settle()
        self.assertFalse([name for name in wire.messages[0] if name.startswith("webhook.client")])
