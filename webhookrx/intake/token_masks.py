"""
Token masks: requests as logs and recordings may show them, where their token is in the path, the query or a header.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from webhookrx.intake.head import Head
from webhookrx.intake.header_masking import MASK
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.intake.token_places import TokenPlace

_MASK: Final = MASK.encode()
_UNKNOWN: Final = b"/" + _MASK


class PathMask:
    """
    Masks the tokens in paths, for an operator's eyes.

    @param secret: path patterns, and the group of each that is a token.
    @param others: all other patterns.
    """

    def __init__(self, secret: Sequence[tuple[str, str]], others: Sequence[str]) -> None:
        self._secret = [(PathPatterns([pattern]), group) for pattern, group in secret]
        self._others = PathPatterns(others)

    def masked(self, path: bytes) -> bytes:
        """
        Return a path without tokens. One that no pattern matches may be that of a token, mistyped around it: nothing
        of it is shown.

        @param path: raw.
        """
        if not self._secret:
            return path
        is_known = self._others.match(path) is not None
        shown = path
        for patterns, group in self._secret:
            match = patterns.match(path)
            if match is not None:
                is_known = True
                token = match[1].get(group)
                # All places of the same text: none of them is worth more than the token.
                shown = shown.replace(token, _MASK) if token else shown
        return shown if is_known else _UNKNOWN


class TokenMask:
    """
    Masks the token in the requests to one source.

    @param place: where it is.
    @param patterns: the path patterns of the source.
    """

    def __init__(self, place: TokenPlace, patterns: Sequence[str]) -> None:
        self._place = place
        self._path = PathMask([(pattern, place.name) for pattern in patterns] if place.kind == "path" else [], [])

    def masked(self, head: Head) -> Head:
        """Return a head in which a token is replaced by C{***}."""
        kind = self._place.kind
        if kind == "query" and head.query:
            return replace(head, query=self._place.masked_query(head.query))
        if kind == "path":
            return replace(head, path=self._path.masked(head.path))
        if kind == "header":
            name = self._place.name.encode()
            lines = tuple((each, _MASK if each == name else value) for each, value in head.headers)
            return replace(head, headers=lines, prefetched=None)
        return head
