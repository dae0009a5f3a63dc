"""
The route of what rules reach: how many routers each matches, and on how many of them something is in its way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.console.rules.list_routes import RuleQuery, find_rules
from webhookrx.console.turns import in_turns
from webhookrx.query import Fleet, QueryError, QueryTooCostly, parse
from webhookrx.router.rules.router import router_of
from webhookrx.router.rules.rule import Host


class RuleReach(msgspec.Struct, frozen=True):
    """
    What a rule reaches.

    @ivar routers: how many it matches, of those that are approved and take rules.
    @ivar blocked: on how many of them its connector can't be as the rule says: the gate of the router is closed, or
        the connector is, or the router does not take its newest bundle.
    """

    routers: int
    blocked: int


class ShownReach(msgspec.Struct, frozen=True):
    """
    What rules reach, by their names.

    @ivar routers: how many routers there are for rules.
    """

    routers: int
    rules: dict[str, RuleReach]


class _ReachedRouter(NamedTuple):
    host: Host
    is_blocked: bool
    closed: frozenset[str]


async def show_reach(call: ApiCall) -> ShownReach:
    """Return what the rules reach that a query matches."""
    page = await find_rules(call)
    fleet = call.console.fleet
    registry: Sequence[EnrolledRouter] = () if fleet is None else tuple(fleet.registry)
    seen = [
        _seen(each)
        async for each in in_turns(call.console.reactor, registry)
        if each.state == "approved" and each.facts.form == "router"
    ]
    selectors = {row.name: row.selector for row in page.rows}
    reach: dict[str, RuleReach] = await call.console.store.read(lambda _: _reach(selectors, seen))
    return ShownReach(len(seen), reach)


def _seen(router: EnrolledRouter) -> _ReachedRouter:
    closed = frozenset(each.rule for each in router.connectors if each.state == "closed")
    is_blocked = bool(router.gate.reasons) or router.applied.status in ("BLOCKED", "FAILED")
    return _ReachedRouter(router.host, is_blocked, closed)


def _reach(selectors: Mapping[str, str], seen: Sequence[_ReachedRouter]) -> dict[str, RuleReach]:
    fleet = Fleet([router_of(each.host).record for each in seen])
    reach = {}
    for name, selector in selectors.items():
        try:
            found = fleet.matching(parse(selector))
        except (QueryError, QueryTooCostly):
            found = []
        blocked = sum(seen[index].is_blocked or name in seen[index].closed for index in found)
        reach[name] = RuleReach(len(found), blocked)
    return reach


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/rules:reach",
        Permission.VIEW,
        show_reach,
        "How many routers each rule matches that a query matches, and where something is in its way.",
        answer=ShownReach,
        query=RuleQuery,
    ),
)
