"""
Signatures by private keys, of which the public ones are known here.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from webhookrx.senders.signatures.pieces import Context, feed
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.senders.signatures.signed_text import SignedText
from webhookrx.yield_point import run_unlocked


class PublicKeys:
    """
    Signatures by private keys, of which we have the public ones: ECDSA over DER, RSA by PKCS #1 version 1.5, and
    Ed25519, which takes all of the text at once.

    @param keys: name and key of each, as of L{public_key}.
    """

    __slots__ = ("_check", "_digest", "_keys", "names", "size", "takes_pieces")

    def __init__(self, algorithm: str, keys: Sequence[tuple[str, Any]]) -> None:
        self.names: Sequence[str] = [name for name, _ in keys]
        self._keys = [key for _, key in keys]
        kind, _, self._digest = algorithm.partition("-")
        self.takes_pieces = bool(self._digest)
        self.size = 0 if self._digest else 64
        self._check = _checker(kind, self._digest)

    def begin(self, text: SignedText, request: SignedRequest) -> list[Context] | None:
        """See L{Algorithm.begin}."""
        before = text.before(request)
        if before is None:
            return None
        context: Context = hashlib.new(self._digest) if self._digest else _Text()
        feed((context,), before)
        return [context]

    def end(
        self, contexts: list[Context], text: SignedText, request: SignedRequest, signatures: Sequence[bytes]
    ) -> str | None:
        """See L{Algorithm.end}."""
        after = text.after(request)
        if after is None:
            return None
        (context,) = contexts
        feed(contexts, after)
        digest = context.digest()
        for name, key in zip(self.names, self._keys, strict=True):
            for signature in signatures:
                if self._check(key, signature, digest):
                    return name
        return None


class _Text:
    """All of a text, in place of a digest of it."""

    __slots__ = ("_text",)

    def __init__(self) -> None:
        self._text = io.BytesIO()

    def update(self, data: bytes | memoryview, /) -> object:
        """See L{Context.update}."""
        return self._text.write(data)

    def digest(self) -> bytes:
        """Return the text itself."""
        return self._text.getvalue()


@lru_cache
def _checker(kind: str, digest: str) -> Callable[[Any, bytes, bytes], bool]:
    """
    Return what tells whether a key made a signature of a digest, or of a text.

    @param kind: C{ed25519}, C{ecdsa} or C{rsa}.
    """
    # See public_key() for why it is imported here.
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

    arguments: tuple[Any, ...] = ()
    if kind != "ed25519":
        prehashed = Prehashed(getattr(hashes, digest.upper())())
        arguments = (ECDSA(prehashed),) if kind == "ecdsa" else (PKCS1v15(), prehashed)

    def check(key: Any, signature: bytes, signed: bytes) -> bool:
        try:
            run_unlocked(len(signed), key.verify, signature, signed, *arguments)
        except (InvalidSignature, UnsupportedAlgorithm, ValueError):
            # The last but one where a policy of the system has no SHA-1.
            return False
        return True

    return check


def is_signed_by(key: Any, algorithm: str, signature: bytes, text: bytes) -> bool:
    """
    Tell whether a signature of a text is by a key.

    @param key: a public key of C{cryptography} of the right kind.
    @param algorithm: such as C{rsa-sha256}; with a digest.
    """
    kind, _, digest = algorithm.partition("-")
    context = hashlib.new(digest)
    feed((context,), text)
    return _checker(kind, digest)(key, signature, context.digest())
