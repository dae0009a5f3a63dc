"""
Tests for L{webhookrx.transport.server_context}.
"""

from __future__ import annotations

import os
import struct
import warnings

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates
from cryptography.x509.oid import NameOID
from OpenSSL import SSL
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.system.certificates import (
    A_YEAR_LATER,
    FAR_AWAY,
    LONG_AGO,
    Authority,
    certificates_pem,
    key_pem,
    self_signed,
    server_settings,
    write,
    write_ca_file,
)
from tests.transport.in_memory import TLS12, TLS13, WORKS, Meeting, ServerEnd, client_context, meet, server_end
from webhookrx.errors import ConfigError
from webhookrx.settings import TLS
from webhookrx.transport import server_context
from webhookrx.transport.handshake import describe_failure
from webhookrx.transport.server_context import ServerConnectionCreator, build_context

_ALERT_RECORD = 21
_PROTOCOL_VERSION_ALERT = bytes([2, 70])


class _ContextCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        self.root = Authority("Root")
        self.ca_file = write_ca_file(self.directory, "ca", self.root)
        self.settings = server_settings(self.directory, self.root.issue("server"))

    def creator(self) -> ServerConnectionCreator:
        return ServerConnectionCreator(self.settings)


class VersionTests(_ContextCase):
    """
    Which versions of the protocol are spoken.
    """

    def test_modern_versions(self) -> None:
        """TLS 1.2 and TLS 1.3 are spoken, and TLS 1.3 is preferred."""
        for wanted, spoken in ((TLS12, "TLSv1.2"), (TLS13, "TLSv1.3"), (None, "TLSv1.3")):
            meeting = meet(self.creator(), client_context(self.ca_file, wanted))
            self.assertEqual((WORKS, spoken), (meeting.outcome, meeting.client.tls.version()))

    def test_old_versions(self) -> None:
        """SSL 3.0, TLS 1.0 and TLS 1.1 are refused with the alert that says why."""
        for minor in (0, 1, 2):
            server = server_end(self.creator())

            answer = server.exchange(_client_hello(minor))

            self.assertEqual((_ALERT_RECORD, _PROTOCOL_VERSION_ALERT), (answer[0], answer[5:7]), minor)
            assert server.answerer.lost is not None
            self.assertEqual("wrong version: TLS 1.2 or 1.3 is needed", describe_failure(server.answerer.lost))
            self.assertEqual(0, server.answerer.handshakes)


class CipherTests(_ContextCase):
    """
    Which ciphers are spoken.
    """

    def test_only_modern_ciphers(self) -> None:
        """Each cipher has forward secrecy and authenticated encryption."""
        ciphers = SSL.Connection(build_context(self.settings), None).get_cipher_list()
        self.assertEqual(
            {
                "TLS_AES_128_GCM_SHA256",
                "TLS_AES_256_GCM_SHA384",
                "TLS_CHACHA20_POLY1305_SHA256",
                "ECDHE-ECDSA-AES128-GCM-SHA256",
                "ECDHE-ECDSA-AES256-GCM-SHA384",
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                "ECDHE-RSA-AES128-GCM-SHA256",
                "ECDHE-RSA-AES256-GCM-SHA384",
                "ECDHE-RSA-CHACHA20-POLY1305",
            },
            set(ciphers),
        )

    def test_order(self) -> None:
        """The cheapest cipher is taken, unless the client's own order begins with ChaCha20."""
        aes128, aes256 = "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"
        chacha20 = "ECDHE-ECDSA-CHACHA20-POLY1305"
        for order, chosen in (
            ((aes256, aes128, chacha20), aes128),
            ((aes256, chacha20, aes128), aes128),
            ((chacha20, aes256, aes128), chacha20),
            ((aes256, chacha20), aes256),
        ):
            context = client_context(self.ca_file, TLS12)
            context.set_ciphers(":".join(order))
            cipher = meet(self.creator(), context).client.tls.cipher()
            assert cipher is not None
            self.assertEqual(chosen, cipher[0], order)

    def test_weak_ciphers(self) -> None:
        """A client that offers only CBC or static RSA is refused, and the reason says so."""
        for cipher in ("ECDHE-ECDSA-AES128-SHA256", "AES128-GCM-SHA256"):
            context = client_context(self.ca_file, TLS12)
            context.set_ciphers(cipher)

            meeting = meet(self.creator(), context)

            assert meeting.server.answerer.lost is not None
            self.assertEqual("no shared cipher", describe_failure(meeting.server.answerer.lost))


