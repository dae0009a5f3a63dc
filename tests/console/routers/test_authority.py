"""
Tests for L{webhookrx.console.routers.authority}.
"""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.routers.authority import (
    CA_FILE,
    KEY_FILES,
    SIGNING_FILE,
    Authority,
    BadCertificateRequest,
    load_authority,
    make_authority,
)
from webhookrx.errors import CannotStart

NOW = datetime(2026, 11, 23, tzinfo=UTC)
GUID = "01234567-89ab-cdef-0123-456789abcdef"


def request_of(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, subject: str = "anything") -> str:
    """Return a certificate request of a key."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    made = x509.CertificateSigningRequestBuilder().subject_name(name)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return made.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


class AuthorityTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.mkdir(self.directory, 0o700)
        self.authority: Authority = make_authority(self.directory, NOW)

    def test_only_their_owner_reads_the_keys(self) -> None:
        """The files of keys have the mode 0600."""
        modes = [stat.S_IMODE(os.stat(os.path.join(self.directory, name)).st_mode) for name in KEY_FILES]
        self.assertEqual(modes, [0o600, 0o600])

    def test_keys_that_are_there_stay(self) -> None:
        """To make an authority where one is returns that one."""
        again = make_authority(self.directory, NOW + timedelta(days=1))
        self.assertEqual((again.pin, again.signing_keys), (self.authority.pin, self.authority.signing_keys))

    def test_a_missing_key_is_not_made_anew(self) -> None:
        """A console that has lost a key does not start, and says what to do."""
        for name in KEY_FILES:
            directory = self.mktemp()
            make_authority(directory, NOW)
            os.unlink(os.path.join(directory, name))
            self.assertIn("restore it", str(self.assertRaises(CannotStart, load_authority, directory)))

    def test_a_key_that_others_may_read_is_refused(self) -> None:
        """A file of keys with the mode 0640 stops the start."""
        os.chmod(os.path.join(self.directory, SIGNING_FILE), 0o640)
        self.assertIn("0600", str(self.assertRaises(CannotStart, load_authority, self.directory)))

    def test_damaged_keys_are_refused_unquoted(self) -> None:
        """The error about a damaged file has nothing of its content."""
        for name in KEY_FILES:
            directory = self.mktemp()
            make_authority(directory, NOW)
            path = os.path.join(directory, name)
            with open(path, "r+b") as file:
                content = file.read()
                file.seek(40)
                file.write(b"XXXXXXXXXXXXXXXX")
            error = str(self.assertRaises(CannotStart, load_authority, directory))
            self.assertNotIn(content[60:80].decode(), error)

    def test_a_foreign_ca_certificate_is_refused(self) -> None:
        """The CA's key has to belong to its certificate."""
        other = self.mktemp()
        make_authority(other, NOW)
        with open(os.path.join(other, CA_FILE), "rb") as file:
            certificate = file.read().partition(b"-----BEGIN CERT")
        with open(os.path.join(self.directory, CA_FILE), "rb") as file:
            key = file.read().partition(b"-----BEGIN CERT")[0]
        with open(os.path.join(self.directory, CA_FILE), "wb") as file:
            file.write(key + certificate[1] + certificate[2])
        self.assertIn("belong together", str(self.assertRaises(CannotStart, load_authority, self.directory)))

    def test_the_console_says_who_a_router_is(self) -> None:
        """Subject, purpose and life of a certificate are the console's, whatever the request asks for."""
        key = ec.generate_private_key(ec.SECP256R1())
        issued = self.authority.issue(request_of(key, "console"), GUID, NOW)
        certificate = x509.load_pem_x509_certificate(issued.pem.encode())
        certificate.verify_directly_issued_by(self.authority.certificates[0])
        self.assertEqual(certificate.subject.rfc4514_string(), f"CN={GUID}")
        self.assertFalse(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        self.assertEqual(list(usage), [ExtendedKeyUsageOID.CLIENT_AUTH])
        self.assertEqual(issued.ends, (NOW + timedelta(days=30)).timestamp())
        self.assertEqual(issued.fingerprint, certificate.fingerprint(SHA256()).hex())

    def test_other_keys_are_refused(self) -> None:
        """A request has a key on P-256, is signed by it, and is bounded."""
        rsa_key = rsa.generate_private_key(65537, 2048)
        curve = ec.generate_private_key(ec.SECP384R1())
        good = request_of(ec.generate_private_key(ec.SECP256R1()))
        der = bytearray(x509.load_pem_x509_csr(good.encode()).public_bytes(Encoding.DER))
        der[-1] ^= 1
        forged = x509.load_der_x509_csr(bytes(der)).public_bytes(Encoding.PEM).decode()
        for bad in (request_of(rsa_key), request_of(curve), forged, "", "hello", good + " " * 8192, "\udc80"):
            self.assertRaises(BadCertificateRequest, self.authority.issue, bad, GUID, NOW)

    def test_signatures_of_other_keys_are_not_verified(self) -> None:
        """A key of another kind is refused before its signature is looked at: strangers choose how long that takes."""
        key = rsa.generate_private_key(65537, 2048).public_key()

        class Request:
            @property
            def is_signature_valid(self) -> bool:
                raise AssertionError("it was verified")

            def public_key(self) -> rsa.RSAPublicKey:
                return key

        self.patch(x509, "load_pem_x509_csr", lambda data: Request())
        self.assertRaises(BadCertificateRequest, self.authority.guid_of, "request", "token")

    def test_the_port_has_the_names_of_the_console(self) -> None:
        """The certificate of the port is for servers, and for each name and address."""
        identity = self.authority.identity_of_port(("fleet.example", "127.0.0.1", "[::1]"), NOW)
        certificate = x509.load_pem_x509_certificate(identity.certificate)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        self.assertEqual(names.get_values_for_type(x509.DNSName), ["fleet.example"])
        self.assertEqual([str(each) for each in names.get_values_for_type(x509.IPAddress)], ["127.0.0.1", "::1"])
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        self.assertEqual(list(usage), [ExtendedKeyUsageOID.SERVER_AUTH])

    def test_nothing_outlives_the_ca(self) -> None:
        """A certificate ends with the CA's at the latest."""
        late = NOW + timedelta(days=3640)
        issued = self.authority.issue(request_of(ec.generate_private_key(ec.SECP256R1())), GUID, late)
        self.assertEqual(issued.ends, (NOW + timedelta(days=3650)).timestamp())

    def test_no_key_is_shown(self) -> None:
        """The repr of the port's identity has no private key."""
        identity = self.authority.identity_of_port(("localhost",), NOW)
        self.assertNotIn("PRIVATE", repr(identity))
