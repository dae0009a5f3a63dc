"""
Tests for L{webhookrx.agent.router_keys}.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import Authority, certificates_pem, key_pem
from webhookrx.agent.router_keys import check_certificate, new_key, pinned_authority, renewal_is_due, request_for

AUTHORITY = Authority("console")
ROUTER = AUTHORITY.issue(
    "router", not_before=datetime(2026, 1, 1, tzinfo=UTC), not_after=datetime(2026, 1, 31, tzinfo=UTC)
)
CERTIFICATE = certificates_pem(ROUTER.certificate).decode()


class NewKeyTests(SynchronousTestCase):
    """Tests for L{new_key}."""

    def test_request(self) -> None:
        """Each key is another one; its request is signed by it and names nobody."""
        first, second = new_key(), new_key()
        self.assertNotEqual(first.key, second.key)
        csr = x509.load_pem_x509_csr(first.csr.encode())
        self.assertTrue(csr.is_signature_valid)
        self.assertEqual(list(csr.subject), [])

    def test_hidden(self) -> None:
        """The repr of a request shows no key."""
        self.assertNotIn("PRIVATE", repr(new_key()))


class RequestForTests(SynchronousTestCase):
    """Tests for L{request_for}."""

    def test_same_key(self) -> None:
        """A key that is there already is requested for again."""
        wanted = new_key()
        again = request_for(wanted.key)
        public = [x509.load_pem_x509_csr(each.csr.encode()).public_key() for each in (wanted, again)]
        self.assertEqual((wanted.key, public[0]), (again.key, public[1]))

    def test_no_key(self) -> None:
        """What is none, or one of another kind, is refused, and not quoted."""
        other = ed25519.Ed25519PrivateKey.generate()
        pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        for key in ("s3cret", "", pem):
            error = self.assertRaises(ValueError, request_for, key)
            self.assertNotIn(key or "s3cret", str(error))


class CheckCertificateTests(SynchronousTestCase):
    """Tests for L{check_certificate}."""

    def test_own(self) -> None:
        """A certificate for the key is good."""
        check_certificate(CERTIFICATE, key_pem(ROUTER.key).decode())

    def test_other(self) -> None:
        """One for another key is refused, and so is what is none; neither is quoted."""
        for certificate in (CERTIFICATE, "s3cret", ""):
            error = self.assertRaises(ValueError, check_certificate, certificate, new_key().key)
            self.assertNotIn("s3cret", str(error))


class RenewalTests(SynchronousTestCase):
    """Tests for L{renewal_is_due}."""

    def test_two_thirds(self) -> None:
        """A certificate of 30 days is renewed from its 21st day, also once it has ended."""
        for day, due in ((1, False), (20, False), (21, True), (31, True)):
            with self.subTest(day):
                self.assertEqual(renewal_is_due(CERTIFICATE, datetime(2026, 1, day, tzinfo=UTC)), due)
        self.assertTrue(renewal_is_due(CERTIFICATE, datetime(2027, 1, 1, tzinfo=UTC)))

    def test_clock_back(self) -> None:
        """A clock that is years behind does not make it due."""
        self.assertFalse(renewal_is_due(CERTIFICATE, datetime(1970, 1, 1, tzinfo=UTC)))


class PinnedAuthorityTests(SynchronousTestCase):
    """Tests for L{pinned_authority}."""

    def pin(self, certificate: x509.Certificate, *chain: x509.Certificate) -> str | None:
        """Pin a certificate in a chain."""
        name = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
        return pinned_authority([each.public_bytes(Encoding.DER) for each in chain], name)

    def test_found(self) -> None:
        """The CA certificate of that hash is taken out of the chain."""
        found = self.pin(AUTHORITY.certificate, ROUTER.certificate, AUTHORITY.certificate)
        self.assertEqual(found, certificates_pem(AUTHORITY.certificate).decode())

    def test_another(self) -> None:
        """A CA of the same name is another one."""
        self.assertIsNone(self.pin(AUTHORITY.certificate, ROUTER.certificate, Authority("console").certificate))

    def test_no_ca(self) -> None:
        """A certificate that may sign none is no trust anchor, whatever the token says."""
        self.assertIsNone(self.pin(ROUTER.certificate, ROUTER.certificate))
