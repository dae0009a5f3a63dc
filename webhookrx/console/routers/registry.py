"""
The routers of a console in memory: who each is, what the console says of it, and what it has last told.

Nothing here does input or output. What lasts is in the store, and is put here once it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_protocol import (
    REPORT_INTERVAL,
    AppliedState,
    ConnectorState,
    GateState,
    HeardSender,
    RouterFacts,
    RouterReport,
    SpoolState,
)
from webhookrx.router.rules.router import router_of
from webhookrx.router.rules.rule import Host

MOST_ROUTERS: Final = 10_000
"""Routers that are enrolled, those that wait included."""

MOST_PENDING: Final = 1_000
"""Routers that wait for a person's consent."""

AWAY_AFTER: Final = 4 * REPORT_INTERVAL
"""Seconds without a word after which a router is away."""

DUPLICATE_FOR: Final = 300.0
"""Seconds for which a router counts as a duplicate after two processes were seen with its certificate."""

MOST_AHEAD: Final = 1_000_000
"""A router that says it has had a revision further ahead of the console's is not believed."""

MOST_OF_GATE: Final = 32 * 1024
"""Characters of the reasons for which a gate is closed that are kept, and of the paths."""

RouterState: TypeAlias = Literal["pending", "approved", "disabled"]


class SendAll(WebhookrxError):
    """A report builds upon one that the console does not have."""


@dataclass(slots=True)
class EnrolledRouter:
    """
    A router.

    @ivar labels: those that the console gives it; they win over its own.
    @ivar certificates: when each of its certificates that count ends, by fingerprint.
    @ivar seen_at: when it has last asked or told anything, seconds since the epoch; 0 for never.
    @ivar instance: which of its processes has reported last.
    @ivar number: of the last report of that process.
    @ivar told_at: when the counts of that report were taken, nanoseconds since the epoch by the clock of the router.
    @ivar replaced: when another process took the place of each of those before.
    @ivar duplicate_until: until when it counts as a duplicate.
    """

    guid: str
    name: str
    state: RouterState
    labels: Mapping[str, str] = field(default_factory=dict)
    certificates: dict[str, float] = field(default_factory=dict)
    enrolled_at: float = 0.0
    facts: RouterFacts = field(default_factory=RouterFacts)
    applied: AppliedState = field(default_factory=AppliedState)
    connectors: tuple[ConnectorState, ...] = ()
    gate: GateState = field(default_factory=GateState)
    health: str = ""
    health_reasons: tuple[str, ...] = ()
    spools: tuple[SpoolState, ...] = ()
    senders: tuple[HeardSender, ...] = ()
    seen_at: float = 0.0
    instance: str = ""
    number: int = 0
    begun: int = 0
    told_at: int = 0
    replaced: list[str] = field(default_factory=list)
    duplicate_until: float = 0.0

    @property
    def all_labels(self) -> dict[str, str]:
        """Its labels: its own, and over them the console's."""
        return {**self.facts.labels, **self.labels}

    @property
    def host(self) -> Host:
        """It as rules are checked with it."""
        facts = self.facts
        return Host(
            name=self.name,
            labels=self.all_labels,
            hostname=facts.hostname,
            fqdn=facts.fqdn,
            ip=facts.ip,
            os=facts.os,
            arch=facts.arch,
            version=facts.version,
        )

    @property
    def record(self) -> dict[str, Any]:
        """Its fields as selectors and queries ask for them."""
        return router_of(self.host).record

    def is_away(self, now: float) -> bool:
        """
        Return whether nothing has been heard of it for longer than it would be silent.

        A clock that was put back says nothing of one that was heard "later": it is away until it is heard again, as
        after a clock that was put forward, and not here for as long as the jump was.
        """
        return abs(now - self.seen_at) > AWAY_AFTER

    def is_duplicate(self, now: float) -> bool:
        """Return whether two processes use its certificate."""
        return now < self.duplicate_until

    def hear(self, report: RouterReport, now: float) -> bool:
        """
        Take a report.

        @return: False for one that the console has had.
        @raise SendAll: the report that it builds upon is missing.
        """
        another = report.instance != self.instance
        if not another and report.number <= self.number:
            self.seen_at = now
            return False
        if report.base and (another or report.base != self.number):
            raise SendAll
        if another:
            self._replace(report.instance, now)
        self.seen_at = now
        self.number = report.number
        self.begun = report.begun
        if not report.base:
            self.connectors, self.gate, self.health, self.health_reasons = (), GateState(), "", ()
            self.spools, self.senders = (), ()
        if report.counts is not None:
            self.told_at = report.counts.until
        for name in ("applied", "connectors", "gate", "facts", "health", "health_reasons", "spools", "senders"):
            told = getattr(report, name)
            if told is not None:
                setattr(self, name, _cut_gate(told) if isinstance(told, GateState) else told)
        return True

    def _replace(self, instance: str, now: float) -> None:
        """A process that was replaced and speaks again has not ended: another has its certificate, too."""
        if instance in self.replaced:
            self.duplicate_until = now + DUPLICATE_FOR
        if self.instance:
            self.replaced = [*[each for each in self.replaced if each != instance][-7:], self.instance]
        self.instance = instance


