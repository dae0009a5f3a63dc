"""
The classifier: finds the sender of a request, the most specific of all definitions that match.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

import msgspec

from webhookrx.senders.compiled import CompiledSender, compile_sender
from webhookrx.senders.conditions import Conditions
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.evidence import Evidence, WantedHeaders
from webhookrx.senders.index import Index, header_search
from webhookrx.senders.locator import Locator, LookupContext, scalar_text
from webhookrx.senders.otlp import OtlpError
from webhookrx.senders.unpacking import unpack, unreadable

PROVED: Final = "proved"
HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"

MAX_NAME: Final = 255
"""Characters of a service or a host; what is longer is cut off."""


_MOST_LEADS: Final = 256
"""Combinations of names of headers that are remembered, so that invented ones do not fill the memory."""


class Match(msgspec.Struct, frozen=True, gc=False):
    """
    Who sent a request.

    @ivar service: as C{service} of the definition says, at most L{MAX_NAME} characters; empty for one of last resort.
    @ivar confidence: L{PROVED} by a signature or a secret, L{HIGH} by a header, L{MEDIUM} by the body or the query
        alone, L{LOW} for a definition of last resort.
    @ivar why: the conditions that matched, without anything that the sender chose.
    """

    sender: CompiledSender
    service: str
    confidence: str
    why: str


class Alternative(msgspec.Struct, frozen=True, gc=False):
    """
    Conditions of a sender, one of the alternatives by which its requests are recognised.

    @ivar fixed_description: its description; None when that depends on the request.
    """

    sender: CompiledSender
    conditions: Conditions
    fixed_description: str | None


class HeaderLeads(msgspec.Struct, frozen=True, gc=False):
    """
    Where some names of headers lead to.

    @ivar first: alternatives that win over all that are not found by a header, in their order: each with its
        description and whether these names are enough for it. None is behind one for which they are.
    @ivar late: the ranks of the other alternatives.
    """

    first: tuple[tuple[Alternative, str, bool], ...]
    late: list[int]


class Classifier:
    """
    Finds the definition of a request.

    Of several alternatives that match, one with a header condition wins over one that only uses the body; then higher
    C{priority}, then more conditions, then id and position in the file. The order of definitions makes no difference.
    Definitions of last resort are tried when no other matches, and only for JSON.

    An alternative is tried when its rarest name is present, see L{Index}. The cost of a request is one pass over its
    header names, and one lookup of each known member name when no header has decided.

    @param definitions: with unique ids.
    @raise BadDefinition: one of them can't be used.
    @raise ValueError: two have one id.
    """

    def __init__(self, definitions: Iterable[SenderDefinition]) -> None:
        compiled = list(map(compile_sender, definitions))
        if len({sender.id for sender in compiled}) < len(compiled):
            raise ValueError("Two definitions have one id.")
        alternatives = [
            Alternative(sender, conditions, None if conditions.any_header else conditions.describe([]))
            for sender in compiled
            for conditions in sender.alternatives
        ]
        self.alternatives: tuple[Alternative, ...] = tuple(
            sorted((alternative for alternative in alternatives if not _is_last(alternative)), key=_rank)
        )
        """Those of all definitions but the ones of last resort, in the order in which they win."""
        self._last_resort = sorted((alternative for alternative in alternatives if _is_last(alternative)), key=_rank)
        self._index = Index([alternative.conditions for alternative in self.alternatives])
        self._senders = {sender.id: sender for sender in compiled}
        self._search = header_search(
            name for alternative in alternatives for name in alternative.conditions.header_names
        )
        wanted = frozenset((b"content-type",)).union(*(sender.header_names for sender in compiled))
        self._wanted = WantedHeaders.of(wanted)
        self._leads: dict[tuple[bytes, ...], HeaderLeads] = {}

    def classify(self, evidence: Evidence, last_resort: bool = True) -> Match | None:
        """
        Return the sender of a request; None when no definition matches.

        @param last_resort: definitions of last resort are tried, too.
        @raise webhookrx.query.QueryTooCostly: it holds too much to find out whether a definition matches that would win
            over all others that do; so with the next.
        @raise webhookrx.regex.RegexTooCostly: a text is too long for an expression of such a definition.
        """
        names = evidence.wanted_headers(self._wanted)
        if names is None:
            names = tuple(evidence.header_names(self._search))
        leads = self._leads.get(names) or self._find_leads(names)
        for alternative, why, is_certain in leads.first:
            if is_certain or alternative.conditions.match(evidence, names):
                return _match(alternative, evidence, why)
        winner = self._by_body(evidence, names, leads.late)
        if winner is not None:
            return _match(winner, evidence, _why(winner, names))
        if last_resort and self._last_resort and evidence.is_json:
            winner = self._last(evidence, names)
        return None if winner is None else Match(winner.sender, "", LOW, _why(winner, names))

    def proved(self, sender_id: str, evidence: Evidence, how: str) -> Match | None:
        """
        Return the sender of a request that has proved who sent it; None if there is no definition of that id.

        @param how: what it has proved it by, one word.
        """
        sender = self._senders.get(sender_id)
        if sender is None:
            return None
        why = f"proved by {how}"
        if sender.definition.format == "otlp" and (problem := unreadable(sender, evidence)):
            why = f"{why}; {problem}"
        return Match(sender, _service(sender, evidence), PROVED, why)

    def _last(self, evidence: Evidence, names: tuple[bytes, ...]) -> Alternative | None:
        return next(
            (alternative for alternative in self._last_resort if alternative.conditions.match(evidence, names)), None
        )

    def _find_leads(self, names: tuple[bytes, ...]) -> HeaderLeads:
        """Return where names of headers lead to. Senders send the same ones each time."""
        ranks = dict.fromkeys(self._index.by_headers(names))
        first = []
        for rank in ranks:
            if rank > self._index.first_by_body:
                break
            alternative = self.alternatives[rank]
            is_certain = alternative.conditions.by_names(names)
            if is_certain is not False:
                first.append((alternative, _why(alternative, names), is_certain is True))
            if is_certain:
                break
        leads = HeaderLeads(tuple(first), [rank for rank in ranks if rank > self._index.first_by_body])
        if len(self._leads) >= _MOST_LEADS:
            self._leads.clear()
        self._leads[names] = leads
        return leads

    def _by_body(self, evidence: Evidence, names: tuple[bytes, ...], late: list[int]) -> Alternative | None:
        """
        Return the best of the alternatives that a header does not lead to, or only after the first of those.

        @param late: the ranks of the latter.
        """
        alternatives = self.alternatives
        ranks = self._index.by_body(evidence.object, evidence.query)
        for rank in sorted(late + ranks) if late else ranks:
            if alternatives[rank].conditions.match(evidence, names):
                return alternatives[rank]
        return None

    @property
    def known_leads(self) -> int:
        """How many combinations of names of headers are remembered."""
        return len(self._leads)

    def matching_alternatives(self, evidence: Evidence) -> list[Alternative]:
        """
        Return the alternatives that match, the winner first, the best one of each sender; those of last resort only
        when no other matches. It tries every alternative.
        """
        names = evidence.header_names()
        best: dict[str, Alternative] = {}
        for alternatives in (self.alternatives, self._last_resort if evidence.is_json else ()):
            for alternative in alternatives:
                if alternative.sender.id not in best and alternative.conditions.match(evidence, names):
                    best[alternative.sender.id] = alternative
            if best:
                break
        return list(best.values())

    def matching_senders(self, evidence: Evidence) -> list[CompiledSender]:
        """Return the senders that match, the winner first. It tries every definition."""
        return [alternative.sender for alternative in self.matching_alternatives(evidence)]


def _match(alternative: Alternative, evidence: Evidence, why: str) -> Match:
    sender = alternative.sender
    if sender.definition.format == "otlp" and (problem := unreadable(sender, evidence)):
        why = f"{why}; {problem}"
    confidence = HIGH if alternative.conditions.by_header else MEDIUM
    return Match(sender, _service(sender, evidence), confidence, why)


def _why(alternative: Alternative, names: Collection[bytes]) -> str:
    return (
        alternative.conditions.describe(names)
        if alternative.fixed_description is None
        else alternative.fixed_description
    )


def _is_last(alternative: Alternative) -> bool:
    return alternative.sender.definition.last_resort


def _rank(alternative: Alternative) -> tuple[bool, int, int, str]:
    return (
        not alternative.conditions.by_header,
        -alternative.sender.definition.priority,
        -alternative.conditions.count,
        alternative.sender.id,
    )


def delivery_id(sender: CompiledSender, evidence: Evidence) -> str:
    """Return the id that a sender gives to a delivery, at most L{MAX_NAME} characters; empty where there is none."""
    return delivery_text(sender, evidence)[:MAX_NAME].rstrip()


def delivery_text(sender: CompiledSender, evidence: Evidence) -> str:
    """Return the id that a sender gives to a delivery, whole; empty where there is none."""
    if not sender.deliveries:
        return ""
    return _first_text(sender.deliveries, evidence, sender.delivery_is_inside)


def attempt_number(sender: CompiledSender, evidence: Evidence) -> str:
    """Return which attempt at a delivery a request is, as the sender says it; empty where it does not."""
    if sender.attempt is None:
        return ""
    return _first_text((sender.attempt,), evidence, sender.attempt.root is not None)[:MAX_NAME].rstrip()


def _first_text(places: Iterable[Locator], evidence: Evidence, is_inside: bool) -> str:
    members = evidence.object if is_inside else None
    scope = LookupContext(evidence, members, members)
    for place in places:
        found = place.first(scope, scalar_text)
        if found is not None:
            return found
    return ""


def _service(sender: CompiledSender, evidence: Evidence) -> str:
    head = inside = None
    for text in sender.services:
        if not text.roots:
            scope = head = head or LookupContext(evidence, None, None)
        else:
            scope = inside = inside or _scope(sender, evidence)
        rendered = text.render(scope)
        if rendered is not None:
            return rendered[0][:MAX_NAME].rstrip()
    return ""


def _scope(sender: CompiledSender, evidence: Evidence) -> LookupContext:
    """Return where a service is looked up. To take a body apart costs more than all else, and few need it."""
    if sender.service_is_inside:
        with suppress(OtlpError):  # Parse will say so
            return unpack(sender, evidence).scope(evidence)
    members = evidence.object
    return LookupContext(evidence, members, members)
