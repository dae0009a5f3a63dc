"""
Token places: where in a request its token stands, and how it stays out of messages, logs and recordings.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from webhookrx.errors import BAD_TOKEN
from webhookrx.intake.head import Head
from webhookrx.intake.header_masking import MASK
from webhookrx.message.macros import canonical

_Value = TypeVar("_Value")

# RFC 9110 section 11.4: a scheme is a token of section 5.6.2. One space and no other: "exactly two words".
CREDENTIALS: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ ([^\x00-\x20\x7f]+)")
_BASIC: Final = re.compile(rb"basic +([A-Za-z0-9+/]+={0,2})", re.IGNORECASE)

_PLACE: Final = re.compile(r"(header|query|path):(.+)", re.DOTALL)
_NAMES: Final = {
    "header": re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}"),
    # Characters that nobody has to encode (RFC 3986 section 2.3), so that the name always looks the same.
    "query": re.compile(r"[A-Za-z0-9._~-]{1,64}"),
    "path": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
}
_ALLOWED: Final = "header:authorization, header:NAME, query:NAME, path:GROUP or basic"
_BELONGS: Final = {
    "header": "a header of its own",
    "query": "the query",
    "path": "the path",
    "basic": "Basic authentication",
}
_MASK: Final = MASK.encode()


class TokenPlace(msgspec.Struct, frozen=True):
    """
    Where a token stands.

    @ivar kind: C{header} C{authorization} has a scheme word before it, any other header is the token itself; C{basic}
        is C{user:password} of Basic authentication (RFC 7617).
    @ivar name: of the header, in lower case; of the query parameter; of the group of the path.
    """

    kind: Literal["header", "query", "path", "basic"] = "header"
    name: str = "authorization"

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def refusal(self) -> str:
        """What a sender is told whose token is not accepted."""
        if self == AUTHORIZATION:
            return BAD_TOKEN.detail
        return f"The token is missing, repeated, or none that is accepted; it belongs in {_BELONGS[self.kind]}."

    def shown(self, head: Head, groups: Mapping[str, str]) -> bytes | None:
        """
        Return what a request shows there.

        @param groups: of its path, decoded.
        @return: None if there is nothing, or if it is there twice.
        """
        if self.kind == "path":
            group = groups.get(self.name)
            return None if group is None else group.encode()
        if self.kind == "query":
            return self._in_query(head.query or b"")
        values = head.values(b"authorization" if self.kind == "basic" else self.name.encode())
        if len(values) != 1:
            return None
        if self.kind == "basic":
            return _basic(values[0])
        if self.name == "authorization":
            credentials = CREDENTIALS.fullmatch(values[0])
            return None if credentials is None else credentials[1]
        return values[0]

    def query_without(self, query: Mapping[str, _Value]) -> Mapping[str, _Value]:
        """Return the parameters of a query for a message."""
        return _without(query, self.name) if self.kind == "query" else query

    def groups_without(self, groups: Mapping[str, _Value]) -> Mapping[str, _Value]:
        """Return the groups of a path for a message."""
        return _without(groups, self.name) if self.kind == "path" else groups

    def masked_query(self, query: bytes) -> bytes:
        """Return a raw query for people."""
        if self.kind != "query":
            return query
        return b"&".join([_masked_pair(pair, self.name.encode()) for pair in query.split(b"&")])

    def _in_query(self, query: bytes) -> bytes | None:
        begin = self.name.encode() + b"="
        found = [pair for pair in query.split(b"&") if pair.startswith(begin)]
        # A plus sign stands for itself: no token has a blank, and Base64 is often pasted as it is.
        return unquote_to_bytes(found[0][len(begin) :]) if len(found) == 1 else None


AUTHORIZATION: Final = TokenPlace()
"""The second word of C{Authorization}, whatever the first one is."""


def token_place(text: str) -> TokenPlace:
    """
    Read a place as people write it.

    @raise ValueError: there is no such place; the text is one sentence.
    """
    if text == "basic":
        return TokenPlace("basic", "")
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ValueError(f"A token stands at {_ALLOWED}.")
    kind, name = found.groups()
    if not _NAMES[kind].fullmatch(name):
        raise ValueError(f"This can't be the name of a {_CALLED[kind]}; a token stands at {_ALLOWED}.")
    if kind == "header":
        return TokenPlace("header", name.lower())
    return TokenPlace("query", name) if kind == "query" else TokenPlace("path", canonical(name))


_CALLED: Final = {"header": "header", "query": "query parameter", "path": "group of a path"}


def _basic(value: bytes) -> bytes | None:
    found = _BASIC.fullmatch(value)
    if found is None:
        return None
    try:
        decoded = binascii.a2b_base64(found[1])
    except binascii.Error:
        return None
    # One text for one value: Base64 that its own writer would not write is none.
    return decoded if b":" in decoded and binascii.b2a_base64(decoded, newline=False) == found[1] else None


def _without(values: Mapping[str, _Value], name: str) -> Mapping[str, _Value]:
    return {each: value for each, value in values.items() if each != name} if name in values else values


def _masked_pair(pair: bytes, name: bytes) -> bytes:
    shown, equals, _ = pair.partition(b"=")
    return shown + equals + _MASK if equals and unquote_to_bytes(shown.replace(b"+", b" ")) == name else pair
