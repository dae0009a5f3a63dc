"""TLS of a client of ours against a server of the standard library, both in memory."""

from __future__ import annotations

import contextlib
import os
import ssl
from functools import partial
from ipaddress import ip_address
from typing import ClassVar, NamedTuple

from cryptography import x509
from OpenSSL import SSL
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import Authority, Identity, self_signed, write, write_ca_file
from tests.transport.in_memory import ClosingTransport
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.observers import client_tls
from webhookrx.observers.client_tls import (
    TLS_OPTIONS,
    ClientTLS,
    WrongHost,
    make_context,
    make_context_if,
    make_creator,
    read_client_tls,
    read_tls_if,
    ssl_reason,
)


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


def shakes_hands(client_context: ssl.SSLContext, host: str, server_context: ssl.SSLContext) -> bool:
    """Return whether a client takes a server for that host."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            with contextlib.suppress(ssl.SSLWantReadError):
                server.do_handshake()
        except ssl.SSLCertVerificationError:
            return False
        else:
            return True
    raise AssertionError("the handshake does not come to an end")


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
        """So is one without a trusted authority, in the CA file or in the system's store."""
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


def address(text: str) -> x509.IPAddress:
    """Return an address as a name in a certificate."""
    return x509.IPAddress(ip_address(text))


class NamesTests(_TLSTests):
    """Which certificates are for a host, in Twisted's connections and in those of the standard library."""

    #: Host, the names in the certificate, and whether it is for the host. The common name is the host each time.
    TABLE: ClassVar[list[tuple[str, list[x509.GeneralName], bool]]] = [
        ("localhost", [x509.DNSName("localhost")], True),
        ("localhost", [x509.DNSName("LocalHost")], True),
        ("localhost", [x509.DNSName("logs.example.com"), x509.DNSName("localhost")], True),
        ("localhost", [x509.DNSName("*"), x509.DNSName("localhost")], True),
        ("localhost", [], False),
        ("localhost", [x509.RFC822Name("localhost@example.com")], False),
        ("localhost", [x509.UniformResourceIdentifier("https://localhost/")], False),
        ("localhost", [x509.DNSName("logs.example.com")], False),
        ("localhost", [x509.DNSName("*")], False),
        ("logs.example.com", [x509.DNSName("*.example.com")], True),
        ("logs.example.com", [x509.DNSName("*.com")], False),
        ("logs.example.com", [x509.DNSName("*.*.com")], False),
        ("logs.example.com", [x509.DNSName("l*.example.com")], False),
        ("a.logs.example.com", [x509.DNSName("*.example.com")], False),
        ("example.com", [x509.DNSName("*.example.com")], False),
        ("logs.example", [x509.DNSName("*.example")], False),
        ("log_server", [x509.DNSName("log_server")], True),
        ("127.0.0.1", [address("127.0.0.1")], True),
        ("127.0.0.1", [x509.DNSName("127.0.0.1"), address("127.0.0.1")], True),
        ("127.0.0.1", [address("127.0.0.2")], False),
        ("127.0.0.1", [x509.DNSName("127.0.0.1")], False),
        ("127.0.0.1", [x509.DNSName("*.0.0.1")], False),
        ("127.0.0.1", [], False),
        ("::1", [address("::1")], True),
        ("::1", [address("::2"), x509.DNSName("localhost")], False),
    ]

    def test_twisted(self) -> None:
        """A server with another certificate gets nothing, and the reason is in words."""
        for host, names, is_for in self.TABLE:
            with self.subTest(f"{host} {names}"):
                server = self.server(self.authority.issue(host, names=names))

                met = meet(make_creator(host, ClientTLS(self.ca_file)), server)

                if is_for:
                    self.assertEqual((b"hello", None), (met.heard, met.lost))
                else:
                    assert met.lost is not None
                    self.assertEqual(
                        (b"", f"the certificate is not for {host}"),
                        (met.heard, str(met.lost.check(WrongHost) and met.lost.value)),
                    )

    def test_standard_library(self) -> None:
        """The same servers get as far with the other."""
        context = make_context(ClientTLS(self.ca_file))
        for host, names, is_for in self.TABLE:
            with self.subTest(f"{host} {names}"):
                server = self.server(self.authority.issue(host, names=names))

                self.assertIs(is_for, shakes_hands(context, host, server))

    def test_server_name(self) -> None:
        """The server gets the name (SNI), so that it can choose a certificate; an address is not a name."""
        told: list[str | None] = []
        server = self.server(self.authority.issue("server"))
        server.sni_callback = lambda connection, name, context: told.append(name)
        for host in ("localhost", "127.0.0.1", "::1"):
            meet(make_creator(host, ClientTLS(self.ca_file)), server)

        self.assertEqual(["localhost", None, None], told)

    def test_trouble(self) -> None:
        """Whatever goes wrong while a certificate is looked at, it is not let through."""

        def fail(certificate: object, host: object) -> bool:
            raise MemoryError

        self.patch(client_tls, "is_for", fail)

        met = meet(make_creator("localhost", ClientTLS(self.ca_file)), self.server(self.authority.issue("server")))

        self.assertEqual(b"", met.heard)
        self.assertIsNotNone(met.lost)


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


