"""
The states of alarms: facts about subjects to ok, pending, firing or unknown, and the changes that somebody is told of.

Plain values: times come in as arguments. C{now} is monotonic, C{at} is seconds since the epoch and only shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from webhookrx.management.alarm_rules import AlarmRule
from webhookrx.management.alarm_subjects import AlarmLook, AlarmSubjects
from webhookrx.management.alarm_values import (
    STANDING,
    AlarmChange,
    AlarmCount,
    AlarmMark,
    AlarmRow,
    Facts,
    StandingState,
)

MOST_SUBJECTS: Final = 1000
"""Subjects of a rule that are pending, firing or unknown; more are counted, and not told one by one."""

MOST_IN_ALL: Final = 100_000
"""Such subjects of all rules together."""


class Alarms:
    """
    The alarms of some rules.

    @param rules: their queries can be parsed, and no two have one name.
    @param now: monotonic; when what they are about began.
    @param most_subjects: of a rule, see L{MOST_SUBJECTS}; C{most_in_all}: see L{MOST_IN_ALL}.
    """

    def __init__(
        self,
        rules: Sequence[AlarmRule],
        now: float,
        most_subjects: int = MOST_SUBJECTS,
        most_in_all: int = MOST_IN_ALL,
    ) -> None:
        self._most_subjects = most_subjects
        self._most_in_all = most_in_all
        self._ended: list[AlarmSubjects] = []
        self._states: dict[str, AlarmSubjects] = {}
        self._look = AlarmLook(0, now, 0.0, 0)
        self.use(rules)
        for each in self._states.values():
            each.matched_at = now

    def use(self, rules: Sequence[AlarmRule]) -> None:
        """
        Use other rules, but not within a look. An alarm whose rule has changed, but for its name and kind, goes on; the
        targets of one that is there no more are told with the next look.
        """
        before, self._states = self._states, {}
        for rule in rules:
            known = before.get(rule.name)
            if known is None or known.rule.kind != rule.kind:
                known = AlarmSubjects(rule, self._most_subjects)
            else:
                del before[rule.name]
                if known.rule != rule:
                    known.use(rule)
            self._states[rule.name] = known
        self._ended += before.values()

    def restore(self, marks: Iterable[AlarmMark], now: float, at: float) -> None:
        """Go on with what was kept, see L{AlarmMark}."""
        for mark in marks:
            state = self._states.get(mark.alarm)
            if state is None or state.rule.kind != mark.kind:
                state = AlarmSubjects(AlarmRule(mark.alarm, mark.kind, 0.0, notify=mark.notify), self._most_subjects)
                self._ended.append(state)
            state.restore(mark, now, at)

    @property
    def rules(self) -> list[AlarmRule]:
        """The rules that are in use."""
        return [each.rule for each in self._states.values()]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of which facts are wanted."""
        return frozenset(each.rule.kind for each in self._states.values())

    def look(self, facts: Facts, now: float, at: float) -> list[AlarmChange]:
        """
        Take what is known now.

        @return: what has begun or ceased to fire.
        """
        self.begin_look(now, at)
        return [*self.take(facts), *self.end_look()]

    def begin_look(self, now: float, at: float) -> None:
        """Begin a look in pieces."""
        standing = sum(len(each.standing) for each in self._states.values())
        self._look = AlarmLook(self._look.number + 1, now, at, self._most_in_all - standing)
        self._ended = [each for each in self._ended if each.standing]
        for each in (*self._ended, *self._states.values()):
            each.begin(now)

    def take(self, facts: Facts) -> list[AlarmChange]:
        """Take a piece of what is known. All facts of one subject come in one piece."""
        return [
            change for each in self._states.values() for change in each.take(facts.get(each.rule.kind, ()), self._look)
        ]

    def end_look(self, is_hidden: Callable[[str], bool] = lambda subject: False) -> Iterator[AlarmChange]:
        """
        End a look; it has ended when all of this has been taken.

        @param is_hidden: tells of a subject without a fact whether it is there all the same, and unknown.
        """
        for each in self._ended:
            yield from each.end_all(self._look.at)
        for each in self._states.values():
            yield from each.finish(self._look, is_hidden)

    def touched(self) -> Iterator[tuple[tuple[str, str], AlarmMark | None]]:
        """
        Yield what the last look has changed of what is to be kept, each with its alarm and subject, and None where
        nothing is any more. Of two with the same, the later one counts.
        """
        for each in (*self._ended, *self._states.values()):
            for subject in each.touched:
                yield (each.rule.name, subject), each.mark(subject)

    @property
    def rows(self) -> list[AlarmRow]:
        """All that is not ok, those that fire first."""
        rows = [row for state in STANDING for row in self.standing(state)]
        return sorted(rows, key=lambda row: (row.state != "firing", row.alarm, row.subject))

    def standing(self, state: StandingState, alarms: Collection[str] | None = None) -> Iterator[AlarmRow]:
        """
        Yield all that is in a state.

        @param alarms: the names of those that are wanted; None for all.
        """
        for name, each in self._states.items():
            if alarms is None or name in alarms:
                yield from each.rows(state)

    @property
    def counts(self) -> list[AlarmCount]:
        """How many subjects of each rule are in which state."""
        return [each.count for each in self._states.values()]
