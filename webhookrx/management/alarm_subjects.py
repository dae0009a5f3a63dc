"""
The subjects of one alarm rule that are not ok: what becomes of each with every look at what is known of it.

Plain values: times come in as arguments. C{now} is monotonic, C{at} is seconds since the epoch and only shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from webhookrx.management.alarm_rules import AGES, AlarmRule
from webhookrx.management.alarm_values import (
    AlarmChange,
    AlarmCount,
    AlarmMark,
    AlarmRow,
    AlarmState,
    Fact,
    StandingState,
)
from webhookrx.query.query import Query, parse
from webhookrx.work import TooMuchWork

NOTHING_MATCHED: Final = "*"
"""The subject of a C{silent} rule for which there is nothing that it could be about."""

_GONE: Final = "It is not there any more."
_NONE_REFUSED: Final = "None is refused any more."
_RULE_GONE: Final = "This alarm was removed or changed."


@dataclass(slots=True)
class _Standing:
    """
    A subject that is not ok.

    @ivar state: what it is, or was when it was last known; None: that was never known.
    @ivar begun: when it was first not right, monotonic.
    @ivar since: when C{state} began, seconds since the epoch.
    @ivar unknown_since: since when nothing is known of it, seconds since the epoch; None while something is.
    @ivar told: the target that was told that it fires, and not yet that it is ok; None: nobody was.
    @ivar look: the last look that had it.
    @ivar is_idle: it is only waited for, or was never known.
    """

    state: Literal["pending", "firing"] | None
    begun: float
    since: float
    text: str
    unknown_since: float | None = None
    told: str | None = None
    look: int = 0
    is_idle: bool = False

    @property
    def shown(self) -> tuple[StandingState, float]:
        """The state that is shown, and when it began."""
        if self.unknown_since is not None or self.state is None:
            return "unknown", self.since if self.unknown_since is None else self.unknown_since
        return self.state, self.since


class _Judged(NamedTuple):
    """All facts of one subject together."""

    value: float | None
    share: float
    text: str
    is_doubtful: bool = False
    is_first: bool = False


@dataclass(slots=True)
class AlarmLook:
    """
    One look at all facts.

    @ivar room: for how many more subjects there is room, in all rules together.
    """

    number: int
    now: float
    at: float
    room: int


class AlarmSubjects:
    """
    One rule, and its subjects that are not ok.

    @ivar matched_at: when there was last something that it could be about, or the first look was, monotonic.
    @ivar left_out: subjects that the last look had no room for.
    @ivar touched: those of which the last look has changed what is to be kept, in its order.
    """

    def __init__(self, rule: AlarmRule, most: int) -> None:
        self.matched_at: float | None = None
        self.left_out = 0
        self.standing: dict[str, _Standing] = {}
        self.touched: dict[str, None] = {}
        self._most = most
        self._idle = 0
        self.use(rule)

    def use(self, rule: AlarmRule) -> None:
        """Go on with another rule of this name and kind."""
        self.rule = rule
        self._query: Query | None = parse(rule.when) if rule.when else None
        # A sender is one of several of a source: a rule is about sources, unless its query asks for senders.
        self._by_sender = self._query is not None and any(use.field == "sender" for use in self._query.fields)

    def begin(self, now: float) -> None:
        """Begin a look."""
        if self.matched_at is None:
            self.matched_at = now
        self.left_out = 0
        self.touched.clear()
        self._has_judged = False
        self._idle = sum(each.is_idle for each in self.standing.values())

    def take(self, facts: Iterable[Fact], look: AlarmLook) -> Iterator[AlarmChange]:
        """Take facts; yield what somebody is told."""
        judged = self._judge(facts)
        for subject, each in judged.items():
            yield from self._step(subject, each, look)
        self._has_judged = self._has_judged or bool(judged)

    def finish(self, look: AlarmLook, is_hidden: Callable[[str], bool]) -> Iterator[AlarmChange]:
        """End a look: what it has not had is not there any more, unless it is hidden."""
        if self._has_judged or self.matched_at is None:
            self.matched_at = look.now
        elif self.rule.kind == "silent" and not is_hidden(NOTHING_MATCHED):
            yield from self._step(NOTHING_MATCHED, self._nothing(look.now - self.matched_at), look)
        for subject in [subject for subject, each in self.standing.items() if each.look != look.number]:
            if is_hidden(subject):
                self._lose(self.standing[subject], look.at)
            else:
                text = _NONE_REFUSED if self.rule.kind == "refused" else _GONE
                yield from self._end(subject, text, look.at)

    def _nothing(self, age: float) -> _Judged:
        before = self.standing.get(NOTHING_MATCHED)
        is_told = before is not None and before.told is not None
        return _Judged(self.rule.seconds if is_told else age, 0.0, "Nothing that it could be about has sent a message.")

    def _judge(self, facts: Iterable[Fact]) -> dict[str, _Judged]:
        judged: dict[str, _Judged] = {}
        for fact in facts:
            if self._is_about(fact):
                before = judged.get(fact.subject)
                judged[fact.subject] = _judged(fact) if before is None else _sum(before, fact)
        return judged

    def _is_about(self, fact: Fact) -> bool:
        if self.rule.kind == "silent" and ("sender" in fact.fields) is not self._by_sender:
            return False
        try:
            return self._query is None or self._query.matches(fact.fields)
        except TooMuchWork:
            return True  # rather an alarm too many than one too few

    def _step(self, subject: str, judged: _Judged, look: AlarmLook) -> Iterator[AlarmChange]:
        before = self.standing.get(subject)
        state = self._state(judged, before, look.now)
        if state == "ok":
            yield from self._end(subject, judged.text, look.at)
            return
        if before is None:
            before = self._begin(subject, judged, state, look)
            if before is None:
                return
        before.look, before.text = look.number, judged.text
        if state == "unknown":
            self._lose(before, look.at)
            return
        before.is_idle = judged.is_first
        if before.state is None or (before.unknown_since is not None and before.told is None and not judged.is_first):
            # Time in which nothing was known of it is none in which it was wrong.
            before.state, before.begun, before.since = "pending", look.now, look.at
            self.touched[subject] = None
        before.unknown_since = None
        if before.state != state and before.told is None:
            before.state, before.since = state, look.at
            self.touched[subject] = None
        if state == "firing" and before.told is None:
            before.told = self.rule.notify
            yield self._change(subject, "firing", before.since, judged.text, before.told)

    def _begin(self, subject: str, judged: _Judged, state: AlarmState, look: AlarmLook) -> _Standing | None:
        """Return a new subject that is not ok; None when there are too many."""
        is_idle = judged.is_first or state == "unknown"
        if look.room <= 0 or len(self.standing) >= self._most or (is_idle and self._idle >= self._most // 2):
            # What is only unknown, or waited for, leaves room for what is wrong.
            self.left_out += 1
            return None
        look.room -= 1
        self._idle += is_idle
        if state == "unknown":
            new = _Standing(None, look.now, look.at, judged.text, is_idle=True)
        else:
            new = _Standing("pending" if state == "pending" else "firing", look.now, look.at, judged.text)
            self.touched[subject] = None
        self.standing[subject] = new
        return new

    def _lose(self, standing: _Standing, at: float) -> None:
        if standing.unknown_since is None:
            standing.unknown_since = at

    def _end(self, subject: str, text: str, at: float) -> Iterator[AlarmChange]:
        before = self.standing.pop(subject, None)
        if before is not None:
            self.touched[subject] = None
            if before.told is not None:
                yield self._change(subject, "ok", at, text, before.told)

    def end_all(self, at: float) -> Iterator[AlarmChange]:
        """The rule is no more."""
        for subject in list(self.standing):
            yield from self._end(subject, _RULE_GONE, at)

    def _state(self, judged: _Judged, before: _Standing | None, now: float) -> AlarmState:
        rule, value = self.rule, judged.value
        if value is None:
            return "unknown"
        if judged.is_first:
            return self._lasting(before, now, rule.seconds if rule.expect is None else rule.expect)
        if rule.kind in AGES:
            return "firing" if value >= rule.seconds else "pending" if judged.is_doubtful else "ok"
        if rule.kind == "certificate":
            return "firing" if value <= rule.seconds else "ok"
        if rule.kind == "refused" and rule.share is not None:
            is_wrong = judged.share > rule.share
        else:
            is_wrong = value > (rule.rate or 0.0)
        if not is_wrong:
            return "ok"
        if before is not None and before.unknown_since is not None and before.told is None:
            before = None
        return self._lasting(before, now, rule.seconds)

    def _lasting(self, before: _Standing | None, now: float, seconds: float) -> AlarmState:
        if before is not None and before.told is not None:
            return "firing"
        begun = now if before is None or before.state is None else before.begun
        return "firing" if now - begun >= seconds else "pending"

    def _change(self, subject: str, state: AlarmState, since: float, text: str, notify: str) -> AlarmChange:
        return AlarmChange(self.rule.name, self.rule.kind, subject, state, since, text, notify)

    def mark(self, subject: str) -> AlarmMark | None:
        """Return what to keep of a subject."""
        one = self.standing.get(subject)
        if one is None or one.state is None:
            return None
        return AlarmMark(self.rule.name, self.rule.kind, subject, one.state, one.since, one.text, one.told or "")

    def rows(self, state: StandingState) -> Iterator[AlarmRow]:
        """Yield those that are in a state."""
        for subject, one in self.standing.items():
            shown, since = one.shown
            if shown == state:
                yield AlarmRow(self.rule.name, self.rule.kind, subject, shown, since, one.text)

    @property
    def count(self) -> AlarmCount:
        """How many are in which state."""
        states = [one.shown[0] for one in self.standing.values()]
        counts = (states.count("pending"), states.count("firing"), states.count("unknown"))
        return AlarmCount(self.rule.name, self.rule.kind, *counts, self.left_out)

    def restore(self, mark: AlarmMark, now: float, at: float) -> None:
        """Go on with what was kept; it is unknown until there are facts of it."""
        begun = now - max(0.0, at - mark.since)
        told = mark.notify if mark.state == "firing" else None
        self.standing[mark.subject] = _Standing(mark.state, begun, mark.since, mark.text, at, told)


def _judged(fact: Fact) -> _Judged:
    return _Judged(fact.value, fact.share, fact.text, fact.is_doubtful, fact.is_first)


def _sum(before: _Judged, fact: Fact) -> _Judged:
    if before.value is None or fact.value is None:
        return before._replace(value=None)
    return _Judged(before.value + fact.value, before.share + fact.share, before.text)
