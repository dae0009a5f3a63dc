"""
The tokens that a sender may show, each with a name for messages and logs; compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from webhookrx.intake.head import Head
from webhookrx.intake.named_lines import NamedLine, lines_in_use, named_lines
from webhookrx.intake.token_places import AUTHORIZATION, CREDENTIALS, TokenPlace

_NEVER_SENT: Final = re.compile(rb"[\x00-\x20\x7f]")
_DIGEST: Final = "sha256:"
_SHA256: Final = re.compile(r"[0-9A-Fa-f]{64}")
#: RFC 7617 section 2: no colon in the user, no control characters.
_USER_AND_PASSWORD: Final = re.compile(rb"[^\x00-\x1f\x7f:]+:[^\x00-\x1f\x7f]*")


def parse_token_file(text: str) -> list[bytes]:
    """
    Read tokens without names, one a line; see L{lines_in_use}.

    @param text: what the file holds; C{surrogateescape} keeps bytes that are not UTF-8.
    @return: the tokens in the order of the file; see L{check_token} for what is wrong with one.
    """
    return [line.encode("utf-8", "surrogateescape") for _, line in lines_in_use(text)]


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


class NamedToken(msgspec.Struct, frozen=True):
    """
    A token that is accepted.

    @ivar name: for messages, logs and metrics.
    @ivar value: the token, or C{user:password}; empty if only its digest is known.
    @ivar sha256: the SHA-256 of the value; empty if the value itself is known.
    """

    name: str
    value: bytes = b""
    sha256: bytes = b""

    def __repr__(self) -> str:
        return f"NamedToken({self.name!r}, ***)"


def read_tokens(text: str, place: TokenPlace = AUTHORIZATION) -> list[NamedToken]:
    """
    Read tokens, one a line: C{NAME = VALUE}, or a value alone; see L{named_lines}. A value may be C{sha256:HEX}, the
    digest of the token; at the place C{basic} it is C{user:password}, or the digest of that.

    @param text: what a file holds; C{surrogateescape} keeps bytes that are not UTF-8.
    @raise ValueError: a line can't be used. The text is one sentence that names the line and quotes no value.
    """
    return [_token_of(line, place) for line in named_lines(text)]


def _token_of(line: NamedLine, place: TokenPlace) -> NamedToken:
    if line.value.startswith(_DIGEST):
        digits = line.value.removeprefix(_DIGEST)
        if not _SHA256.fullmatch(digits):
            raise ValueError(f"Line {line.number}: after sha256: come 64 hexadecimal digits.")
        return NamedToken(line.name, sha256=bytes.fromhex(digits))
    value = line.value.encode("utf-8", "surrogateescape")
    if place.kind != "basic":
        problem = check_token(value)
    else:
        problem = None if _USER_AND_PASSWORD.fullmatch(value) else "It is no user:password, as basic wants it."
    if problem is not None:
        raise ValueError(f"Line {line.number}: {problem}")
    return NamedToken(line.name, value)


class TokenCheck:
    """
    Compares what a request shows with all tokens that are accepted.

    Tokens are kept only as digests under a key that lives as long as this object. Two digests are of one length
    whatever a sender tries, so neither the length of a token nor how much of it was right shows in the time taken.

    @param tokens: all that are accepted; empty: no token is required. Those without a name are called by their place
        in the sequence, from 1.
    @param place: where they stand.
    @ivar names: theirs, in their order.
    """

    __slots__ = ("_by_digest", "_hash", "_plain", "names", "place")

    def __init__(self, tokens: Sequence[bytes | NamedToken], place: TokenPlace = AUTHORIZATION) -> None:
        # A copy of it costs half as much as another one, which would have to take the key in first.
        self._hash = hashlib.blake2b(digest_size=32, key=secrets.token_bytes(32))
        named = [
            token if isinstance(token, NamedToken) else NamedToken(str(number), token)
            for number, token in enumerate(tokens, 1)
        ]
        self._plain = tuple((self._digest(token.value), token.name) for token in named if not token.sha256)
        self._by_digest = tuple((self._digest(token.sha256), token.name) for token in named if token.sha256)
        self.names = tuple(token.name for token in named)
        self.place = place

    def check(self, head: Head, groups: Mapping[str, str]) -> str | None:
        """
        Return the name of the token that a request shows.

        @param groups: of its path, decoded.
        @return: None if it shows none that is accepted, shows it twice, or if there are no tokens.
        """
        shown = self.place.shown(head, groups)
        return None if shown is None else self._name_of(shown)

    def accepts(self, authorization: Sequence[bytes]) -> bool:
        """
        Say whether a request may come in.

        @param authorization: the values of all its C{Authorization} lines; two are refused even when both are right.
        """
        if not (self._plain or self._by_digest):
            return True
        if len(authorization) != 1:
            return False
        credentials = CREDENTIALS.fullmatch(authorization[0])
        return credentials is not None and self._name_of(credentials[1]) is not None

    def __repr__(self) -> str:
        return f"<TokenCheck of {len(self._plain) + len(self._by_digest)} tokens>"

    def _name_of(self, shown: bytes) -> str | None:
        digest = self._digest(shown)
        found = None
        # All of them, every time: an early exit would tell which one matched.
        for accepted, name in self._plain:
            if hmac.compare_digest(digest, accepted) and found is None:
                found = name
        if self._by_digest:
            digest = self._digest(hashlib.sha256(shown).digest())
            for accepted, name in self._by_digest:
                if hmac.compare_digest(digest, accepted) and found is None:
                    found = name
        return found if shown else None

    def _digest(self, token: bytes) -> bytes:
        copy = self._hash.copy()
        copy.update(token)
        return copy.digest()