class ExtensionTests(_ContextCase):
    """
    What is not offered, whoever asks.
    """

    def test_no_alpn(self) -> None:
        """A client that offers C{h2} gets a connection, and no protocol is agreed on."""
        context = client_context(self.ca_file)
        for protocols in (["h2"], ["h2", "http/1.1"], ["acme-tls/1"]):
            context.set_alpn_protocols(protocols)
            meeting = meet(self.creator(), context)
            self.assertEqual((WORKS, None), (meeting.outcome, meeting.client.tls.selected_alpn_protocol()))

    def test_no_compression(self) -> None:
        """Nothing is compressed."""
        meeting = meet(self.creator(), client_context(self.ca_file, TLS12))
        self.assertIsNone(meeting.client.tls.compression())

    def test_no_renegotiation(self) -> None:
        """A TLS 1.2 client that asks for a new handshake does not get one."""
        server = server_end(self.creator())
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_max_proto_version(SSL.TLS1_2_VERSION)
        client = SSL.Connection(context, None)
        client.set_connect_state()
        while not server.answerer.handshakes:
            _step(client, server)
        _step(client, server)

        connection = server.protocol.getHandle()

        client.renegotiate()
        refusals = [_step(client, server) for _ in range(4)]

        self.assertIn("no renegotiation", "".join(refusals))
        self.assertEqual((1, 0), (server.answerer.handshakes, connection.total_renegotiations()))


