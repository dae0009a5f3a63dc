"""
Tests for L{webhookrx.tls.key_and_chain}.
"""

from __future__ import annotations

import builtins
import os

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa_key
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import load_der_x509_certificate
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import Authority, certificates_pem, key_pem, self_signed, write
from webhookrx.config.settings import TLS
from webhookrx.errors import ConfigError
from webhookrx.tls.key_and_chain import load_key_and_chain


class LoadTests(SynchronousTestCase):
    """
    Files as people have them.
    """

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        root = Authority("Root")
        self.root = root.certificate
        self.intermediate = Authority("Intermediate", root)
        self.identity = self.intermediate.issue("host")
        self.leaf = self.identity.certificate
        self.key = self.file("key.pem", key_pem(self.identity.key))
        self.cert = self.file("cert.pem", certificates_pem(self.leaf))

    def file(self, name: str, content: bytes) -> str:
        return write(os.path.join(self.directory, name), content)

    def assert_problem(self, problem: str, tls: TLS) -> None:
        error = self.assertRaises(ConfigError, load_key_and_chain, tls)
        self.assertIn(problem, str(error))
        self.assertNotIn("\n", str(error))

    def test_order_of_the_chain(self) -> None:
        """The chain is the certificate file's, then the extra file's."""
        above = [self.intermediate.certificate, self.root]
        whole = self.file("whole.pem", certificates_pem(self.leaf, *above))
        rest = self.file("rest.pem", certificates_pem(*above))
        for tls in (TLS(self.key, whole), TLS(self.key, self.cert, rest)):
            loaded = load_key_and_chain(tls)
            self.assertEqual((self.leaf, *above), loaded.chain)
            self.assertEqual(self.identity.key.private_numbers(), loaded.key.private_numbers())

    def test_shapes_of_files(self) -> None:
        """Key and certificate in one file, CRLF line ends and text between the blocks are fine."""
        both = certificates_pem(self.leaf) + b"some text\n" + key_pem(self.identity.key)
        for content in (both, both.replace(b"\n", b"\r\n")):
            path = self.file("both.pem", content)
            self.assertEqual((self.leaf,), load_key_and_chain(TLS(path, path)).chain)

    def test_traditional_key_formats(self) -> None:
        """Keys in the older formats of OpenSSL are fine."""
        pem = self.identity.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        self.assertEqual((self.leaf,), load_key_and_chain(TLS(self.file("old.pem", pem), self.cert)).chain)

    def test_key_problems(self) -> None:
        """Each key that can't be used is one line that names its file."""
        foreign = key_pem(generate_private_key(SECP256R1()))
        x25519 = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        ed25519 = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        traditional = generate_rsa_key(65537, 2048).private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        )
        old_encrypted = traditional.replace(
            b"KEY-----\n",
            b"KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n",
            1,
        )
        for content, problem in (
            (b"", "holds no private key in PEM format"),
            (b"\xff\x00", "holds no private key in PEM format"),
            (certificates_pem(self.leaf), "holds no private key in PEM format"),
            (key_pem(self.identity.key, b"pass phrase"), "is encrypted; it must be unencrypted PEM"),
            (old_encrypted, "is encrypted; it must be unencrypted PEM"),
            (x25519, "is of a kind that TLS can't use"),
            (foreign, f"does not fit the certificate in {self.cert}"),
            (ed25519, f"does not fit the certificate in {self.cert}"),
        ):
            path = self.file("other-key.pem", content)
            self.assert_problem(problem, TLS(path, self.cert))
            self.assert_problem(path, TLS(path, self.cert))

    def test_certificate_problems(self) -> None:
        """Each certificate file that can't be used is one line that names it."""
        stranger = certificates_pem(self_signed("stranger").certificate)
        leaf = certificates_pem(self.leaf)
        above = certificates_pem(self.intermediate.certificate)
        for content, problem in (
            (b"", "holds no certificate in PEM format"),
            (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds no certificate in PEM format"),
            (key_pem(self.identity.key), "holds no certificate in PEM format"),
            (stranger, "does not fit the certificate"),
            (above + leaf, "must begin with the host certificate, but the private key in"),
            (above + leaf, "fits certificate number 2"),
            (leaf + stranger, "is out of order: 'CN=stranger' did not issue 'CN=host' before it"),
            (leaf + certificates_pem(self.root) + above, "is out of order: 'CN=Root' did not issue 'CN=host'"),
        ):
            path = self.file("other-cert.pem", content)
            self.assert_problem(problem, TLS(self.key, path))
            self.assert_problem(path, TLS(self.key, path))

    def test_unknown_kind_of_certificate(self) -> None:
        """A certificate whose kind of key is unknown fits no key."""
        prime256v1, unknown = bytes.fromhex("06082a8648ce3d030107"), bytes.fromhex("06082a8648ce3d03017f")
        der = self.leaf.public_bytes(Encoding.DER).replace(prime256v1, unknown)
        path = self.file("unknown.pem", certificates_pem(load_der_x509_certificate(der)))
        self.assert_problem("does not fit the certificate", TLS(self.key, path))

    def test_extra_chain_problems(self) -> None:
        """An extra chain that does not go on from the certificate is named, and so is one that is missing."""
        extra = self.file("extra.pem", certificates_pem(self.root))
        missing = os.path.join(self.directory, "missing.pem")
        self.assert_problem(f"The chain in {extra} is out of order", TLS(self.key, self.cert, extra))
        self.assert_problem(f"The certificate file {missing} can't be read", TLS(self.key, self.cert, missing))

    def test_issuer_of_the_same_name(self) -> None:
        """An issuer is known by its signature, not by its name."""
        namesake = certificates_pem(Authority("Intermediate").certificate)
        path = self.file("namesake.pem", certificates_pem(self.leaf) + namesake)
        self.assert_problem("is out of order", TLS(self.key, path))

    def test_unreadable_files(self) -> None:
        """What the system says about a file is part of the line."""
        missing = os.path.join(self.directory, "missing.pem")
        for tls, problem in (
            (TLS(missing, self.cert), f"The private key file {missing} can't be read: No such file or directory."),
            (TLS(self.directory, self.cert), f"The private key file {self.directory} can't be read: Is a directory."),
            (TLS(self.key, missing), f"The certificate file {missing} can't be read: No such file or directory."),
        ):
            self.assert_problem(problem, tls)

    def test_forbidden_file(self) -> None:
        """A key that the service's user may not read is one line as well."""

        def forbidden(path: str, mode: str) -> None:
            raise PermissionError(13, "Permission denied", path)

        self.patch(builtins, "open", forbidden)
        problem = f"The private key file {self.key} can't be read: Permission denied."
        self.assert_problem(problem, TLS(self.key, self.cert))
