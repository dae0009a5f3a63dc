"""
Built-in verifiers, for what no scheme can say: what they are given, and what they do. Each is a module beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, Protocol

import msgspec

from webhookrx.senders.signatures.compiled_scheme import CompiledScheme
from webhookrx.senders.signatures.key_sets import PublishedKey, key_set
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.public_keys import is_signed_by
from webhookrx.senders.signatures.signed_request import Settings, SignedRequest

WITHOUT_SECRETS: Final = frozenset({"paypal", "sns"})
"""Those whose keys are never among the secrets of a source."""


class KeySource(Protocol):
    """
    Where public keys of senders come from. It answers at once, with what is there.

    @ivar files: the contents of the files that the operator gives.
    @ivar are_fetched: whether L{fetched} ever returns anything.
    """

    files: Sequence[bytes]
    are_fetched: bool

    def fetched(self, url: str) -> bytes:
        """
        Return what is at a URL. Its host was checked by who asks, as a whole.

        @raise KeyUnavailable: it has not been fetched, which may begin now, or nothing is ever fetched.
        """

    def renew(self, url: str) -> bool:
        """Ask for what is at a URL now, since what was fetched does not do; return whether it may come soon."""


class CodeOptions(msgspec.Struct, frozen=True):
    """
    What a built-in verifier is made of.

    @ivar secrets: those of the source but verify tokens.
    @ivar public_url: see L{SignedRequest}.
    @ivar keys: None: there are no keys but secrets.
    """

    compiled: CompiledScheme
    secrets: tuple[NamedSecret, ...]
    public_url: str
    settings: Settings
    keys: KeySource | None


class CodeVerifier(Protocol):
    """
    A built-in verifier with what it needs.

    @ivar names: those of the secrets that it uses, or of what else proves a request.
    """

    names: Sequence[str]

    def check(self, request: SignedRequest, now: int) -> Verified | Unverified:
        """
        Judge a request whose body is there; it raises nothing else, whatever the sender has written.

        @param now: nanoseconds since the epoch.
        @raise KeyUnavailable: the key is not there now.
        """

    def sign(self, name: str, request: SignedRequest, now: int) -> Mapping[bytes, bytes]:
        """
        Return the headers, by their lower-case names, that make a request one of the sender's.

        @raise SecretError: it can't be signed with what is there.
        """


def code_verifier(options: CodeOptions) -> CodeVerifier:
    """
    Make the built-in verifier of a scheme ready.

    @raise SecretError: it can't be used with these secrets or settings.
    """
    module = import_module(f"webhookrx.senders.signatures.{options.compiled.scheme.code}")
    make: Callable[[CodeOptions], CodeVerifier] = module.make
    return make(options)


def certificates_of(options: CodeOptions) -> KeySource:
    """
    Return where the certificates of a sender come from.

    @raise SecretError: from nowhere.
    """
    keys = options.keys
    if keys is None or not (keys.files or keys.are_fetched):
        raise SecretError("The certificates of this sender are in no file of signing_certs, and fetch_keys is off.")
    return keys


def is_certified(keys: KeySource, url: str, algorithm: str, signature: bytes, text: bytes, now: int) -> bool:
    """
    Tell whether a signature of a text is by a certificate that is valid now: one in a file, or else that at a URL.

    @param url: one that may be fetched.
    @param algorithm: such as C{rsa-sha256}.
    @param now: nanoseconds since the epoch.
    @raise KeyUnavailable: the latter is not there now.
    """

    def is_by(key: PublishedKey) -> bool:
        is_usable = algorithm.startswith(f"{key.kind}-") and key.is_valid(now)
        return is_usable and is_signed_by(key.key, algorithm, signature, text)

    if any(is_by(key) for data in keys.files for key in key_set(data)):
        return True
    # Of a chain, the first is that of the signer.
    return keys.are_fetched and any(is_by(key) for key in key_set(keys.fetched(url))[:1])