class FilesTests(_TLSTests):
    """Errors of files are reported before there is a connection."""

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
                for make in (partial(make_creator, "localhost"), make_context):
                    error = str(self.assertRaises(ConfigError, make, tls))

                    self.assertTrue(error.startswith(option), error)
                    self.assertIn(named, error)

    def test_refused_by_openssl(self) -> None:
        """So is a certificate that OpenSSL does not take."""

        def refuse(context: SSL.Context, certificate: object) -> None:
            raise SSL.Error([("SSL routines", "", "ca md too weak")])

        self.patch(SSL.Context, "use_certificate", refuse)
        key_file, cert_file = self.authority.issue("client").write(self.directory, "client")

        error = self.assertRaises(ConfigError, make_creator, "h", ClientTLS(None, cert_file, key_file))

        self.assertIn("ca md too weak", str(error))

    def test_refused_by_the_standard_library(self) -> None:
        """So is one that it does not take."""

        def refuse(context: ssl.SSLContext, *files: object, **options: object) -> None:
            raise ssl.SSLError(1, "ca md too weak")

        self.patch(ssl.SSLContext, "load_cert_chain", refuse)
        key_file, cert_file = self.authority.issue("client").write(self.directory, "client")

        error = str(self.assertRaises(ConfigError, make_context, ClientTLS(None, cert_file, key_file)))

        self.assertIn("ca md too weak", error)
        self.assertIn("cert_file", error)


class ContextTests(_TLSTests):
    """What sockets of the standard library get."""

    def test_verifies(self) -> None:
        """It verifies certificate and host name, from TLS 1.2 on, by the authorities that are named."""
        key_file, cert_file = self.authority.issue("client").write(self.directory, "client")
        context = make_context(ClientTLS(self.ca_file, cert_file, key_file))

        self.assertEqual((ssl.CERT_REQUIRED, True), (context.verify_mode, context.check_hostname))
        self.assertEqual(ssl.TLSVersion.TLSv1_2, context.minimum_version)
        self.assertEqual(1, context.cert_store_stats()["x509_ca"])


class OptionTests(SynchronousTestCase):
    """The options that name the files."""

    def test_read(self) -> None:
        """Each is what it says, and none must be there."""
        given = {"ca_file": "/ca", "cert_file": "/c", "key_file": "/k", "timeout": "1s"}

        self.assertEqual(ClientTLS("/ca", "/c", "/k"), read_client_tls(SpecOptions("x", given)))
        self.assertEqual(ClientTLS(), read_client_tls(SpecOptions("x", {})))

    def test_wrong(self) -> None:
        """A certificate goes with a key, and no name is empty."""
        for given in ({"cert_file": "/c"}, {"key_file": "/k"}):
            error = str(self.assertRaises(ConfigError, read_client_tls, SpecOptions("x", given)))
            self.assertEqual("observer 'x': cert_file= and key_file= go together", error)
        for key in TLS_OPTIONS:
            error = str(self.assertRaises(ConfigError, read_client_tls, SpecOptions("x", {key: ""})))
            self.assertIn(f'{key}="" is not a file', error)

    def test_without_tls(self) -> None:
        """Without TLS there are no files; an option that would change nothing is wrong."""
        for given, used, found in (
            ({}, False, None),
            ({}, True, ClientTLS()),
            ({"ca_file": "/ca"}, True, ClientTLS("/ca")),
        ):
            options = SpecOptions("nats", given)
            self.assertEqual(found, read_tls_if(options, is_used=used, goes_with="a tls:// URL"))
        for name in TLS_OPTIONS:
            options = SpecOptions("nats", {name: "/f"})
            with self.assertRaises(ConfigError) as caught:
                read_tls_if(options, is_used=False, goes_with="a tls:// URL")
            self.assertIn(f"observer 'nats': {name}= goes with a tls:// URL", str(caught.exception))

    def test_context(self) -> None:
        """There is a context where there is TLS; an error of a file names the observer."""
        options = SpecOptions("nats", {})

        self.assertIsNone(make_context_if(None, options))
        self.assertIsInstance(make_context_if(ClientTLS(), options), ssl.SSLContext)
        with self.assertRaises(ConfigError) as caught:
            make_context_if(ClientTLS("/nowhere/at/all"), options)
        self.assertIn("observer 'nats': ca_file: ", str(caught.exception))


class ReasonTests(SynchronousTestCase):
    """OpenSSL's words."""

    def test_words(self) -> None:
        """Its reasons are quoted without its codes; an end without a reason has a text, too."""
        for error, text in [
            (SSL.Error([("a", "b", "first"), ("a", "b", "second")]), "first, second"),
            (SSL.Error([("a", "b", "")]), "the other end closed the connection"),
            (SSL.ZeroReturnError(), "the other end closed the connection"),
            (SSL.SysCallError(-1, "Unexpected EOF"), "the other end closed the connection"),
        ]:
            with self.subTest(text):
                self.assertEqual(text, ssl_reason(error))
