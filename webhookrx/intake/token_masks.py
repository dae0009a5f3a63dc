"""
Token masks: requests as logs and recordings may show them, without a token or secret in path, query or headers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    Masks the token in the requests to one source, and secrets that its sender sends themselves.

    @param place: where the token is; None without one.
    @param patterns: the path patterns of the source.
    @param headers: headers with secrets, in lower case.
    @param parameters: parameters of the query with secrets.
    """

    def __init__(
        self,
        place: TokenPlace | None,
        patterns: Sequence[str],
        headers: Collection[str] = (),
        parameters: Collection[str] = (),
    ) -> None:
        kind = "" if place is None else place.kind
        name = "" if place is None else place.name
        self._path = PathMask([(pattern, name) for pattern in patterns] if kind == "path" else [], [])
        self._headers = frozenset(each.encode() for each in (*headers, *([name] if kind == "header" else [])))
        queries = [TokenPlace("query", each) for each in parameters]
        self._queries = (*queries, place) if place is not None and kind == "query" else tuple(queries)

    def masked(self, head: Head) -> Head:
        """Return a head in which each of them is replaced by C{***}."""
        query = head.query
        if query:
            for place in self._queries:
                query = place.masked_query(query)
        headers = head.headers
        if self._headers:
            headers = tuple((each, _MASK if each in self._headers else value) for each, value in headers)
        return replace(head, path=self._path.masked(head.path), query=query, headers=headers, prefetched=None)
