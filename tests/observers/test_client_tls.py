"""TLS of a client of ours against a server of the standard library, both in memory."""

from __future__ import annotations

import os
import ssl
from typing import NamedTuple

from OpenSSL import SSL
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface.verify import verifyObject

from tests.system.certificates import Authority, Identity, self_signed, write, write_ca_file
from tests.tls.in_memory import ClosingTransport
from webhookrx.errors import ConfigError
from webhookrx.observers.client_tls import ClientTLS, OneHostPolicy, make_creator, ssl_reason


class Greeter(Protocol):
    """Says one word, and remembers how the connection ended."""

    lost: Failure | None = None

    def connectionMade(self) -> None:
        """Say it."""
        self.transport.write(b"hello")

    def connectionLost(self, reason: Failure) -> None:
        """Take note."""
        self.lost = reason


class Meeting(NamedTuple):
    """
    What came of a connection.

    @ivar heard: what the server has read.
    @ivar version: the version of TLS.
    @ivar lost: why the client gave up.
    """

    heard: bytes
    version: str | None
    lost: Failure | None


def meet(creator: IOpenSSLClientConnectionCreator, context: ssl.SSLContext) -> Meeting:
    """Let a client connect to a server of that context."""
    clock, transport, greeter = Clock(), ClosingTransport(), Greeter()
    client = TLSMemoryBIOFactory(creator, True, Factory.forProtocol(lambda: greeter), clock).buildProtocol(None)
    client.makeConnection(transport)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    heard = b""
    for _ in range(8):
        clock.advance(1)
        incoming.write(transport.value())
        transport.clear()
        try:
            server.do_handshake()
            heard += server.read(100)
        except ssl.SSLError:
            pass
        answer = outgoing.read()
        if answer and not transport.disconnecting:
            client.dataReceived(answer)
    if transport.disconnecting:
        client.connectionLost(Failure(ConnectionAborted()))
    return Meeting(heard, server.version(), greeter.lost)


class _TLSTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Make an authority and its file."""
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        self.authority = Authority("authority")
        self.ca_file = write_ca_file(self.directory, "ca", self.authority)

    def server(self, identity: Identity, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """Make the context of a server."""
        key_file, cert_file = identity.write(self.directory, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert_file, key_file)
        if version is not None:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = version
        return context


class VerifyTests(_TLSTests):
    """Whom it talks to."""

    def test_trusted(self) -> None:
        """A server whose certificate is from the CA file and for its host hears what is said."""
        server = self.server(self.authority.issue("server"))
        for host in ("localhost", "127.0.0.1", "::1"):
            with self.subTest(host):
                met = meet(make_creator(host, ClientTLS(self.ca_file)), server)

                self.assertEqual((b"hello", "TLSv1.3", None), met)

    def test_several_authorities(self) -> None:
        """Each certificate of a CA file is trusted, and one that is intermediate comes from the server."""
        other = Authority("other")
        ca_file = write_ca_file(self.directory, "both", other, self.authority)
        server = self.server(Authority("intermediate", self.authority).issue("server"))

        self.assertEqual(b"hello", meet(make_creator("localhost", ClientTLS(ca_file)), server).heard)

    def test_other_host(self) -> None:
        """A certificate for another name is refused before anything is said."""
        server = self.server(self.authority.issue("server"))
        for host in ("logs.example.com", "192.0.2.1"):
            with self.subTest(host):
                met = meet(make_creator(host, ClientTLS(self.ca_file)), server)

                self.assertEqual(b"", met.heard)
                self.assertIsNotNone(met.lost)

    def test_not_trusted(self) -> None:
        """So is one that nobody vouches for, or that the system's store does not know."""
        for identity, tls in [
            (self_signed("server"), ClientTLS(self.ca_file)),
            (Authority("other").issue("server"), ClientTLS(self.ca_file)),
            (self.authority.issue("server"), ClientTLS()),
        ]:
            with self.subTest(tls):
                met = meet(make_creator("localhost", tls), self.server(identity))

                assert met.lost is not None
                self.assertEqual((b"", "certificate verify failed"), (met.heard, ssl_reason(met.lost.value)))

    def test_versions(self) -> None:
        """TLS 1.2 will do; older versions will not."""
        identity = self.authority.issue("server")
        creator = make_creator("localhost", ClientTLS(self.ca_file))

        met = meet(creator, self.server(identity, ssl.TLSVersion.TLSv1_2))
        self.assertEqual((b"hello", "TLSv1.2"), met[:2])
        old = meet(creator, self.server(identity, ssl.TLSVersion.TLSv1_1))
        self.assertEqual(b"", old.heard)


