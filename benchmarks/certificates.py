"""
Self-signed certificates for servers on the loopback address, made once for each run of the benchmarks.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

KINDS = ("ecdsa", "rsa")
"""P-256, and 2048 bits."""


@cache
def files(kind: str) -> tuple[str, str]:
    """Return the paths of a key and its certificate; they are gone when this process ends."""
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    if kind == "ecdsa":
        key = ec.generate_private_key(ec.SECP256R1())
    else:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=7))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, SHA256())
    )
    directory = tempfile.mkdtemp(prefix="webhookrx-certificates-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    key_file, certificate_file = os.path.join(directory, "key.pem"), os.path.join(directory, "cert.pem")
    with open(key_file, "wb") as file:
        os.chmod(key_file, 0o600)
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with open(certificate_file, "wb") as file:
        file.write(certificate.public_bytes(Encoding.PEM))
    return key_file, certificate_file
