"""
Signs the samples of a sender anew, with what its data file says: C{python -m tests.senders.sign_samples ID}.

Headers that have a signature get another one, by the first secret, and its moment becomes L{NOW}. A sample without
a signature stays so, and nothing else of a sample changes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.senders.test_signed_samples import DATA, read
from webhookrx.commands.sample_signatures import judged_when_signed, verifier_of
from webhookrx.errors import SIGNATURE_MISSING
from webhookrx.senders.definition import SenderDefinition, SignedWith
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.http_file import read_http_file
from webhookrx.senders.signatures.named_secrets import read_secrets
from webhookrx.senders.signatures.outcome import Unverified
from webhookrx.senders.signatures.signing import Signed, sign
from webhookrx.senders.signatures.verifier import names_files

KEYS = Path(__file__).with_name("sample_keys")
"""Private keys in PEM, by the first word of the algorithm."""

NOW = 1_772_439_301_000_000_000
"""2 March 2026, 08:15:01 UTC, in nanoseconds since the epoch."""


def sign_sample(entry: SenderDefinition, signed_with: SignedWith, sample: str) -> bytes | None:
    """Return a sample with another signature; None when these secrets do not sign it."""
    verifier = verifier_of(entry, signed_with, read)
    data = read(sample)
    head, query, body = read_http_file(data)
    verdict = judged_when_signed(verifier, head, query, body)
    if isinstance(verdict, Unverified) and verdict.reason is SIGNATURE_MISSING:
        return None
    algorithm = verifier.ways[0].scheme.scheme.algorithm.partition("-")[0]
    key = KEYS / f"{algorithm}.pem"
    reader = read if names_files(entry) else None
    secret, *_ = read_secrets("\n".join(signed_with.secrets), reader)
    private_key = key.read_bytes() if key.exists() else b""
    return _with_headers(data, sign(verifier, secret, head, query, body, NOW, private_key=private_key))


def _with_headers(data: bytes, signed: Signed) -> bytes:
    for name, value in signed.headers.items():
        line = re.compile(rb"(?im)^(%b:[ \t]*)[^\r\n]*" % re.escape(name))
        data = line.sub(lambda match, value=value: match[1] + value, data, count=1)
    return data


def main() -> None:
    """Sign the samples of the senders that are named."""
    for entry in builtin_definitions():
        if entry.id not in sys.argv[1:]:
            continue
        for sample in entry.samples:
            made = (sign_sample(entry, signed_with, sample) for signed_with in entry.signing)
            data = next((each for each in made if each is not None), None)
            if data is not None:
                (DATA / sample).write_bytes(data)


if __name__ == "__main__":
    main()
