"""
Built-in verifiers, for what no scheme can say: what they are given, and what they do. Each is a module beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, Protocol

import msgspec

from webhookrx.senders.signatures.compiled_scheme import CompiledScheme
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.signed_request import Settings, SignedRequest

WITHOUT_SECRETS: Final = frozenset({"paypal", "sns"})
"""Those whose keys are never among the secrets of a source."""


class KeySource(Protocol):
    """
    Where public keys of senders come from. It answers at once, with what is there.

    @ivar files: the contents of the files that the operator gives.
    """

    files: Sequence[bytes]

    def fetched(self, url: str) -> bytes:
        """
        Return what is at a URL. Its host was checked by who asks, as a whole.

        @raise KeyUnavailable: it has not been fetched, which may begin now, or nothing is ever fetched.
        """


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
