"""
The first steps at a new console: enrol a router, write a rule, see a message. Each says how far it has come.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import PageCall
from webhookrx.console.routers.routes import ShownConnectors
from webhookrx.console.routers.shown import ShownRouter, ShownRouters
from webhookrx.management.agent_protocol import ConnectorState
from webhookrx.management.rule_changes import ListedRule, RuleList
from webhookrx.router.rules.rule import DEFAULT_PATHS

State: TypeAlias = Literal["done", "next", "later"]

MOST_SHOWN: Final = 5

#: Of a path that a command can have as it is: no regular expression.
_PLAIN: Final = frozenset("/-_~abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


class FirstSteps(msgspec.Struct, frozen=True, kw_only=True):
    """
    How far a console has come.

    @ivar waiting: routers that wait for consent.
    @ivar routers: those that are approved, some of them.
    @ivar rules: how many there are.
    @ivar troubled: routers that can't have their rules as they are.
    @ivar has_connector: a connector is open.
    @ivar command: sends a message to it, on the router itself.
    @ivar connector_router: which router that is.
    """

    enrolled: bool
    waiting: Sequence[ShownRouter]
    routers: Sequence[ShownRouter]
    rules: int
    troubled: Sequence[ShownRouter]
    command: str
    connector_router: str
    arrived: bool

    @property
    def states(self) -> tuple[State, State, State]:
        """The state of each step; the first that is not done is next."""
        done = (self.enrolled, self.arrived or self.rules > 0, self.arrived)
        following = done.index(False) if False in done else len(done)
        first, second, third = (
            "done" if is_done else "next" if index == following else "later" for index, is_done in enumerate(done)
        )
        return first, second, third  # type: ignore[return-value]

    @property
    def is_over(self) -> bool:
        """Whether all is done."""
        return self.enrolled and self.arrived


async def first_steps(call: PageCall, counted: ShownRouters) -> FirstSteps | None:
    """
    Return how far the console has come; None once it has a router, and has had a message.

    @param counted: all routers as they are counted.
    """
    return await steps_of(call, counted) if _is_new(counted) else None


async def steps_of(call: PageCall, counted: ShownRouters) -> FirstSteps:
    """Return how far the console has come, whether or not it is new."""
    waiting = await _listed(call, "pending") if counted.standings.get("pending") else ()
    approved: list[ShownRouter] = []
    for standing in counted.standings:
        if standing not in ("pending", "disabled") and len(approved) < MOST_SHOWN:
            approved += await _listed(call, standing)
    answer = await call.api("GET", "/rules")
    listed: RuleList = answer.body
    found = await _open_connector(call, approved)
    rules = {each.name: each for each in listed.rules}
    return FirstSteps(
        enrolled=_has_approved(counted),
        waiting=waiting,
        routers=approved[:MOST_SHOWN],
        rules=len(listed.rules),
        troubled=[each for each in approved if each.standing in ("failed", "blocked", "away", "duplicate")],
        command=_command(found[1], rules.get(found[1].rule)) if found else "",
        connector_router=found[0].name if found else "",
        arrived=counted.last_message > 0,
    )


def _is_new(counted: ShownRouters) -> bool:
    return not (_has_approved(counted) and counted.last_message)


def _has_approved(counted: ShownRouters) -> bool:
    return any(count for standing, count in counted.standings.items() if standing not in ("pending", "disabled"))


async def _listed(call: PageCall, standing: str) -> Sequence[ShownRouter]:
    answer = await call.api("GET", "/routers", query={"standing": standing, "count": MOST_SHOWN})
    listed: ShownRouters = answer.body
    return listed.routers


async def _open_connector(call: PageCall, routers: Sequence[ShownRouter]) -> tuple[ShownRouter, ConnectorState] | None:
    for router in routers:
        if router.connectors and not router.away:
            answer = await call.api("GET", f"/routers/{in_path(router.guid)}/connectors")
            told: ShownConnectors = answer.body
            for each in told.connectors:
                if each.state == "open" and each.port:
                    return router, each
    return None


def _command(connector: ConnectorState, rule: ListedRule | None) -> str:
    """Return what sends a message to a connector of this machine."""
    document = {} if rule is None else rule.document
    https = document.get("protocol") == "HTTPS"
    paths = document.get("paths") or DEFAULT_PATHS
    given = [paths] if isinstance(paths, str) else [path for path in paths if isinstance(path, str)]
    path = next((path for path in given if path.startswith("/") and set(path) <= _PLAIN), "/events")
    url = f"{'https' if https else 'http'}://localhost:{connector.port}{path}"
    options = "--insecure " if https else ""
    return f"curl {options}-H 'Content-Type: application/json' -d '{{\"hello\": \"world\"}}' {shlex.quote(url)}"
