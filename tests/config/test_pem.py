"""
Tests for L{webhookrx.config.pem}.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import NOW
from tests.system.certificates import (
    Authority,
    Identity,
    certificates_pem,
    key_pem,
    self_signed,
    write,
    write_ca_file,
    write_hashed_directory,
)
from webhookrx.config.files import Snapshot
from webhookrx.config.pem import check_cert_file, check_tls_files, contents_of, load_key_and_chain, load_trust
from webhookrx.diagnostics import ERROR, WARNING, Diagnostic
from webhookrx.errors import ConfigError
from webhookrx.settings import TLS, Listener, Source

ROOT = Authority("root")
INTERMEDIATE = Authority("intermediate", ROOT)
HOST = INTERMEDIATE.issue("host")
OTHER = self_signed("other")


class CheckTLSFilesTests(SynchronousTestCase):
    """
    Tests for L{check_tls_files}.
    """

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.mkdir(self.directory)
        self.key_file, self.cert_file = HOST.write(self.directory, "host")
        os.chmod(self.key_file, 0o600)

    def path(self, name: str, content: bytes, mode: int = 0o600) -> str:
        """Write a file and return its path."""
        path = write(os.path.join(self.directory, name), content)
        os.chmod(path, mode)
        return path

    def check(self, **changes: object) -> list[Diagnostic]:
        """Check the good pair with some fields changed."""
        files = {"key_file": self.key_file, "cert_file": self.cert_file, **changes}
        return check_tls_files(TLS(**files), NOW, Snapshot())  # type: ignore[arg-type]

    def assert_error(self, fragment: str, role: str, **changes: object) -> None:
        """One error of one line, which blames that role."""
        (found,) = self.check(**changes)
        self.assertEqual((role, ERROR), (found.field, found.severity))
        self.assertIn(fragment, found.sentence)
        self.assertTrue(found.sentence.isprintable())

    def assert_warning(self, fragment: str, role: str, **changes: object) -> None:
        """One warning, which blames that role."""
        (found,) = self.check(**changes)
        self.assertEqual((role, WARNING), (found.field, found.severity))
        self.assertIn(fragment, found.sentence)

    def test_both_missing(self) -> None:
        """A key and a certificate that are both missing are both said."""
        problems = [str(each.sentence) for each in self.check(key_file="/no/key", cert_file="/no/cert")]
        self.assertEqual(['"/no/key" does not exist.', '"/no/cert" does not exist.'], problems)

    def test_good(self) -> None:
        """A key with its chain, in two files or three, with trust of any kind, is good."""
        leaf = self.path("leaf.pem", certificates_pem(HOST.certificate))
        rest = self.path("rest.pem", certificates_pem(*HOST.intermediates, ROOT.certificate))
        ca_file = write_ca_file(self.directory, "ca", ROOT, INTERMEDIATE)
        ca_dir = write_hashed_directory(os.path.join(self.directory, "hashed"), ROOT)
        self.assertEqual([], self.check())
        self.assertEqual([], self.check(cert_file=leaf))
        self.assertEqual([], self.check(cert_file=leaf, extra_chain_file=rest))
        self.assertEqual([], self.check(peer_verify=True, ca_file=ca_file, ca_dir=ca_dir, system_store=True))

    def test_one_file(self) -> None:
        """Key and certificate may be in one file, in either order, with Windows line ends and text between them."""
        key, certificate = key_pem(HOST.key), certificates_pem(HOST.certificate)
        for content in (
            key + certificate,
            certificate + key,
            b"Bag Attributes\n" + key + b"issuer=x\n" + certificate,
            (key + certificate).replace(b"\n", b"\r\n"),
            b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + key + certificate,
        ):
            both = self.path("both.pem", content)
            self.assertEqual([], self.check(key_file=both, cert_file=both), content)

    def test_unusable_file(self) -> None:
        """A missing, empty or wrong file is an error for each role."""
        missing = os.path.join(self.directory, "missing")
        empty = self.path("empty", b"\n")
        text = self.path("text", b"no PEM\n")
        for role in ("key_file", "cert_file", "extra_chain_file", "ca_file"):
            self.assert_error(f'{missing}" does not exist', role, **{role: missing})
            self.assert_error("is a directory", role, **{role: self.directory})
            self.assert_error(f'{empty}" is empty', role, **{role: empty})
            self.assert_error("in PEM format", role, **{role: text})

    def test_codes(self) -> None:
        """Each mistake has its code."""
        encrypted = self.path("encrypted", key_pem(HOST.key, b"pass phrase"))
        reversed_chain = self.path("reversed", certificates_pem(INTERMEDIATE.certificate, HOST.certificate))
        other = self.path("other", key_pem(OTHER.key))
        short = rsa.generate_private_key(65537, 1024)
        pem = short.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        for changes, code in (
            ({"key_file": "/no/key"}, "tls-file-missing"),
            ({"cert_file": "/no/cert"}, "tls-file-missing"),
            ({"key_file": self.directory}, "tls-file-unreadable"),
            ({"key_file": f"{self.key_file}/below"}, "tls-file-missing"),
            ({"key_file": self.path("empty", b"")}, "tls-file-not-pem"),
            ({"cert_file": self.key_file}, "tls-file-not-pem"),
            ({"key_file": encrypted}, "key-encrypted"),
            ({"key_file": other}, "key-mismatch"),
            ({"key_file": self.path("short", pem)}, "key-unusable"),
            ({"cert_file": reversed_chain}, "chain-order"),
            ({"ca_dir": self.cert_file}, "tls-file-unreadable"),
            ({"ca_dir": self.mktemp()}, "tls-file-missing"),
            ({"key_file": "a\0b"}, "tls-file-missing"),
            ({"key_file": "k" * 5000}, "tls-file-unreadable"),
        ):
            self.assertEqual([code], [each.code for each in self.check(**changes)], changes)
        os.mkdir(empty := self.mktemp())
        self.assertEqual(["bad-ca-directory"], [each.code for each in self.check(ca_dir=empty)])
        os.chmod(self.key_file, 0o644)
        self.assertEqual(["key-file-open"], [each.code for each in self.check()])

    def test_der(self) -> None:
        """What looks like DER can be converted, and the error says by which command."""
        der = HOST.certificate.public_bytes(Encoding.DER)
        cert_file = self.path("cert.der", der)
        self.assert_error(
            f"it looks like DER, convert it: openssl x509 -inform DER -in {cert_file} -out", "cert_file",
            cert_file=cert_file,
        )  # fmt: skip
        for key, kind in (
            (HOST.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), "EC"),
            (HOST.key.private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption()), "EC, as of old"),
            (
                ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
                "Ed25519, which is short",
            ),
            (
                rsa.generate_private_key(65537, 2048).private_bytes(
                    Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption()
                ),
                "RSA",
            ),
        ):
            key_file = self.path("key.der", key)
            self.assertIn(f"openssl pkey -inform DER -in {key_file}", self.check(key_file=key_file)[0].sentence, kind)
        self.assertNotIn("DER", self.check(cert_file=self.path("text", b"0 is no DER"))[0].sentence)

    def test_swapped(self) -> None:
        """A key where the certificate belongs, and the other way round, holds not what is needed."""
        self.assert_error("holds no private key", "key_file", key_file=self.cert_file)
        self.assert_error("holds no certificate", "cert_file", cert_file=self.key_file)

    def test_damaged(self) -> None:
        """PEM with a piece missing is an error."""
        key = self.path("key", key_pem(HOST.key)[:80] + b"\n-----END PRIVATE KEY-----\n")
        self.assert_error("holds no private key in PEM format that can be read", "key_file", key_file=key)
        content = certificates_pem(HOST.certificate)
        self.assert_error("is damaged", "cert_file", cert_file=self.path("c1", content[:200]))
        cut = content[:300] + b"\n-----END CERTIFICATE-----\n"
        self.assert_error("is damaged", "cert_file", cert_file=self.path("c2", cut))

    def test_encrypted_key(self) -> None:
        """An encrypted key is an error; nobody is asked for the pass phrase."""
        key = self.path("key", key_pem(HOST.key, b"pass phrase"))
        self.assert_error("is encrypted", "key_file", key_file=key)
        legacy = HOST.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        head, _, rest = legacy.partition(b"\n")
        headers = b"\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n"
        self.assert_error("is encrypted", "key_file", key_file=self.path("old", head + headers + rest))

    def test_keys_that_tls_refuses(self) -> None:
        """A kind of key that can't sign is an error, and so is an RSA key that OpenSSL finds too short."""
        exchange = x25519.X25519PrivateKey.generate()
        pem = exchange.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.assert_error("of a kind that TLS can't use", "key_file", key_file=self.path("x", pem))
        for bits, problem, role in (
            (1024, "1024 bits; TLS needs 2048", "key_file"),
            (2048, "does not match the certificate", "cert_file"),
        ):
            key = rsa.generate_private_key(65537, bits)
            pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            self.assert_error(problem, role, key_file=self.path("rsa", pem))

    def test_key_does_not_fit(self) -> None:
        """A key of another certificate is an error that names both files."""
        key_file = self.path("other", key_pem(OTHER.key))
        self.assert_error(f'{key_file}" does not match the certificate', "cert_file", key_file=key_file)

    def test_wrong_order(self) -> None:
        """A chain that does not begin with the host, or whose links do not follow each other, is an error."""
        host, intermediate, root = (
            HOST.certificate,
            INTERMEDIATE.certificate,
            ROOT.certificate,
        )
        reversed_chain = self.path("a", certificates_pem(root, intermediate, host))
        self.assert_error("matches certificate 3 of", "cert_file", cert_file=reversed_chain)
        swapped = self.path("b", certificates_pem(host, root, intermediate))
        self.assert_error("certificate 2 of", "cert_file", cert_file=swapped)
        self.assert_error("did not sign certificate 1", "cert_file", cert_file=swapped)
        stranger = self.path("c", certificates_pem(OTHER.certificate))
        self.assert_error("did not sign certificate 2", "extra_chain_file", extra_chain_file=stranger)

    def test_without_key(self) -> None:
        """A certificate whose key is not at hand is judged by itself: PEM, order, and dates."""
        swapped = self.path("b", certificates_pem(HOST.certificate, ROOT.certificate, INTERMEDIATE.certificate))
        old = self.path("o", certificates_pem(ROOT.issue("host", not_after=NOW - timedelta(days=1)).certificate))
        for path, codes in (
            (self.cert_file, []),
            (swapped, ["chain-order"]),
            (old, ["certificate-expired"]),
            (self.path("g", b"garbage"), ["tls-file-not-pem"]),
            (os.path.join(self.directory, "none"), ["tls-file-missing"]),
        ):
            found = check_cert_file(path, NOW, Snapshot())
            self.assertEqual([(code, path) for code in codes], [(each.code, each.named) for each in found])

    def test_dates(self) -> None:
        """A certificate that is out of its time, or nearly, is a warning: it may be renewed while we run."""
        day = timedelta(days=1)
        cases = {
            "has expired on 2026-11-19": (NOW - 9 * day, NOW - day),
            "is not valid before 2026-11-21": (NOW + day, NOW + 99 * day),
            "expires on 2026-12-19 12:00 UTC, in 29 days": (NOW - day, NOW + 29 * day),
        }
        for fragment, (begin, end) in cases.items():
            identity = ROOT.issue("host", not_before=begin, not_after=end)
            key_file, cert_file = self.write(identity)
            self.assert_warning(fragment, "cert_file", key_file=key_file, cert_file=cert_file)
            ca_file = self.path("ca", certificates_pem(identity.certificate))
            self.assert_warning(fragment, "ca_file", peer_verify=True, ca_file=ca_file)
        key_file, cert_file = self.write(ROOT.issue("host", not_after=NOW + 31 * day))
        self.assertEqual([], self.check(key_file=key_file, cert_file=cert_file))

    def write(self, identity: Identity) -> tuple[str, str]:
        """Write an identity and return its two paths."""
        key_file, cert_file = identity.write(self.directory, "dated")
        os.chmod(key_file, 0o600)
        return key_file, cert_file

    def test_open_key_file(self) -> None:
        """A key that every user can read is a warning, one that a group can read is none."""
        os.chmod(self.key_file, 0o644)
        self.assert_warning("by every user", "key_file")
        os.chmod(self.key_file, 0o640)
        self.assertEqual([], self.check())

    def test_ca_directory(self) -> None:
        """A CA directory that is missing, none, empty, or without hashed names is an error that names the remedy."""
        directory = os.path.join(self.directory, "ca")
        self.assert_error("does not exist", "ca_dir", ca_dir=directory)
        self.assert_error("is not a directory", "ca_dir", ca_dir=self.cert_file)
        os.mkdir(directory)
        self.assert_error("is empty", "ca_dir", ca_dir=directory)
        write_ca_file(directory, "root", ROOT)
        self.assert_error(f"run: openssl rehash {directory}", "ca_dir", ca_dir=directory)
        write_hashed_directory(directory, ROOT)
        self.assertEqual([], self.check(ca_dir=directory))
        write(os.path.join(directory, "01234567.0"), b"no PEM")
        self.assert_error('01234567.0" holds no certificate', "ca_dir", ca_dir=directory)

    def test_all_at_once(self) -> None:
        """Pair, CA file and CA directory are each looked at, whatever is wrong with the others."""
        found = self.check(key_file="/no/key", ca_file="/no/ca", ca_dir="/no/dir")
        self.assertEqual(["key_file", "ca_file", "ca_dir"], [each.field for each in found])

    def test_unknown_key_in_certificate(self) -> None:
        """A certificate whose kind of key nobody here knows does not fit, and is no crash."""
        content = HOST.certificate.public_bytes(Encoding.DER)
        # The OID of EC public keys (RFC 5480, 1.2.840.10045.2.1) becomes one that nobody has given out.
        changed = content.replace(bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06072a8648ce3d027f"))
        self.assertNotEqual(content, changed)
        self.assert_error("does not match", "cert_file", cert_file=self.path("odd", _pem(changed)))

    def test_key_sizes_of_curves(self) -> None:
        """Other curves than the usual one are as good."""
        identity = Identity(ec.generate_private_key(ec.SECP384R1()), HOST.certificate)
        self.assert_error("does not match", "cert_file", key_file=self.write(identity)[0])


def _pem(der: bytes) -> bytes:
    from base64 import encodebytes

    return b"-----BEGIN CERTIFICATE-----\n" + encodebytes(der) + b"-----END CERTIFICATE-----\n"


class LoadTests(CheckTLSFilesTests):
    """
    Tests for L{load_key_and_chain} and L{load_trust}: the same checks, when files are read to be used.
    """

    def check(self, **changes: object) -> list[Diagnostic]:
        """Check as at start, and see that what is fatal there can't be loaded either."""
        found = super().check(**changes)
        tls = TLS(**{"key_file": self.key_file, "cert_file": self.cert_file, **changes})  # type: ignore[arg-type]
        fatal = {each.sentence: each.field for each in found if each.severity == ERROR}
        for load, is_trust in ((load_key_and_chain, False), (load_trust, True)):
            expected = [problem for problem, role in fatal.items() if role.startswith("ca_") is is_trust]
            if expected:
                error = self.assertRaises(ConfigError, load, tls)
                self.assertEqual(expected[0], str(error))
            else:
                load(tls)
        return found

    def test_as_checked(self) -> None:
        """What was in the files when they were checked is what is loaded, though all of them have changed or gone."""
        ca_file = write_ca_file(self.directory, "ca", ROOT)
        ca_dir = write_hashed_directory(os.path.join(self.directory, "hashed"), ROOT)
        chain_file = self.path("chain.pem", certificates_pem(INTERMEDIATE.certificate, ROOT.certificate))
        tls = TLS(self.key_file, self.cert_file, chain_file, peer_verify=True, ca_file=ca_file, ca_dir=ca_dir)
        alone = self.path("alone.pem", certificates_pem(HOST.certificate))
        tls = replace(tls, cert_file=alone)
        files = Snapshot()
        self.assertEqual([], [each for each in check_tls_files(tls, NOW, files) if each.severity == ERROR])
        source = Source(listeners=(Listener("1", "tcp:1", tls=tls), Listener("2", "tcp:2")))
        known = contents_of([source], files)
        (hashed,) = (os.path.join(ca_dir, name) for name in os.listdir(ca_dir))
        self.assertEqual({self.key_file, alone, chain_file, ca_file, hashed}, set(known))
        for path in (self.key_file, alone, ca_file):
            write(path, b"junk")
        os.remove(chain_file)
        os.remove(hashed)
        write_hashed_directory(ca_dir, INTERMEDIATE)
        key, chain = load_key_and_chain(tls, known)
        self.assertEqual(HOST.key.public_key(), key.public_key())
        self.assertEqual([HOST.certificate, INTERMEDIATE.certificate, ROOT.certificate], chain)
        self.assertEqual(([ROOT.certificate], [ROOT.certificate]), load_trust(tls, known))
        self.assertRaises(ConfigError, load_key_and_chain, tls)

    def test_chain(self) -> None:
        """The chain is the certificate file's, then the extra file's; a file may hold the key too, and text."""
        above = [INTERMEDIATE.certificate, ROOT.certificate]
        whole = self.path("whole.pem", certificates_pem(HOST.certificate, *above))
        rest = self.path("rest.pem", b"Issuers:\r\n" + certificates_pem(*above).replace(b"\n", b"\r\n"))
        alone = self.path("alone.pem", certificates_pem(HOST.certificate) + key_pem(HOST.key))
        for tls in (TLS(self.key_file, whole), TLS(alone, alone, rest)):
            key, chain = load_key_and_chain(tls)
            self.assertEqual([HOST.certificate, *above], chain)
            self.assertEqual(HOST.key.public_key(), key.public_key())
