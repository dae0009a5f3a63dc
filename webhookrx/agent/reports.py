"""
The reports of a router: everything first, then what has changed, and the same again when an answer was lost.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from webhookrx.management.agent_protocol import (
    MOST_COMMANDS,
    AppliedState,
    CommandAnswer,
    ConnectorState,
    CountsReport,
    GateState,
    HeardSender,
    RouterFacts,
    RouterReport,
    SeriesCounts,
    SpoolState,
)

_MOST_ANSWERS: Final = 4 * MOST_COMMANDS
"""Answers that wait for a report; the console has given up on older ones."""


class ToldState(NamedTuple):
    """
    What a router tells of itself; see L{RouterReport}.

    @ivar series: what has been counted since the start of the process.
    """

    connectors: tuple[ConnectorState, ...]
    gate: GateState
    facts: RouterFacts
    health: Literal["ready", "degraded", "not_ready"]
    health_reasons: tuple[str, ...]
    series: tuple[SeriesCounts, ...]
    spools: tuple[SpoolState, ...] = ()
    senders: tuple[HeardSender, ...] = ()


class Reports:
    """
    Makes reports of one process.

    @param begun: when it started, nanoseconds since the epoch.
    @param instance: random for this process.
    @ivar under_way: the report that the console has not confirmed; None when there is none.
    """

    def __init__(self, begun: int, instance: str) -> None:
        self._begun = begun
        self._instance = instance
        self._number = 0
        self._counted_until = begun
        self._known: dict[str, Any] | None = None
        self._known_number = 0
        self._answers: list[CommandAnswer] = []
        self.under_way: RouterReport | None = None
        self._states: dict[str, Any] = {}

    def answer(self, answer: CommandAnswer) -> None:
        """Have the next report answer a command."""
        self._answers.append(answer)
        del self._answers[:-_MOST_ANSWERS]

    @property
    def has_answers(self) -> bool:
        """Whether answers wait for a report."""
        return bool(self._answers)

    def next(self, applied: AppliedState, state: ToldState, now: int) -> RouterReport:
        """
        Return the report to send: the one under way again, if there is one.

        @param now: nanoseconds since the epoch. A clock that was put back makes an interval that is empty.
        """
        if self.under_way is not None:
            return self.under_way
        self._number += 1
        self._states = {**state._asdict(), "applied": applied}
        del self._states["series"]
        known = self._known
        changed = {name: value for name, value in self._states.items() if known is None or known[name] != value}
        until = max(now, self._counted_until)
        answers, self._answers = tuple(self._answers[:MOST_COMMANDS]), self._answers[MOST_COMMANDS:]
        self.under_way = RouterReport(
            number=self._number,
            begun=self._begun,
            instance=self._instance,
            base=0 if known is None else self._known_number,
            counts=CountsReport(begun=self._begun, since=self._counted_until, until=until, series=state.series),
            answers=answers,
            **changed,
        )
        return self.under_way

    def confirmed(self) -> None:
        """Note that the console has the report under way."""
        report = self.under_way
        if report is not None:
            assert report.counts is not None
            self._known, self._known_number, self.under_way = self._states, report.number, None
            self._counted_until = report.counts.until

    def give_up(self) -> None:
        """Forget the report under way: the console does not take it. The next one says everything but its answers."""
        self._known, self.under_way = None, None

    def send_all(self) -> None:
        """Have the next report say everything: the console does not have the one that the last builds upon."""
        if self.under_way is not None:
            self._answers = [*self.under_way.answers, *self._answers]
        self._known, self.under_way = None, None
