"""
Tests for L{webhookrx.intake.client_certificates}.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import FAR_AWAY, LONG_AGO, Authority
from webhookrx.intake import client_certificates
from webhookrx.intake.client_certificates import LONGEST_NAME, MOST_BYTES, MOST_NAMES, identity_of
from webhookrx.intake.provenance import ClientIdentity

_KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(
    names: Sequence[x509.GeneralName] = (), common_names: Sequence[str] = ("relay",), issuer: str = "Our CA"
) -> bytes:
    """Return a certificate in DER; nobody verifies it here."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common_names]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, issuer)]))
        .public_key(_KEY.public_key())
        .serial_number(7)
        .not_valid_before(LONG_AGO)
        .not_valid_after(FAR_AWAY)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(_KEY, SHA256()).public_bytes(Encoding.DER)


def dns(*names: str) -> list[x509.GeneralName]:
    return [x509.DNSName(name) for name in names]


class IdentityTests(SynchronousTestCase):
    def assert_nobody(self, der: bytes) -> None:
        """Nothing but the fingerprint is known of a certificate."""
        self.assertEqual(ClientIdentity("", (), "", hashlib.sha256(der).hexdigest()), identity_of(der))

    def test_all(self) -> None:
        """It has the common name, the alternative names in order, the issuer, and the SHA-256 of the certificate."""
        names: list[x509.GeneralName] = [
            x509.DNSName("a.shippers.example"),
            x509.RFC822Name("ops@shippers.example"),
            x509.UniformResourceIdentifier("spiffe://shippers.example/relay"),
            x509.IPAddress(ipaddress.ip_address("2001:db8::1")),
            x509.DNSName("*.b.example"),
        ]
        der = certificate(names)

        self.assertEqual(
            ClientIdentity(
                "relay",
                (
                    "a.shippers.example",
                    "ops@shippers.example",
                    "spiffe://shippers.example/relay",
                    "2001:db8::1",
                    "*.b.example",
                ),
                "O=Our CA",
                hashlib.sha256(der).hexdigest(),
            ),
            identity_of(der),
        )

    def test_of_an_authority(self) -> None:
        """A certificate as authorities issue it is read."""
        issued = Authority("Our CA").issue("client-7", names=dns("client-7.example"))
        found = identity_of(issued.certificate.public_bytes(Encoding.DER))

        self.assertEqual(("client-7", ("client-7.example",), "CN=Our CA"), (found.cn, found.san, found.issuer))
        self.assertEqual(issued.certificate.fingerprint(SHA256()).hex(), found.fingerprint)

    def test_no_names(self) -> None:
        """Without a common name or alternative names they are empty."""
        self.assertEqual(("", ()), (identity_of(certificate((), ())).cn, identity_of(certificate()).san))

    def test_several_common_names(self) -> None:
        """Of common names that contradict each other none counts."""
        self.assertEqual("", identity_of(certificate((), ("victim.example", "evil.example"))).cn)

    def test_other_kinds(self) -> None:
        """Names of other kinds are left out, and none passes for one of another kind."""
        names: list[x509.GeneralName] = [
            x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
            x509.DirectoryName(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a.example")])),
            x509.OtherName(x509.ObjectIdentifier("1.2.3.4"), b"\x0c\x01a"),
            x509.RFC822Name("a.example"),
            x509.UniformResourceIdentifier("a.example"),
            x509.DNSName("ops@a.example"),
            x509.DNSName("spiffe://a"),
            x509.DNSName("b.example"),
        ]
        self.assertEqual(("b.example",), identity_of(certificate(names)).san)

    def test_bounds(self) -> None:
        """The first hundred names count, and none that is longer than 255 characters."""
        many = [f"a{number}.example" for number in range(MOST_NAMES + 50)]
        self.assertEqual(tuple(many[:MOST_NAMES]), identity_of(certificate(dns(*many))).san)
        long = "a" * (LONGEST_NAME + 1)
        self.assertEqual(("b", long[1:]), identity_of(certificate(dns(long, "b", long[1:]))).san)
        self.assertEqual(LONGEST_NAME, len(identity_of(certificate(issuer=long)).issuer))

    def test_very_large(self) -> None:
        """A certificate of ten thousand names is not read."""
        der = certificate(dns(*(f"a{number}" for number in range(10_000))))
        self.assertGreater(len(der), MOST_BYTES)
        self.assert_nobody(der)

    def test_as_large_as_may_be(self) -> None:
        """One of just that size is read."""
        der = certificate()
        self.patch(client_certificates, "MOST_BYTES", len(der))
        self.assertEqual("relay", identity_of(der).cn)
        self.patch(client_certificates, "MOST_BYTES", len(der) - 1)
        self.assert_nobody(der)

    def test_odd_texts(self) -> None:
        """A text that is not of its kind leaves a certificate without names, and NUL ends none."""
        der = certificate(dns("xxxx.example"), ("relay-name",))
        for was, now in (
            (b"\x0c\x0arelay-name", b"\x0c\x0arelay\xff\xfe\xfdme"),
            (b"\x0c\x0arelay-name", b"\x1e\x0a\xd8\x00elay-nam"),
            (b"xxxx.example", b"xx\xff\xff.example"),
        ):
            self.assertIn(was, der)
            self.assert_nobody(der.replace(was, now))
        self.assertEqual("re\0ay-name", identity_of(der.replace(b"relay-name", b"re\0ay-name")).cn)
        self.assertEqual((), identity_of(der.replace(b"xxxx.example", b"xx\0x.example")).san)

    def test_no_certificate(self) -> None:
        """What is no certificate at all names nobody."""
        for der in (b"", b"\x30", b"x" * 100, certificate()[:-1], certificate() + b"x"):
            self.assert_nobody(der)

    @given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=6))
    def test_never_raises(self, changes: list[tuple[int, int]]) -> None:
        """Whatever bytes are changed, it returns, with texts that UTF-8 can hold."""
        der = bytearray(_DER)
        for place, byte in changes:
            der[place % len(der)] = byte
        found = identity_of(bytes(der))
        "".join((found.cn, *found.san, found.issuer)).encode()


_DER = certificate([*dns("a.example", "b.example"), x509.RFC822Name("a@b.example")], ("relay",))