class OwnCertificateTests(_TLSTests):
    """What it shows."""

    def test_client_certificate(self) -> None:
        """A server that asks for a certificate gets it, with its intermediate, each time."""
        client = Authority("intermediate", self.authority).issue("client")
        key_file, cert_file = client.write(self.directory, "client")
        server = self.server(self.authority.issue("server"), ssl.TLSVersion.TLSv1_2)
        server.verify_mode = ssl.CERT_REQUIRED
        server.load_verify_locations(self.ca_file)
        creator = make_creator("localhost", ClientTLS(self.ca_file, cert_file, key_file))

        self.assertEqual([b"hello", b"hello"], [meet(creator, server).heard for _ in range(2)])
        self.assertEqual(b"", meet(make_creator("localhost", ClientTLS(self.ca_file)), server).heard)

    def test_policy(self) -> None:
        """As a policy of C{twisted.web} it serves its one host."""
        creator = make_creator("localhost", ClientTLS(self.ca_file))
        policy = OneHostPolicy(creator)

        self.assertTrue(verifyObject(IPolicyForHTTPS, policy))
        self.assertIs(creator, policy.creatorForNetloc(b"localhost", 443))


class FilesTests(_TLSTests):
    """What is wrong with a file is told before there is a connection."""

    def test_wrong(self) -> None:
        """The error names option and file."""
        key_file, cert_file = self.authority.issue("client").write(self.directory, "client")
        other_key, _ = self.authority.issue("other").write(self.directory, "other")
        empty = write(os.path.join(self.directory, "empty.pem"), b"")
        for tls, option, named in [
            (ClientTLS(empty), "ca_file: ", empty),
            (ClientTLS("/does/not/exist"), "ca_file: ", "/does/not/exist"),
            (ClientTLS(None, empty, key_file), "cert_file, key_file: ", empty),
            (ClientTLS(None, cert_file, "/does/not/exist"), "cert_file, key_file: ", "/does/not/exist"),
            (ClientTLS(None, cert_file, other_key), "cert_file, key_file: ", other_key),
        ]:
            with self.subTest(tls):
                error = str(self.assertRaises(ConfigError, make_creator, "localhost", tls))

                self.assertTrue(error.startswith(option), error)
                self.assertIn(named, error)

    def test_refused_by_openssl(self) -> None:
        """A certificate that OpenSSL does not take is told, too."""

        def refuse(context: SSL.Context, certificate: object) -> None:
            raise SSL.Error([("SSL routines", "", "ca md too weak")])

        self.patch(SSL.Context, "use_certificate", refuse)
        key_file, cert_file = self.authority.issue("client").write(self.directory, "client")

        error = self.assertRaises(ConfigError, make_creator, "h", ClientTLS(None, cert_file, key_file))

        self.assertIn("ca md too weak", str(error))


class ReasonTests(SynchronousTestCase):
    """OpenSSL's words."""

    def test_words(self) -> None:
        """Its reasons are told without its codes; an end without a reason is told as such."""
        for error, text in [
            (SSL.Error([("a", "b", "first"), ("a", "b", "second")]), "first, second"),
            (SSL.Error([("a", "b", "")]), "the other end closed the connection"),
            (SSL.ZeroReturnError(), "the other end closed the connection"),
            (SSL.SysCallError(-1, "Unexpected EOF"), "the other end closed the connection"),
        ]:
            with self.subTest(text):
                self.assertEqual(text, ssl_reason(error))
