"""
Which routers a tap is for, and why others that its query matches are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.console.routers.counted import RouterCounting
from webhookrx.console.taps.tap_order import CheckedOrder, LeftOut
from webhookrx.console.turns import in_turns
from webhookrx.query import QueryTooCostly
from webhookrx.tapping.tap_request import MOST_JUDGING, is_about
from webhookrx.work import TooMuchWork, Work

if TYPE_CHECKING:
    from webhookrx.console.console import Console
    from webhookrx.console.routers.fleet import FleetOfRouters
    from webhookrx.console.routers.registry import EnrolledRouter

MOST_JUDGED: Final = 1_000
"""Connectors of one router that are looked at; one with more is asked, as that took too long here."""

_MOST_JUDGING_ALL: Final = 50 * MOST_JUDGING
"""Units of work for the connectors of all routers."""


class ChosenRouters(NamedTuple):
    """
    @ivar asked: the routers to ask, by name.
    @ivar left_out: others that the query matches, by name.
    """

    asked: list[EnrolledRouter]
    left_out: list[LeftOut]


async def choose(console: Console, fleet: FleetOfRouters, order: CheckedOrder) -> ChosenRouters:
    """
    Return the approved routers that a tap is for, as far as the console knows; routers have the last word.

    @raise ApiProblem: the query takes too much work.
    """
    counting = RouterCounting(console.counts, console.rulebook, console.reactor)
    now = fleet.clock()
    work = Work(_MOST_JUDGING_ALL)
    chosen = ChosenRouters([], [])
    try:
        async for router in in_turns(console.reactor, sorted(fleet.registry, key=lambda each: each.name)):
            if router.state != "approved" or not order.routers.matches(router.record):
                continue
            if router.is_away(now):
                chosen.left_out.append(LeftOut(router.name, "away", "It is away."))
            elif not _may_be_about(order, router, counting, work):
                why = "None of the connectors that it has reported matches."
                chosen.left_out.append(LeftOut(router.name, "no_connector", why))
            else:
                chosen.asked.append(router)
    except QueryTooCostly as error:
        raise ApiProblem(INVALID, f"The query of routers is wrong: {error}") from None
    return chosen


def _may_be_about(order: CheckedOrder, router: EnrolledRouter, counting: RouterCounting, work: Work) -> bool:
    """
    Return whether a router may have a connector that a tap is about. One whose gate is closed says so itself, and has
    maybe no connector for that very reason.

    @param work: what is left for all routers; without any they are asked, too.
    """
    if order.queries.connectors is None or router.gate.reasons or len(router.connectors) > MOST_JUDGED:
        return True
    labels, given = counting.labels(router), min(MOST_JUDGING, work.left)
    own = Work(given)
    try:
        return any(
            is_about(
                order.request,
                order.queries,
                each.name,
                each.port if each.rule else None,
                labels(each.name).labels,
                own,
            )
            for each in router.connectors
        )
    except TooMuchWork:
        return True
    finally:
        work.left -= given - own.left
