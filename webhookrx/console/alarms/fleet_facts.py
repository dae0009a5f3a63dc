"""
The facts about the routers of a console of which alarms are made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from webhookrx.console.alarms.connector_facts import ConnectorFacts
from webhookrx.console.alarms.spool_facts import SpoolFacts
from webhookrx.console.routers.registry import AWAY_AFTER, EnrolledRouter
from webhookrx.management.alarm_subjects import NOTHING_MATCHED
from webhookrx.management.alarm_values import Fact, Facts
from webhookrx.quantities import readable_span

SETTLING: Final = 120.0
"""Seconds after the start of a console within which its routers come again: one that has not is not yet away."""

_MOST_TEXT: Final = 300


class FleetFacts:
    """
    Makes facts. Ages are measured on the monotonic clock, so that a clock that is set makes no router away.

    @param now: monotonic; when the console began to hear routers.
    @param connectors: makes the facts about their connectors.
    """

    def __init__(self, now: float, connectors: ConnectorFacts) -> None:
        self._began = now
        self._connectors = connectors
        self._spools = SpoolFacts()
        self._heard: dict[str, tuple[float, float]] = {}
        self._kinds: Collection[str] = ()
        self._before: float | None = None
        self._now, self._at = now, 0.0
        self._has_looked = False

    def begin(self, kinds: Collection[str], now: float, at: float) -> None:
        """
        Begin a look.

        @param kinds: of alarms of which facts are wanted.
        @param at: seconds since the epoch.
        """
        self._before, self._has_looked = self._now if self._has_looked else None, True
        self._kinds, self._now, self._at = kinds, now, at
        self._connectors.begin(kinds, now, at)
        self._spools.begin(now)

    def pieces(self, router: EnrolledRouter) -> Iterator[Facts]:
        """Yield the facts about an approved router, a bounded number at a time."""
        is_away = (age := self._age(router)) > AWAY_AFTER
        # What it has told another process of the console may be old.
        is_known = bool(router.instance) and not is_away
        yield dict(self._of_router(router, age, is_away=is_away, is_known=is_known))
        yield from self._connectors.pieces(router, is_known=is_known)

    def is_hidden(self, subject: str) -> bool:
        """Tell of a subject without a fact, such as a spool, whether it may be there all the same."""
        if subject == NOTHING_MATCHED:
            return not self._is_settled
        return self._connectors.is_hidden(subject)

    def end(self, routers: Collection[str]) -> None:
        """
        End a look.

        @param routers: the guids of all that are there.
        """
        self._heard = {guid: heard for guid, heard in self._heard.items() if guid in routers}
        self._connectors.end(routers)

    @property
    def _is_settled(self) -> bool:
        return self._now - self._began >= SETTLING

    def _age(self, router: EnrolledRouter) -> float:
        """Return for how many seconds nothing has been heard of a router."""
        seen = router.seen_at or router.enrolled_at
        known = self._heard.get(router.guid)
        if known is None or known[0] != seen:
            age = max(0.0, self._at - seen)
            if self._before is not None:
                # It was heard or approved since the last look, whatever the clock says.
                age = min(age, self._now - self._before)
            known = self._heard[router.guid] = seen, self._now - age
        return self._now - known[1]

    def _of_router(
        self, router: EnrolledRouter, age: float, *, is_away: bool, is_known: bool
    ) -> Iterator[tuple[str, list[Fact]]]:
        name, fields = router.name, router.record
        if "router_away" in self._kinds:
            value = age if self._is_settled or not is_away else None
            text = f"Nothing has been heard of it for {readable_span(round(age))}."
            yield "router_away", [Fact(name, fields, value, text, is_doubtful=is_away)]
        if "gate_closed" in self._kinds:
            reasons = router.gate.reasons or router.gate.paths
            text = " ".join(reasons)[:_MOST_TEXT] or "Its gate is open."
            yield "gate_closed", [Fact(name, fields, float(bool(reasons)) if is_known else None, text)]
        if "apply_failed" in self._kinds:
            has_failed = router.applied.status == "FAILED"
            text = (router.applied.error[:_MOST_TEXT] or "It says nothing on why.") if has_failed else "It is applied."
            yield "apply_failed", [Fact(name, fields, float(has_failed) if is_known else None, text)]
        if "spool" in self._kinds:
            yield "spool", self._spools.of_router(router, is_known=is_known)
        if "duplicate" in self._kinds:
            is_duplicate = router.is_duplicate(self._at)
            is_known = is_duplicate or (is_known and self._is_settled)
            text = "Two processes use its certificate." if is_duplicate else "One process uses its certificate."
            if not is_known:
                text = "It is known some minutes after the start of the console."
            yield "duplicate", [Fact(name, fields, float(is_duplicate) if is_known else None, text)]
