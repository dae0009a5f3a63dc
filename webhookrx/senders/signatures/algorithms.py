"""
The algorithms of signatures, each with all keys of one scheme made ready once.

What is signed goes into contexts, the body in as many pieces as it comes in. All keys are tried with all signatures, in
constant time; the first that fits ends it, and a failure does not tell which was near.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from hmac import compare_digest
from typing import Any, Final, Protocol

from webhookrx.senders.signatures.key_forms import key_bytes, public_key
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.pieces import Context, feed
from webhookrx.senders.signatures.public_keys import PublicKeys
from webhookrx.senders.signatures.scheme import (
    DIGEST_ALGORITHMS,
    MAC_ALGORITHMS,
    PUBLIC_KEY_ALGORITHMS,
    SignatureScheme,
)
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.senders.signatures.signed_text import SignedText


class Algorithm(Protocol):
    """
    All keys of a scheme.

    @ivar names: those of the secrets that are keys, in their order.
    @ivar size: bytes of a signature; 0 when they differ.
    @ivar takes_pieces: whether contexts work on a piece of the body at once, rather than keep it.
    """

    names: Sequence[str]
    size: int
    takes_pieces: bool

    def begin(self, text: SignedText, request: SignedRequest) -> list[Context] | None:
        """Return contexts that have had what is signed before the body; None when the request lacks a part of it."""

    def end(
        self, contexts: list[Context], text: SignedText, request: SignedRequest, signatures: Sequence[bytes]
    ) -> str | None:
        """Return the name of the key that one of the signatures is by; None when there is none."""


class Mac:
    """
    HMAC (RFC 2104): for each key the two digests that have had it. To copy them takes half the time of C{hmac.digest},
    which looks the digest up each time.

    @param keys: name and bytes of each.
    """

    __slots__ = ("_inner", "_outer", "names", "size", "takes_pieces")

    def __init__(self, name: str, keys: Sequence[tuple[str, bytes]]) -> None:
        new = partial(hashlib.new, name.removeprefix("hmac-"))
        self.names: Sequence[str] = [key_name for key_name, _ in keys]
        self.size = new().digest_size
        self.takes_pieces = True
        halves = [_padded(key, new) for _, key in keys]
        self._inner = [inner for inner, _ in halves]
        self._outer = [outer for _, outer in halves]

    @property
    def halves(self) -> list[tuple[Any, Any]]:
        """The two digests of each key."""
        return list(zip(self._inner, self._outer, strict=True))

    def begin(self, text: SignedText, request: SignedRequest) -> list[Context] | None:
        """See L{Algorithm.begin}."""
        contexts = [inner.copy() for inner in self._inner]
        if text.begins_with_body:
            return contexts
        before = text.before(request)
        if before is None:
            return None
        feed(contexts, before)
        return contexts

    def end(
        self, contexts: list[Context], text: SignedText, request: SignedRequest, signatures: Sequence[bytes]
    ) -> str | None:
        """See L{Algorithm.end}."""
        after = b"" if text.ends_with_body else text.after(request)
        if after is None:
            return None
        for name, context, outer in zip(self.names, contexts, self._outer, strict=True):
            if after:
                feed((context,), after)
            whole = outer.copy()
            whole.update(context.digest())
            mac = whole.digest()
            for signature in signatures:
                if compare_digest(mac, signature):
                    return name
        return None

    def code(self, name: str, text: bytes) -> bytes:
        """Return the code that the key of that name makes of a text."""
        number = list(self.names).index(name)
        context, whole = self._inner[number].copy(), self._outer[number].copy()
        context.update(text)
        whole.update(context.digest())
        return whole.digest()  # type: ignore[no-any-return]  # of hashlib


class SecretDigest:
    """Plain digests of a text that holds the secret."""

    __slots__ = ("_keys", "_new", "names", "size", "takes_pieces")

    def __init__(self, name: str, keys: Sequence[tuple[str, bytes]]) -> None:
        self._new = partial(hashlib.new, name)
        self.names: Sequence[str] = [key_name for key_name, _ in keys]
        self.size = self._new().digest_size
        self.takes_pieces = True
        self._keys = [key for _, key in keys]

    def begin(self, text: SignedText, request: SignedRequest) -> list[Context] | None:
        """See L{Algorithm.begin}."""
        contexts: list[Context] = []
        for key in self._keys:
            request.secret = key
            before = text.before(request)
            if before is None:
                return None
            context = self._new()
            feed((context,), before)
            contexts.append(context)
        return contexts

    def end(
        self, contexts: list[Context], text: SignedText, request: SignedRequest, signatures: Sequence[bytes]
    ) -> str | None:
        """See L{Algorithm.end}."""
        for name, key, context in zip(self.names, self._keys, contexts, strict=True):
            request.secret = key
            after = text.after(request)
            if after is None:
                return None
            feed((context,), after)
            digest = context.digest()
            if any(compare_digest(digest, signature) for signature in signatures):
                return name
        return None


class SecretItself:
    """
    The secret as it is. Only digests of it are kept, under a key that lives as long as this object: two of them are of
    one length, so neither the length of a secret nor how much of it was right shows in the time that this takes.
    """

    __slots__ = ("_digests", "_hash", "names")

    def __init__(self, keys: Sequence[tuple[str, bytes]]) -> None:
        self._hash = hashlib.blake2b(digest_size=32, key=secrets.token_bytes(32))
        self.names = [name for name, _ in keys]
        self._digests = [self._digest(key) for _, key in keys]

    def find(self, shown: bytes) -> str | None:
        """Return the name of the secret that is shown; None when it is none."""
        digest = self._digest(shown)
        found = None
        # All of them, every time: an early exit would tell which one matched.
        for name, known in zip(self.names, self._digests, strict=True):
            if compare_digest(digest, known) and found is None:
                found = name
        return found

    def _digest(self, text: bytes) -> bytes:
        context = self._hash.copy()
        context.update(text)
        return context.digest()


def algorithm_with(
    scheme: SignatureScheme, named: Sequence[NamedSecret], *, strict: bool = False
) -> Algorithm | SecretItself:
    """
    Return the algorithm of a scheme with the keys that secrets are.

    @param strict: see L{key_bytes}.
    @raise SecretError: a secret can't be a key.
    """
    if scheme.algorithm in PUBLIC_KEY_ALGORITHMS:
        return PublicKeys(
            scheme.algorithm,
            [(each.name, public_key(each, scheme.key, scheme.algorithm, strict=strict)) for each in named],
        )
    keys = [(each.name, key_bytes(each, scheme.key, strict=strict)) for each in named]
    if scheme.algorithm in MAC_ALGORITHMS:
        return Mac(scheme.algorithm, keys)
    return SecretDigest(scheme.algorithm, keys) if scheme.algorithm in DIGEST_ALGORITHMS else SecretItself(keys)


def _padded(key: bytes, new: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the inner and the outer digest of RFC 2104 section 2, which have had the key."""
    block = new().block_size
    padded = (new(key).digest() if len(key) > block else key).ljust(block, b"\0")
    return new(padded.translate(_INNER)), new(padded.translate(_OUTER))


_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))
