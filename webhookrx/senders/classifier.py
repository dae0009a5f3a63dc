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

    @ivar service: as C{service} of the definition says, at most L{MAX_NAME} characters; empty for one of last resort.
    @ivar confidence: L{HIGH} by a header, L{MEDIUM} by the body or the query alone, L{LOW} for a definition of last
        resort.
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
        self._search = header_search(
            name for alternative in alternatives for name in alternative.conditions.header_names
        )

    def classify(self, evidence: Evidence, last_resort: bool = True) -> Match | None:
        """
        Return the sender of a request; None when no definition matches.

        @param last_resort: definitions of last resort are tried, too.
        @raise webhookrx.query.QueryTooCostly: it holds too much to find out whether a definition matches that would win
            over all others that do; so with the next.
        @raise webhookrx.regex.RegexTooCostly: a text is too long for an expression of such a definition.
        """
        names = evidence.header_names(self._search)
        alternative = self._winner(evidence, names)
        if alternative is None:
            alternative = (
                self._last(evidence, names) if last_resort and self._last_resort and evidence.is_json else None
            )
            return None if alternative is None else Match(alternative.sender, "", LOW, _why(alternative, names))
        sender, by_header = alternative.sender, alternative.conditions.by_header
        why = _why(alternative, names)
        if sender.definition.format == "otlp" and (problem := unreadable(sender, evidence)):
            why = f"{why}; {problem}"
        return Match(sender, _service(sender, evidence), HIGH if by_header else MEDIUM, why)

    def _last(self, evidence: Evidence, names: list[bytes]) -> Alternative | None:
        return next(
            (alternative for alternative in self._last_resort if alternative.conditions.match(evidence, names)), None
        )

    def _winner(self, evidence: Evidence, names: list[bytes]) -> Alternative | None:
        alternatives, first_by_body = self.alternatives, self._index.first_by_body
        late = []
        for rank in self._index.by_headers(names):
            if rank > first_by_body:
                late.append(rank)
            elif alternatives[rank].conditions.match(evidence, names):
                return alternatives[rank]
        ranks = self._index.by_body(evidence.object, evidence.query)
        if late:
            ranks = sorted(late + ranks)
        for rank in ranks:
            if alternatives[rank].conditions.match(evidence, names):
                return alternatives[rank]
        return None

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


def _why(alternative: Alternative, names: list[bytes]) -> str:
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
    if not sender.deliveries:
        return ""
    members = evidence.object if any(place.root is not None for place in sender.deliveries) else None
    scope = LookupContext(evidence, members, members)
    for place in sender.deliveries:
        found = place.first(scope, scalar_text)
        if found is not None:
            return found[:MAX_NAME].rstrip()
    return ""


def _service(sender: CompiledSender, evidence: Evidence) -> str:
    scope = None
    for text in sender.services:
        if not text.roots:
            rendered = text.render(LookupContext(evidence, None, None))
        else:
            scope = scope or _scope(sender, evidence)
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
