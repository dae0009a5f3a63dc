"""
Signatures of the samples of a sender's data file, held against what the file says that they are made with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from webhookrx.config.guards.context import KnownKeys
from webhookrx.diagnostics import Diagnostic, diagnose, quoted, quoted_short
from webhookrx.errors import SIGNATURE_MISSING, WebhookrxError
from webhookrx.guard.sender_fit import setting_value
from webhookrx.intake.head import Head
from webhookrx.senders.definition import SenderDefinition, SignedWith
from webhookrx.senders.http_file import read_http_file
from webhookrx.senders.signatures.named_secrets import SecretError, read_secrets
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.verifier import Verifier, names_files

SAMPLE_UNPROVED: Final = "sample-unproved"
NO_SIGNED_SAMPLE: Final = "no-signed-sample"

_SECOND: Final = 1_000_000_000


def check_signatures(
    definition: SenderDefinition, samples: Mapping[int, bytes], read: Callable[[str], bytes]
) -> Iterator[Diagnostic]:
    """
    Yield what is wrong with the signatures of samples.

    @param samples: those that can be read, each by its number in the definition.
    @param read: returns the bytes of a file that the definition names; it may raise L{WebhookrxError}.
    """
    if not definition.schemes:
        return
    verifiers = []
    for number, signed_with in enumerate(definition.signing):
        try:
            verifiers.append(verifier_of(definition, signed_with, read))
        except (SecretError, ValueError, WebhookrxError) as error:
            several = isinstance(definition.signed_with, tuple)
            yield diagnose(SAMPLE_UNPROVED, ("signed_with", number) if several else ("signed_with",), str(error))
    proved = False
    for number, recorded in samples.items():
        head, query, body = read_http_file(recorded)
        verdicts = [judged_when_signed(verifier, head, query, body) for verifier in verifiers]
        if any(isinstance(verdict, Verified) for verdict in verdicts):
            proved = True
            continue
        wrong = [each for each in verdicts if isinstance(each, Unverified) and each.reason is not SIGNATURE_MISSING]
        if wrong:
            sentence = f"The request in {quoted(definition.samples[number])} can't be verified: {wrong[0].detail}"
            yield diagnose(SAMPLE_UNPROVED, ("samples", number), sentence)
            proved = True
    if not proved:
        sentence = "No sample is signed by what signed_with has, so nothing shows that verify is as it should be."
        yield diagnose(NO_SIGNED_SAMPLE, ("verify",), sentence)


def verifier_of(definition: SenderDefinition, signed_with: SignedWith, read: Callable[[str], bytes]) -> Verifier:
    """
    Return what checks the requests that are signed so.

    @raise SecretError: nothing can be checked with it.
    @raise ValueError: a setting has a value that it can't have.
    """
    secrets = []
    if signed_with.secrets:
        reader = read if names_files(definition) else None
        secrets = read_secrets("\n".join(signed_with.secrets), reader)
    settings = {}
    for name, value in signed_with.settings.items():
        if name not in definition.settings:
            raise ValueError(f"There is no {quoted_short(name)} among the settings.")
        settings[name] = setting_value(definition.settings[name], (value,) if isinstance(value, str) else value)
    keys = KnownKeys(files=[read(path) for path in signed_with.keys])
    return Verifier(definition, secrets, public_url=signed_with.public_url, settings=settings, keys=keys)


def judged_when_signed(
    verifier: Verifier, head: Head, query: Mapping[str, str | list[str]], body: bytes
) -> Verified | Unverified:
    """Judge a request at the moment of its signature."""
    verdict = verifier.begin(head, query).finish(body, 0)
    skew = verdict.skew
    if isinstance(verdict, Unverified) and skew is not None:
        return verifier.begin(head, query).finish(body, round(-skew * _SECOND))
    return verdict