class KeyTests(_ContextCase):
    """
    Kinds of keys.
    """

    def test_kinds_of_keys(self) -> None:
        """RSA and Ed25519 keys serve as well as the elliptic-curve ones of the other tests."""
        for key in (generate_private_key(65537, 2048), Ed25519PrivateKey.generate()):
            tls = self._settings_of(key)
            for version in (TLS12, TLS13):
                meeting = meet(ServerConnectionCreator(tls), client_context(tls.cert_file, version))
                self.assertEqual(WORKS, meeting.outcome)

    def test_short_key(self) -> None:
        """What only OpenSSL refuses, such as a short key of an issuer, is an error that names the file too."""
        tls = self._settings_of(generate_private_key(65537, 1024))
        with open(tls.key_file, "rb") as keys, open(tls.cert_file, "rb") as certificates:
            pair = load_pem_private_key(keys.read(), None), load_pem_x509_certificates(certificates.read())
        self.patch(server_context, "load_key_and_chain", lambda tls, known: pair)
        error = self.assertRaises(ConfigError, build_context, tls)
        self.assertEqual(f"The certificate in {tls.cert_file} can't be used: ee key too small.", str(error))

    def test_chain_is_sent(self) -> None:
        """Clients that know only the root can build the chain, from one file or from two."""
        intermediate = Authority("Intermediate", self.root)
        whole = server_settings(self.directory, intermediate.issue("server"), "whole")
        identity = intermediate.issue("server")
        key_file, cert_file = identity.write(self.directory, "leaf", with_intermediates=False)
        rest = write(os.path.join(self.directory, "rest.pem"), certificates_pem(intermediate.certificate))
        for tls in (whole, TLS(key_file, cert_file, rest)):
            meeting = meet(ServerConnectionCreator(tls), client_context(self.ca_file))
            self.assertEqual(WORKS, meeting.outcome)

    def test_no_deprecated_call(self) -> None:
        """No call that pyOpenSSL or cryptography will take away is made."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            build_context(self.settings)
            build_context(TLS(self.settings.key_file, self.settings.cert_file, peer_verify=True, ca_file=self.ca_file))

    def _settings_of(self, key: object) -> TLS:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "other key")])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(LONG_AGO)
            .not_valid_after(FAR_AWAY)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key, None if isinstance(key, Ed25519PrivateKey) else SHA256())
        )
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return TLS(
            write(os.path.join(self.directory, "other-key.pem"), pem),
            write(os.path.join(self.directory, "other-cert.pem"), certificates_pem(certificate)),
        )


def _client_hello(minor: int) -> bytes:
    """A ClientHello of SSL 3.0 (0), TLS 1.0 (1) or TLS 1.1 (2), as RFC 5246, section 7.4.1.2, has it."""
    ciphers = struct.pack("!4H", 0xC009, 0xC00A, 0x002F, 0x0035)
    body = bytes([3, minor]) + bytes(32) + b"\0" + struct.pack("!H", len(ciphers)) + ciphers + b"\1\0"
    message = b"\1" + struct.pack("!I", len(body))[1:] + body
    return bytes([22, 3, minor]) + struct.pack("!H", len(message)) + message


def _step(client: SSL.Connection, server: ServerEnd) -> str:
    """Carry bytes from the client to the server and back once; return what went wrong for the client."""
    problem = ""
    try:
        client.do_handshake()
    except SSL.WantReadError:
        pass
    except SSL.Error as error:
        problem = str(error)
    try:
        from_client = client.bio_read(65536)
    except SSL.WantReadError:
        from_client = b""
    from_server = server.exchange(from_client)
    if from_server:
        client.bio_write(from_server)
    return problem


class ServerConnectionCreatorTests(SynchronousTestCase):
    """
    One creator after another, from the files as they are.
    """

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        self.root = Authority("Root")
        self.client = client_context(write_ca_file(self.directory, "ca", self.root))
        self.settings = server_settings(self.directory, self.root.issue("first"))
        self.creator = ServerConnectionCreator(self.settings)

    def served_name(self, creator: ServerConnectionCreator) -> str:
        """The name that a client sees."""
        meeting = meet(creator, self.client)
        self.assertEqual(WORKS, meeting.outcome)
        return _common_name(meeting)

    def test_interface(self) -> None:
        """It is what C{wrapServerTLS} asks for."""
        self.assertTrue(verifyObject(IOpenSSLServerConnectionCreator, self.creator))

    def test_renewed(self) -> None:
        """One that is made from a renewed pair serves that one; the one from before serves what it has read."""
        server_settings(self.directory, self.root.issue("second"))
        self.assertEqual("first", self.served_name(self.creator))
        self.assertEqual("second", self.served_name(ServerConnectionCreator(self.settings)))

    def test_open_connections_live_on(self) -> None:
        """A connection from before a renewal goes on as it was."""
        meeting = meet(self.creator, self.client)
        server_settings(self.directory, self.root.issue("second"))
        ServerConnectionCreator(self.settings)

        meeting.client.tls.write(b"again")
        meeting.talk()

        self.assertTrue(meeting.server.answerer.received.endswith(b"again"))
        self.assertIsNone(meeting.server.answerer.lost)

    def test_end(self) -> None:
        """It tells when the first of the certificates that it shows expires; here that is the host's."""
        self.assertEqual(FAR_AWAY.timestamp(), self.creator.ends)
        middle = Authority("Middle", self.root)
        settings = server_settings(self.directory, middle.issue("host", not_after=A_YEAR_LATER))
        self.assertEqual(A_YEAR_LATER.timestamp(), ServerConnectionCreator(settings).ends)

    def test_bad_pair(self) -> None:
        """Without a good pair there is no creator, and the error says which file is to blame."""
        for content, problem in (
            (None, "does not exist"),
            (b"half a fi", "holds no private key in PEM format"),
            (key_pem(self_signed("stranger").key), "does not match the certificate"),
            (key_pem(self_signed("stranger").key, b"pass phrase"), "is encrypted"),
        ):
            os.remove(self.settings.key_file)
            if content is not None:
                write(self.settings.key_file, content)

            error = self.assertRaises(ConfigError, ServerConnectionCreator, self.settings)

            self.assertIn(self.settings.key_file, str(error))
            self.assertIn(problem, str(error))
            write(self.settings.key_file, b"")


def _common_name(meeting: Meeting) -> str:
    certificate = meeting.client.tls.getpeercert()
    assert certificate is not None
    return dict(pair for (pair,) in certificate["subject"])["commonName"]
