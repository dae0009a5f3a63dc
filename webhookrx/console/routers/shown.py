"""
Routers as the API shows them: how each does in a word, in lists, and one with all that is known of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from webhookrx.console.counts.console_counts import ConsoleCounts
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.registry import EnrolledRouter

Standing: TypeAlias = Literal[
    "pending", "disabled", "duplicate", "away", "failed", "blocked", "applying", "none", "applied"
]
"""How a router does: see docs/console/index.md."""

STANDINGS: Final[tuple[Standing, ...]] = get_args(Standing)


class ShownRouter(msgspec.Struct, frozen=True):
    """
    A router.

    @ivar standing: how it does, in a word: what needs a person comes first.
    @ivar labels: all of them; C{own_labels} are those that the router has itself.
    @ivar seen_at: seconds since the epoch; 0 for never.
    @ivar status: of its newest bundle, with C{error}.
    @ivar duplicate: two processes use its certificate.
    @ivar certificate_end: when the last of its certificates ends, seconds since the epoch.
    @ivar messages_per_second: between its last two reports; None while it is away, or has told too little.
    @ivar last_message: when its last message came, seconds since the epoch; 0 if none ever has.
    """

    guid: str
    name: str
    state: str
    standing: Standing
    labels: dict[str, str]
    own_labels: dict[str, str]
    form: str
    version: str
    hostname: str
    fqdn: str
    ip: tuple[str, ...]
    os: str
    arch: str
    seen_at: float
    online: bool
    away: bool
    duplicate: bool
    revision: int
    status: str
    error: str
    gate_reasons: tuple[str, ...]
    gate_paths: tuple[str, ...]
    health: str
    connectors: int
    certificate_end: float
    messages_per_second: float | None
    last_message: float


class RouterCertificateEnd(msgspec.Struct, frozen=True):
    """
    A certificate of a router, by which the console knows it.

    @ivar ends_at: seconds since the epoch.
    """

    fingerprint: str
    ends_at: float


class RouterDetails(ShownRouter, frozen=True):
    """
    All that is known of a router.

    @ivar console_labels: those that the console gives it, which win over its own.
    @ivar enrolled_at: seconds since the epoch.
    @ivar digest: the name of the bundle that it runs; empty without one.
    @ivar newest_revision: that of the bundle that it is to have; 0 for none.
    @ivar newest_digest: the name of that one.
    @ivar rules: those whose selectors match it, by name.
    @ivar health_reasons: why it is not well.
    @ivar endpoints: addresses that sources of its own configuration take.
    @ivar admin: where its admin endpoint is; empty if other machines can't reach it.
    """

    console_labels: dict[str, str]
    enrolled_at: float
    digest: str
    newest_revision: int
    newest_digest: str
    rules: tuple[str, ...]
    health_reasons: tuple[str, ...]
    endpoints: tuple[str, ...]
    admin: str
    certificates: tuple[RouterCertificateEnd, ...]


class ShownRouters(msgspec.Struct, frozen=True):
    """
    Routers, by name.

    @ivar problem: why nothing is handed out to them; empty when all is well.
    @ivar matched: how many the query matches, in whatever state.
    @ivar standings: how many of these do how; what nobody does is left out.
    @ivar last_message: when the last message of these came, seconds since the epoch; 0 if none ever has.
    """

    routers: tuple[ShownRouter, ...]
    problem: str = ""
    matched: int = 0
    standings: dict[str, int] = {}
    last_message: float = 0.0


def standing_of(router: EnrolledRouter, now: float) -> Standing:
    """Return how a router does."""
    if router.state != "approved":
        return router.state
    if router.is_duplicate(now):
        return "duplicate"
    status: Any = router.applied.status.lower()
    found: Standing = status
    # One that has not come since it was enrolled, such as since it was approved, was never here.
    has_come = router.seen_at > router.enrolled_at or found != "none"
    return "away" if has_come and router.is_away(now) else found


def counted_standings(standings: Iterable[Standing]) -> dict[str, int]:
    """Return how many do how, what needs a person first."""
    counts = Counter(standings)
    return {each: counts[each] for each in STANDINGS if counts[each]}


def shown_router(fleet: FleetOfRouters, counts: ConsoleCounts, router: EnrolledRouter) -> ShownRouter:
    """Return a router as lists have it."""
    return ShownRouter(**_members(fleet, counts, router))


def router_details(fleet: FleetOfRouters, counts: ConsoleCounts, router: EnrolledRouter) -> RouterDetails:
    """Return a router with all that is known of it."""
    revision, digest = fleet.newest_for(router)
    return RouterDetails(
        **_members(fleet, counts, router),
        console_labels=dict(router.labels),
        enrolled_at=router.enrolled_at,
        digest=router.applied.digest,
        newest_revision=revision,
        newest_digest=digest,
        rules=fleet.rules_for(router),
        health_reasons=router.health_reasons,
        endpoints=router.facts.endpoints,
        admin=router.facts.admin,
        certificates=tuple(RouterCertificateEnd(*each) for each in router.certificates.items()),
    )


def last_message_of(counts: ConsoleCounts, router: EnrolledRouter) -> float:
    """Return when the last message of a router came, seconds since the epoch; 0 if none ever has."""
    return max(counts.last_messages(router.guid).values(), default=0.0)


def _members(fleet: FleetOfRouters, counts: ConsoleCounts, router: EnrolledRouter) -> dict[str, Any]:
    facts, applied, now = router.facts, router.applied, fleet.clock()
    away = router.is_away(now)
    return {
        "guid": router.guid,
        "name": router.name,
        "state": router.state,
        "standing": standing_of(router, now),
        "labels": router.all_labels,
        "own_labels": facts.labels,
        "form": facts.form,
        "version": facts.version,
        "hostname": facts.hostname,
        "fqdn": facts.fqdn,
        "ip": facts.ip,
        "os": facts.os,
        "arch": facts.arch,
        "seen_at": router.seen_at,
        "online": fleet.polls.is_online(router.guid),
        "away": away,
        "duplicate": router.is_duplicate(now),
        "revision": applied.revision,
        "status": applied.status,
        "error": applied.error,
        "gate_reasons": router.gate.reasons,
        "gate_paths": router.gate.paths,
        "health": router.health,
        "connectors": len(router.connectors),
        "certificate_end": max(router.certificates.values(), default=0.0),
        "messages_per_second": None if away else counts.rate(router.guid),
        "last_message": last_message_of(counts, router),
    }
