"""
Tests for the signatures of samples in C{webhookrx/senders/data}: each is genuine, by secrets that are public, and
nobody else's check takes it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import cache

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.test_samples import DATA
from webhookrx.commands.sample_signatures import check_signatures, judged_when_signed, verifier_of
from webhookrx.errors import SIGNATURE_MISSING
from webhookrx.intake.head import Head
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.http_file import read_http_file
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.scheme import PUBLIC_KEY_ALGORITHMS, SignatureScheme
from webhookrx.senders.signatures.verifier import Verifier, asks_for_secrets

SIGNING = [entry for entry in builtin_definitions() if entry.schemes]
"""The entries that say how their requests are verified."""

UNSIGNED = {
    "aws-sns-raw.http",
    "cloudflare-notifications-health-check.http",
    "grafana-firing.http",
    "grafana-legacy-paused.http",
    "grafana-legacy.http",
    "grafana-mixed.http",
    "grafana-resolved.http",
    "jira-comment-created.http",
    "jira-server-sprint-started.http",
    "microsoft-graph-validation.http",
    "sendgrid-bounce.http",
}
"""Samples of senders that sign only if they are told to, and questions that they do not sign."""


def read(name: str) -> bytes:
    """Return the bytes of a file that a definition names."""
    return (DATA / name).read_bytes()


def request_of(sample: str) -> tuple[Head, dict[str, str | list[str]], bytes]:
    """Return head, query and body of a sample."""
    return read_http_file(read(sample))


def verifiers_of(entry: SenderDefinition) -> list[Verifier]:
    """Return what checks the samples of an entry: one for each set of secrets that they are signed with."""
    return [verifier_of(entry, signed_with, read) for signed_with in entry.signing]


@cache
def other_public_key(algorithm: str) -> bytes:
    """Return a public key that nobody has the private one of, in PEM."""
    kind = algorithm.partition("-")[0]
    private = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
    }[kind]()
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def other_secret(scheme: SignatureScheme) -> NamedSecret:
    """Return a secret that a scheme takes, and that signed nothing."""
    if scheme.algorithm in PUBLIC_KEY_ALGORITHMS:
        value = other_public_key(scheme.algorithm)
        if scheme.key != "pem":
            base64 = b"".join(value.split(b"\n")[1:-2])
            value = {"base64": base64, "whpk": b"whpk_" + base64, "hex": b64decode(base64).hex().encode()}[scheme.key]
        return NamedSecret("other", value)
    key = b"another secret, of nobody"
    forms = {"base64": b64encode(key), "hex": key.hex().encode(), "whsec": b"whsec_" + b64encode(key)}
    is_hex = scheme.code == "adyen"
    return NamedSecret("other", forms["hex"] if is_hex else forms.get(scheme.key, key))


class SignedSampleTests(SynchronousTestCase):
    """Samples with signatures."""

    def test_all(self) -> None:
        """Each sample verifies by its own entry, unless it has no signature, which few have not."""
        self.assertGreaterEqual(len(SIGNING), 70)
        unsigned = set()
        for entry in SIGNING:
            verifiers = verifiers_of(entry)
            proved = 0
            for sample in entry.samples:
                verdicts = [judged_when_signed(verifier, *request_of(sample)) for verifier in verifiers]
                if any(isinstance(verdict, Verified) for verdict in verdicts):
                    proved += 1
                    continue
                reasons = {verdict.reason for verdict in verdicts if isinstance(verdict, Unverified)}
                self.assertEqual({SIGNATURE_MISSING}, reasons, sample)
                unsigned.add(sample.removeprefix("samples/"))
            self.assertTrue(proved, entry.id)
        self.assertLessEqual(unsigned, UNSIGNED)

    def test_checked(self) -> None:
        """The check of data files finds nothing wrong with them."""
        for entry in SIGNING:
            samples = {number: read(sample) for number, sample in enumerate(entry.samples)}
            self.assertEqual([], list(check_signatures(entry, samples, read)), entry.id)

    def test_each_set(self) -> None:
        """Each set of secrets that an entry says its samples are signed with verifies one of them."""
        for entry in SIGNING:
            for verifier in verifiers_of(entry):
                verdicts = [judged_when_signed(verifier, *request_of(sample)) for sample in entry.samples]
                self.assertTrue(any(isinstance(verdict, Verified) for verdict in verdicts), entry.id)

    def test_confusion(self) -> None:
        """No sample verifies by the scheme and the secrets of another entry."""
        requests = [
            (entry.id, sample, request_of(sample)) for entry in builtin_definitions() for sample in entry.samples
        ]
        taken = [
            (entry.id, sample)
            for entry in SIGNING
            for verifier in verifiers_of(entry)
            for own, sample, request in requests
            if own != entry.id and isinstance(judged_when_signed(verifier, *request), Verified)
        ]
        self.assertEqual([], taken)

    def test_other_secret(self) -> None:
        """No sample verifies by any entry with a secret that did not sign it."""
        requests = [(sample, request_of(sample)) for entry in builtin_definitions() for sample in entry.samples]
        for entry in SIGNING:
            for signed_with, scheme in ((each, scheme) for each in entry.signing for scheme in entry.schemes):
                alone = msgspec.structs.replace(scheme, setting="")
                other = msgspec.structs.replace(entry, verify=alone)
                if not asks_for_secrets(other):
                    continue
                verifier = Verifier(other, [other_secret(scheme)], public_url=signed_with.public_url)
                taken = [
                    sample
                    for sample, request in requests
                    if isinstance(judged_when_signed(verifier, *request), Verified)
                ]
                self.assertEqual([], taken, entry.id)

    def test_each_byte(self) -> None:
        """Where a signature binds the body, a sample with another one does not verify."""
        for entry in SIGNING:
            for verifier in verifiers_of(entry):
                if not verifier.binds_body:
                    continue
                for sample in entry.samples:
                    head, query, body = request_of(sample)
                    verdict = judged_when_signed(verifier, head, query, body + b" ")
                    self.assertIsInstance(verdict, Unverified, sample)
