"""
Which rules go to which routers, and the bundles that are made of them: plain functions, for a thread of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from webhookrx.console.routers.authority import Authority
from webhookrx.management.bundle import BundleRouter, RouterBundle, seal
from webhookrx.management.rule_documents import rules_yaml
from webhookrx.query import Fleet, Query, QueryTooCostly


class HandedRule(NamedTuple):
    """
    A rule as routers get it.

    @ivar name: its name.
    @ivar selector: which routers it is for.
    @ivar text: its YAML.
    """

    name: str
    selector: Query
    text: str


class PlannedRouter(NamedTuple):
    """
    A router as a plan sees it.

    @ivar record: see L{webhookrx.router.rules.router.Router.record}.
    @ivar labels: those that the console gives it.
    """

    guid: str
    name: str
    labels: Mapping[str, str]
    record: Mapping[str, Any]


class Planned(NamedTuple):
    """
    What one router is to have.

    @ivar rules: which of the rules, by index.
    @ivar content: a hash of all that its bundle says but for revision and time.
    """

    guid: str
    name: str
    labels: Mapping[str, str]
    rules: tuple[int, ...]
    content: str


class BundleSurroundings(NamedTuple):
    """What all bundles of a console have; see L{RouterBundle}."""

    authorities: tuple[str, ...]
    signing_keys: tuple[str, ...]
    masks: tuple[str, ...]

    @classmethod
    def of(cls, authority: Authority, masks: Sequence[str]) -> BundleSurroundings:
        """Return them."""
        return cls(authority.authorities, authority.signing_keys, tuple(masks))


def plan_bundles(
    rules: Sequence[HandedRule], routers: Sequence[PlannedRouter], around: BundleSurroundings
) -> list[Planned]:
    """
    Return what each router is to have, in their order. A selector that takes too much work on a record matches none:
    the router would say the same.
    """
    fleet = Fleet([router.record for router in routers])
    matched: list[list[int]] = [[] for _ in routers]
    for index, rule in enumerate(rules):
        try:
            found = fleet.matching(rule.selector)
        except QueryTooCostly:
            continue
        for number in found:
            matched[number].append(index)
    hashes = [hashlib.sha256(rule.text.encode()).hexdigest() for rule in rules]
    same = msgspec.json.encode(around)
    return [
        Planned(
            router.guid, router.name, router.labels, tuple(found), _content(router, [hashes[i] for i in found], same)
        )
        for router, found in zip(routers, matched, strict=True)
    ]


def _content(router: PlannedRouter, hashes: Sequence[str], same: bytes) -> str:
    own = msgspec.json.encode((router.name, dict(router.labels), hashes), order="deterministic")
    return hashlib.sha256(own + same).hexdigest()


class BundleMaker:
    """
    Makes the bundles of one set of rules. Routers with the same rules share one text.

    Bundles are made when they are asked for, and not kept: a thousand of them would take a hundred MiB. Made again, one
    is the same byte for byte.
    """

    def __init__(self, rules: Sequence[HandedRule], authority: Authority, around: BundleSurroundings) -> None:
        self._rules = rules
        self._key = authority.signing_key
        self._around = around
        self._texts: dict[tuple[int, ...], str] = {}

    def names(self, planned: Planned) -> tuple[str, ...]:
        """Return the names of the rules of a router."""
        return tuple(self._rules[index].name for index in planned.rules)

    def make(self, planned: Planned, revision: int, made_at: int) -> bytes:
        """
        Return the envelope of a router's bundle.

        @param made_at: nanoseconds since the epoch.
        """
        text = self._texts.get(planned.rules)
        if text is None:
            if len(self._texts) >= 256:
                self._texts.clear()
            text = self._texts[planned.rules] = rules_yaml(self._rules[index].text for index in planned.rules)
        bundle = RouterBundle(
            guid=planned.guid,
            revision=revision,
            made_at=made_at,
            router=BundleRouter(planned.name, dict(planned.labels)),
            rules=text,
            authorities=self._around.authorities,
            signing_keys=self._around.signing_keys,
            masks=self._around.masks,
        )
        return seal(bundle, self._key)
