"""
Plans: what of a sender's definition may yield something in a request, by the names of its members.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from webhookrx.message.message import Value
from webhookrx.query import Query
from webhookrx.senders.locator import Locator
from webhookrx.senders.severities import SeverityMap
from webhookrx.senders.text_template import TextTemplate

_MOST: Final = 64
"""Plans that are kept for a sender, so that invented requests do not fill the memory: some kibibytes each at worst."""


class Plan(msgspec.Struct, frozen=True, gc=False):
    """
    Where to look, in the order of the definition.

    @ivar times: a place, what reads the time there, and what the event must be like, if anything.
    @ivar severities: a place, and what reads the severity there.
    @ivar messages: a text, and what the event must be like, if anything.
    """

    times: tuple[tuple[Locator, Callable[[Any], int | None], Query | None], ...]
    severities: tuple[tuple[Locator, SeverityMap], ...]
    messages: tuple[tuple[TextTemplate, Query | None], ...]
    hosts: tuple[TextTemplate, ...]

    def narrowed(self, roots: frozenset[str]) -> Plan:
        """Return what may yield something where no other first step of a place in the body leads to anything."""

        def may_be_there(place: Locator) -> bool:
            return place.root is None or place.root in roots

        messages = ((text.narrowed(roots), condition) for text, condition in self.messages)
        hosts = (text.narrowed(roots) for text in self.hosts)
        return Plan(
            tuple(each for each in self.times if may_be_there(each[0])),
            tuple(each for each in self.severities if may_be_there(each[0])),
            tuple((text, condition) for text, condition in messages if text is not None),
            tuple(text for text in hosts if text is not None),
        )


class Plans:
    """
    The plan of a definition, and what it comes to in requests with certain members: most places of most definitions are
    nowhere in a request. Senders send few kinds of requests, so that nearly every one has its plan already.

    @ivar whole: all of the definition.
    """

    __slots__ = ("_by_roots", "_elements", "_roots", "whole")

    def __init__(self, whole: Plan) -> None:
        self.whole = whole
        texts = (*(text for text, _ in whole.messages), *whole.hosts)
        places = (*(place for place, *_ in whole.times), *(place for place, _ in whole.severities))
        self._roots = frozenset(place.root for place in places if place.root is not None).union(
            *(text.roots for text in texts)
        )
        # What may lead to an element of an array.
        self._elements = frozenset(root for root in self._roots if root == "*" or root.isdecimal())
        self._by_roots: dict[frozenset[str], Plan] = {}

    def plan(self, event: Value, whole: Value) -> Plan:
        """
        Return the plan for a request.

        @param event: as in L{webhookrx.senders.locator.LookupContext}, and so is C{whole}.
        """
        if whole is event and type(whole) is dict and len(whole) <= len(self._roots):
            roots = self._roots.intersection(whole)
        else:
            roots = self._among(event) | self._among(whole)
        found = self._by_roots.get(roots)
        if found is None:
            if len(self._by_roots) >= _MOST:
                self._by_roots.clear()
            found = self._by_roots[roots] = self.whole.narrowed(roots)
        return found

    @property
    def known(self) -> int:
        """How many plans are kept."""
        return len(self._by_roots)

    def _among(self, value: Value) -> frozenset[str]:
        """Return which first steps lead to anything in a value, or may do so."""
        if type(value) is dict:
            if len(value) > len(self._roots):
                return frozenset(filter(value.__contains__, self._roots))
            return self._roots.intersection(value)
        return self._elements if type(value) is list else frozenset()
