"""
Takes what routers have counted, with the labels by which analytics find it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from webhookrx.console.counts.console_counts import ConsoleCounts
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.console.turns import in_turns
from webhookrx.management.agent_protocol import CountsReport
from webhookrx.router.rules.router import DEFAULT_LABELS


class RouterCounting:
    """
    Counts the reports of routers: C{on_counts} of L{webhookrx.console.routers.port.RoutersResource}.

    @param reactor: does other work meanwhile.
    """

    def __init__(self, counts: ConsoleCounts, rulebook: Rulebook, reactor: Any) -> None:
        self._counts = counts
        self._rulebook = rulebook
        self._reactor = reactor

    async def __call__(self, router: EnrolledRouter, number: int, report: CountsReport) -> None:
        """
        Count a report.

        @param number: of the report that it came with.
        """
        labels = self.labels(router)
        await self._counts.take_in_turns(partial(in_turns, self._reactor), router.guid, number, report, labels)

    def labels(self, router: EnrolledRouter) -> Callable[[str], SeriesLabels]:
        """
        Return what tells the labels of a connector of a router, as they are now: those of its rule, besides
        L{DEFAULT_LABELS}. A source of a router's own configuration, which has no rule, has none.
        """
        states = {each.name: each for each in router.connectors}
        router_labels = router.all_labels
        saved = self._rulebook.saved.rules

        def labels(connector: str) -> SeriesLabels:
            state = states.get(connector)
            if state is None or not state.rule:
                port = 0 if state is None else state.port
                return SeriesLabels(connector=connector, port=port, router=router.name, router_labels=router_labels)
            rule = saved.get(state.rule)
            own = {} if rule is None else rule.rule.labels
            return SeriesLabels(connector, state.rule, state.port, DEFAULT_LABELS | own, router.name, router_labels)

        return labels
