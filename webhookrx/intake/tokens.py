"""
The token that a sender must show: C{Authorization: <any one scheme word> <token>}.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import Final

# RFC 9110 section 11.4: a scheme is a token of section 5.6.2. One space and no other: "exactly two words".
_CREDENTIALS: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ ([^\x00-\x20\x7f]+)")
_NEVER_SENT: Final = re.compile(rb"[\x00-\x20\x7f]")


def parse_token_file(text: str) -> list[bytes]:
    """
    Read tokens, one a line. Blank lines and lines that begin with C{#} are skipped, white space around is stripped.

    @param text: what the file holds; C{surrogateescape} keeps bytes that are not UTF-8.
    @return: the tokens in the order of the file; see L{check_token} for what is wrong with one.
    """
    lines = (line.strip() for line in text.removeprefix("\ufeff").split("\n"))
    return [line.encode("utf-8", "surrogateescape") for line in lines if line and not line.startswith("#")]


def check_token(token: bytes | str) -> str | None:
    """
    Say why no request could ever show this token.

    @return: one sentence that does not quote it, or None when it can be used.
    """
    raw = token.encode("utf-8", "surrogateescape") if isinstance(token, str) else token
    if not raw:
        return "The token is empty."
    if _NEVER_SENT.search(raw):
        return "The token holds white space or control characters, so no request can ever match it."
    return None


class TokenCheck:
    """
    Compares what a request shows with all tokens that are accepted.

    Tokens are kept only as digests under a key that lives as long as this object. Two digests are of one length
    whatever a sender tries, so neither the length of a token nor how much of it was right shows in the time taken.

    @param tokens: all that are accepted; empty: no token is required.
    """

    __slots__ = ("_digests", "_hash")

    def __init__(self, tokens: Sequence[bytes]) -> None:
        # A copy of it costs half as much as another one, which would have to take the key in first.
        self._hash = hashlib.blake2b(digest_size=32, key=secrets.token_bytes(32))
        self._digests = tuple(self._digest(token) for token in tokens)

    def accepts(self, authorization: Sequence[bytes]) -> bool:
        """
        Say whether a request may come in.

        @param authorization: the values of all its C{Authorization} lines; two are refused even when both are right.
        """
        if not self._digests:
            return True
        if len(authorization) != 1:
            return False
        credentials = _CREDENTIALS.fullmatch(authorization[0])
        if credentials is None:
            return False
        shown = self._digest(credentials[1])
        accepted = False
        # All of them, every time: an early exit would tell which one matched.
        for digest in self._digests:
            accepted |= hmac.compare_digest(shown, digest)
        return accepted

    def __repr__(self) -> str:
        return f"<TokenCheck of {len(self._digests)} tokens>"

    def _digest(self, token: bytes) -> bytes:
        copy = self._hash.copy()
        copy.update(token)
        return copy.digest()
