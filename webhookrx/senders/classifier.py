"""
The classifier: finds the sender of a request, the most specific of all definitions that match.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import msgspec

from webhookrx.senders.compiled import CompiledSender, compile_sender
from webhookrx.senders.conditions import Conditions
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.index import Index, header_search
from webhookrx.senders.locator import LookupContext, scalar_text
from webhookrx.senders.otlp import OtlpError
from webhookrx.senders.unpacking import unpack, unreadable

HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"

MAX_NAME: Final = 255
"""Characters of a service or a host; what is longer is cut off."""


class Match(msgspec.Struct, frozen=True, gc=False):
    """
    Who sent a request.

    @ivar service: as the entry's C{service} says, at most L{MAX_NAME} characters; empty for an entry of last resort.
    @ivar confidence: L{HIGH} when a header told, L{MEDIUM} when only the body or the query did, L{LOW} for an entry of
        last resort.
    @ivar why: what told, without anything that the sender chose.
    """

    entry: CompiledSender
    service: str
    confidence: str
    why: str


class Way(msgspec.Struct, frozen=True, gc=False):
    """
    One way in which requests of an entry are told.

    @ivar fixed_description: what is said of it; None when it depends on the request.
    """

    entry: CompiledSender
    conditions: Conditions
    fixed_description: str | None


class Classifier:
    """
    Finds the entry of a request.

    Of several ways that hold, one that goes by a header wins over one that only goes by the body; then the one whose
    entry has the higher C{priority}; then the one with more conditions; then the first by id, and in the file. So the
    order of entries makes no difference. Those of last resort come when no other entry matches, and only for JSON.

    A way is looked at when its rarest name is there, see L{Index}. However long a request is, no more is done than to
    go through the names of its headers, and to look up names of entries among the members; the latter only when no
    header has told.

    @param entries: with unique ids.
    @raise BadDefinition: one of them can't be used.
    @raise ValueError: two have one id.
    """

    def __init__(self, entries: Iterable[SenderDefinition]) -> None:
        compiled = list(map(compile_sender, entries))
        if len({entry.id for entry in compiled}) < len(compiled):
            raise ValueError("Two entries have one id.")
        ways = [
            Way(entry, way, None if way.any_header else way.describe([])) for entry in compiled for way in entry.ways
        ]
        self.ways: tuple[Way, ...] = tuple(sorted((way for way in ways if not _is_last(way)), key=_rank))
        """All of all entries but those of last resort, those first that win over others."""
        self._last_resort = sorted((way for way in ways if _is_last(way)), key=_rank)
        self._index = Index([way.conditions for way in self.ways])
        self._search = header_search(name for way in ways for name in way.conditions.header_names)

    def classify(self, evidence: Evidence, last_resort: bool = True) -> Match | None:
        """
        Return who sent a request; None when no entry matches.

        @param last_resort: entries of last resort are looked at, too.
        @raise webhookrx.query.QueryTooCostly: it holds too much to find out whether an entry matches that would win
            over all others that do; so with the next.
        @raise webhookrx.regex.RegexTooCostly: a text is too long for an expression of such an entry.
        """
        names = evidence.header_names(self._search)
        way = self._winner(evidence, names)
        if way is None:
            way = self._last(evidence, names) if last_resort and self._last_resort and evidence.is_json else None
            return None if way is None else Match(way.entry, "", LOW, _why(way, names))
        entry, told = way.entry, way.conditions
        why = _why(way, names)
        if entry.entry.format == "otlp" and (problem := unreadable(entry, evidence)):
            why = f"{why}; {problem}"
        return Match(entry, _service(entry, evidence), HIGH if told.by_header else MEDIUM, why)

    def _last(self, evidence: Evidence, names: list[bytes]) -> Way | None:
        return next((way for way in self._last_resort if way.conditions.match(evidence, names)), None)

    def _winner(self, evidence: Evidence, names: list[bytes]) -> Way | None:
        ways, first_by_body = self.ways, self._index.first_by_body
        late = []
        for rank in self._index.by_headers(names):
            if rank > first_by_body:
                late.append(rank)
            elif ways[rank].conditions.match(evidence, names):
                return ways[rank]
        ranks = self._index.by_body(evidence.object, evidence.query)
        if late:
            ranks = sorted(late + ranks)
        for rank in ranks:
            if ways[rank].conditions.match(evidence, names):
                return ways[rank]
        return None

    def holding(self, evidence: Evidence) -> list[Way]:
        """
        Return the ways that hold, the winner first, of each entry the best; of entries of last resort only when no
        other holds. It looks at every one.
        """
        names = evidence.header_names()
        best: dict[str, Way] = {}
        for ways in (self.ways, self._last_resort if evidence.is_json else ()):
            for way in ways:
                if way.entry.id not in best and way.conditions.match(evidence, names):
                    best[way.entry.id] = way
            if best:
                break
        return list(best.values())

    def matching(self, evidence: Evidence) -> list[CompiledSender]:
        """Return all entries that match, the winner first. It looks at every one."""
        return [way.entry for way in self.holding(evidence)]


def _why(way: Way, names: list[bytes]) -> str:
    return way.conditions.describe(names) if way.fixed_description is None else way.fixed_description


def _is_last(way: Way) -> bool:
    return way.entry.entry.last_resort


def _rank(way: Way) -> tuple[bool, int, int, str]:
    return not way.conditions.by_header, -way.entry.entry.priority, -way.conditions.count, way.entry.id


def delivery_id(entry: CompiledSender, evidence: Evidence) -> str:
    """Return the id that a sender gives to a delivery, at most L{MAX_NAME} characters; empty where there is none."""
    if not entry.deliveries:
        return ""
    members = evidence.object if any(place.root is not None for place in entry.deliveries) else None
    scope = LookupContext(evidence, members, members)
    for place in entry.deliveries:
        found = place.first(scope, scalar_text)
        if found is not None:
            return found[:MAX_NAME].rstrip()
    return ""


def _service(entry: CompiledSender, evidence: Evidence) -> str:
    scope = None
    for text in entry.services:
        if not text.roots:
            rendered = text.render(LookupContext(evidence, None, None))
        else:
            scope = scope or _scope(entry, evidence)
            rendered = text.render(scope)
        if rendered is not None:
            return rendered[0][:MAX_NAME].rstrip()
    return ""


def _scope(entry: CompiledSender, evidence: Evidence) -> LookupContext:
    """Return where a service is looked up. To take a body apart costs more than all else, and few need it."""
    if entry.service_is_inside:
        with suppress(OtlpError):  # Parse will say so
            return unpack(entry, evidence).scope(evidence)
    members = evidence.object
    return LookupContext(evidence, members, members)
