"""
The facts about the spools of routers of which alarms are made.
"""

from __future__ import annotations

from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.management.agent_protocol import SpoolState
from webhookrx.management.alarm_values import Fact, waiting_text
from webhookrx.management.rollups import SECOND


class SpoolFacts:
    """
    Makes facts. Until an oldest message is first heard of, its age is by the clock of its router alone; from then on,
    by the monotonic one.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._since: dict[tuple[str, str], tuple[int, float]] = {}
        self._since_before: dict[tuple[str, str], tuple[int, float]] = {}

    def begin(self, now: float) -> None:
        """Begin a look; C{now} is monotonic."""
        self._now = now
        self._since_before, self._since = self._since, {}

    def of_router(self, router: EnrolledRouter, *, is_known: bool) -> list[Fact]:
        """Return a fact for each spool of a router, each name once: facts of one subject would be added up."""
        fields, spools = router.record, {each.name: each for each in router.spools}
        return [
            Fact(f"{router.name}/{name}", {**fields, "observer": name}, *self._value(router, each, is_known=is_known))
            for name, each in spools.items()
        ]

    def _value(self, router: EnrolledRouter, spool: SpoolState, *, is_known: bool) -> tuple[float | None, str]:
        if not is_known:
            return None, "It is not known while its router is away."
        if not spool.oldest:
            return 0.0, "No message waits."
        key = router.guid, spool.name
        since = self._since_before.get(key)
        if since is None or since[0] != spool.oldest:
            since = spool.oldest, self._now - max(0, router.told_at - spool.oldest) / SECOND
        self._since[key] = since
        age = self._now - since[1]
        return age, waiting_text(spool.messages, age)
