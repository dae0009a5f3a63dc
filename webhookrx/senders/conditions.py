"""
Conditions by which a request is recognised as one of a sender, and their description.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from webhookrx.query import Query
from webhookrx.regex import LinearRegex
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.locator import first_value


class Conditions(msgspec.Struct, frozen=True, gc=False):
    """
    One alternative by which requests of a sender are recognised; all of its conditions must hold.

    @ivar headers: lower-case name, and what the value must contain; None for anything.
    @ivar parameters: the same for those of the query.
    @ivar content_type: in lower case; empty when it makes no difference.
    @ivar query: what the members of the object must be like.
    """

    headers: tuple[tuple[bytes, LinearRegex | None], ...]
    any_header: frozenset[bytes]
    parameters: tuple[tuple[str, LinearRegex | None], ...]
    content_type: str
    path: LinearRegex | None
    body_keys: frozenset[str]
    query: Query | None

    @property
    def by_header(self) -> bool:
        """Whether a header tells, and not only what a body or a query looks like."""
        return bool(self.headers or self.any_header)

    @property
    def header_names(self) -> list[bytes]:
        """The names of all headers that are looked at, but for those of every request."""
        return [*(name for name, _ in self.headers), *self.any_header]

    @property
    def count(self) -> int:
        """How many there are."""
        asked = 0 if self.query is None else max(1, len(self.query.fields))
        alone = (self.any_header, self.content_type, self.path)
        return len(self.headers) + len(self.parameters) + len(self.body_keys) + asked + sum(1 for each in alone if each)

    def by_names(self, names: Collection[bytes]) -> bool | None:
        """
        Tell whether all conditions hold, as far as the names of headers tell it: False if L{match} would find that out
        by them, before it looks at anything else.

        @param names: as for L{match}.
        """
        for name, value in self.headers:
            if name not in names:
                return False
            if value is not None:
                return None
        if self.any_header and self.any_header.isdisjoint(names):
            return False
        more = self.parameters or self.content_type or self.path or self.body_keys or self.query
        return None if more else True

    def match(self, evidence: Evidence, names: Collection[bytes]) -> bool:
        """
        Tell whether all conditions hold.

        @param names: C{evidence.header_names()}.
        @raise webhookrx.query.QueryTooCostly: the body holds too much to find out; so with the next.
        @raise webhookrx.regex.RegexTooCostly: a text is too long for an expression.
        """
        for name, value in self.headers:
            if name not in names:
                return False
            if value is not None and not value.search(evidence.header(name) or ""):
                return False
        if self.any_header and self.any_header.isdisjoint(names):
            return False
        for parameter, value in self.parameters:
            given = first_value(evidence.query, parameter)
            if given is None or (value is not None and not value.search(given)):
                return False
        if self.content_type and evidence.media_type != self.content_type:
            return False
        if self.path is not None and not self.path.search(evidence.head.path.decode("latin-1")):
            return False
        if not self.body_keys and self.query is None:
            return True
        members = evidence.object
        if members is None or not members.keys() >= self.body_keys:
            return False
        return self.query is None or self.query.matches(members)

    def describe(self, names: Collection[bytes]) -> str:
        """Describe the conditions and which headers of C{any_header} the request has; no text is the sender's."""
        there = [name for name, _ in self.headers] + sorted(self.any_header.intersection(names))
        parts = []
        if there:
            parts.append(f"header{'s' if len(there) > 1 else ''} {', '.join(name.decode('ascii') for name in there)}")
        if self.parameters:
            listed = ", ".join(name for name, _ in self.parameters)
            parts.append(f"query parameter{'s' if len(self.parameters) > 1 else ''} {listed}")
        if self.content_type:
            parts.append(f"content type {self.content_type}")
        if self.path is not None:
            parts.append(f"path {self.path.pattern}")
        if self.body_keys:
            parts.append(f"body key{'s' if len(self.body_keys) > 1 else ''} {', '.join(sorted(self.body_keys))}")
        if self.query is not None:
            parts.append(f"query {self.query.text}")
        return "; ".join(parts) or "JSON"