def _cut_gate(gate: GateState) -> GateState:
    """Return the first of what a gate is closed for: it is written down and shown beside that of all other routers."""
    reasons, paths = _first(gate.reasons), _first(gate.paths)
    return gate if (reasons, paths) == (gate.reasons, gate.paths) else GateState(reasons=reasons, paths=paths)


def _first(texts: tuple[str, ...]) -> tuple[str, ...]:
    left = MOST_OF_GATE
    for index, text in enumerate(texts):
        left -= len(text)
        if left < 0:
            return texts[:index]
    return texts


class RouterRegistry:
    """
    All routers, by what they are found by.
    """

    def __init__(self, routers: Iterable[EnrolledRouter] = ()) -> None:
        self._by_guid: dict[str, EnrolledRouter] = {}
        self._by_fingerprint: dict[str, EnrolledRouter] = {}
        self._by_name: dict[str, EnrolledRouter] = {}
        for each in routers:
            self.add(each)

    def __iter__(self) -> Iterator[EnrolledRouter]:
        return iter(self._by_guid.values())

    def __len__(self) -> int:
        return len(self._by_guid)

    @property
    def pending(self) -> int:
        """Number of routers that wait."""
        return sum(each.state == "pending" for each in self)

    def add(self, router: EnrolledRouter) -> None:
        """Add a router."""
        self._by_guid[router.guid] = router
        for fingerprint in router.certificates:
            self._by_fingerprint[fingerprint] = router
        if router.state != "pending":
            self._by_name[router.name] = router

    def remove(self, guid: str) -> EnrolledRouter | None:
        """Remove a router, and return it; None if it is unknown."""
        router = self._by_guid.pop(guid, None)
        if router is not None:
            for fingerprint in router.certificates:
                self._by_fingerprint.pop(fingerprint, None)
            if self._by_name.get(router.name) is router:
                del self._by_name[router.name]
        return router

    def by_guid(self, guid: str) -> EnrolledRouter | None:
        """Return a router by its guid."""
        return self._by_guid.get(guid)

    def by_name(self, name: str) -> EnrolledRouter | None:
        """Return the router that has a name; those that wait have none yet."""
        return self._by_name.get(name)

    def by_fingerprint(self, fingerprint: str) -> EnrolledRouter | None:
        """Return the router whose certificate has a fingerprint, and counts."""
        return self._by_fingerprint.get(fingerprint)

    def certify(self, router: EnrolledRouter, fingerprint: str, ends: float) -> None:
        """Let another certificate of a router count."""
        router.certificates[fingerprint] = ends
        self._by_fingerprint[fingerprint] = router

    def uncertify(self, router: EnrolledRouter, fingerprints: Iterable[str]) -> None:
        """Let certificates of a router count no more."""
        for each in fingerprints:
            router.certificates.pop(each, None)
            self._by_fingerprint.pop(each, None)

    def set_state(self, router: EnrolledRouter, state: RouterState) -> None:
        """Change the state of a router. The name of one that is approved is no other's; see the index of the store."""
        router.state = state
        if state != "pending":
            self._by_name[router.name] = router

    def rename(self, router: EnrolledRouter, name: str) -> None:
        """Give a router another name, which is free."""
        if self._by_name.get(router.name) is router:
            del self._by_name[router.name]
            self._by_name[name] = router
        router.name = name

    def ahead(self, revision: int, given: Callable[[EnrolledRouter], int]) -> list[EnrolledRouter]:
        """
        Return the routers that have had a revision which this console has not given them: it was restored from an older
        backup. Its own revisions go on meanwhile, and do not make it any newer.

        @param revision: the console's.
        @param given: returns the revision of the bundle that a router was last given, or has been adopted with.
        """
        return [
            each
            for each in self
            if each.state == "approved" and given(each) < each.applied.newest <= revision + MOST_AHEAD
        ]

    def holds_back(self, ahead: Sequence[EnrolledRouter]) -> bool:
        """
        Return whether nothing may be handed out to anybody: the console is older than its routers.

        A single router of several is not believed for all of them: whoever has its certificate could stop the others.
        It gets nothing itself.

        @param ahead: see L{RouterRegistry.ahead}.
        """
        approved = sum(each.state == "approved" for each in self)
        return len(ahead) >= min(2, max(1, approved))
