"""
Analytics: sums of what was counted, by time and by the value of a label.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from webhookrx.console.counts.count_reading import TimeLimit, WantedSums, read_whole, rows_of_a_step
from webhookrx.console.counts.count_tables import KnownSeries, SeriesLabels, read_series
from webhookrx.console.counts.group_sums import GROUP_SUMS, GroupMeasure, measured
from webhookrx.errors import REASONS, ConfigError
from webhookrx.management.rollups import MOST_ROWS, ROLLUP_STEPS, CountedPart, RollupStep, step_for
from webhookrx.message.fields import MISSING, get_field, split_path
from webhookrx.query import ANY, Query
from webhookrx.regex import RegexTooCostly
from webhookrx.work import TooMuchWork

Measure: TypeAlias = GroupMeasure | Literal["last_message"]
StepName: TypeAlias = Literal["", "1m", "10m", "1h", "1d"]

MOST_GROUPS: Final = 50
"""Values of a label that are told apart; what has others is summed up as L{OTHER_VALUES}."""

OTHER_VALUES: Final = "(others)"

REASON: Final = "reason"
"""In place of a label: the reasons for refusals."""

STATUS: Final = "status"
"""In place of a label: the classes of answers, such as C{2xx}; refusals have the status of their reason."""

_CLASSES: Final = {reason.word: f"{reason.status // 100}xx" for reason in REASONS}
_TAKEN: Final = "2xx"
_UNKNOWN_CLASS: Final = "other"

_OF_CUBE: Final = frozenset(
    prefix + field
    for prefix in ("", "meta.")
    for field in ("connector.type", "connector.port", "connector.labels.product", "connector.labels.vendor")
) | {"rule", REASON, STATUS}


class CountRange(msgspec.Struct, frozen=True, kw_only=True):
    """
    What is asked for.

    @ivar query: on the labels of series.
    @ivar start: seconds since the epoch; C{end} is not included.
    @ivar by: a field such as C{connector.labels.product}, or L{REASON} or L{STATUS}; empty for one sum.
    @ivar step: C{None} for the finest that is kept for so long and can be read.
    """

    query: Query
    start: int
    end: int
    by: str = ""
    step: RollupStep | None = None


class CountGroup(msgspec.Struct, frozen=True):
    """
    What one value of a label has.

    @ivar value: empty where the label is missing.
    @ivar total: the measure in the whole time; None for a time to an answer of nothing.
    @ivar points: the measure by the seconds at which a step begins, in their order; steps with nothing are left out.
    """

    value: str
    total: float | None
    points: dict[int, float | None]


class CountAnswer(msgspec.Struct, frozen=True):
    """
    @ivar step: whose sums were read.
    @ivar series: how many matched.
    @ivar groups: those with the most first.
    """

    step: RollupStep
    series: int
    groups: list[CountGroup]


def needs_routers(query: Query, by: str) -> bool:
    """Tell whether labels are asked for that the cube of all routers lacks."""
    fields = {use.field for use in query.fields} | ({by} if by else set())
    return not fields <= _OF_CUBE or ANY in query.text


def read_counts(
    db: sqlite3.Connection,
    asked: CountRange,
    measure: GroupMeasure,
    now: int,
    limit: TimeLimit,
    steps: Sequence[RollupStep] = ROLLUP_STEPS,
    *,
    with_points: bool = True,
) -> CountAnswer:
    """
    Read what was counted. It may take seconds: call it by C{ConsoleStore.read}.

    @param measure: any but C{last_message}; see L{read_last}.
    @param steps: those of L{ROLLUP_STEPS}, as long as they are kept now.
    @param with_points: groups have points; without, it takes less time.
    @raise ConfigError: it would read more than L{MOST_ROWS} rows, or the query has too much to do with a label; the
        sentence says what to ask for.
    @raise webhookrx.console.counts.count_reading.TookTooLong: the time is over.
    """
    of_routers = needs_routers(asked.query, asked.by)
    with limit.bounds(db):
        known = 0
        values: dict[str, int] = {}
        places: dict[int, int] = {}
        for each, is_wanted in matching_series(db, asked.query, asked.by, limit):
            known += 1
            if is_wanted:
                places[each.number] = values.setdefault(_value(each.labels, asked.by), len(values))
        step = _step(asked, len(places), known, now, steps)
        wanted = WantedSums(of_routers, step, asked.start, asked.end, places, known)
        if asked.by in (REASON, STATUS):
            groups = _by_refusal(db, wanted, asked.by, measure)
        else:
            groups = _by_label(db, wanted, list(values), measure, with_points=with_points)
    return CountAnswer(step, len(places), groups)


def read_last(db: sqlite3.Connection, query: Query, by: str, limit: TimeLimit) -> CountAnswer:
    """
    Read when the last message came, seconds since the epoch, of whatever has ever had one; the newest first.

    @raise ConfigError: see L{read_counts}.
    @raise webhookrx.console.counts.count_reading.TookTooLong: the time is over.
    """
    found: dict[str, float] = {}
    series = 0
    with limit.bounds(db):
        for each, is_wanted in matching_series(db, query, by, limit):
            if is_wanted:
                series += 1
                value = _value(each.labels, by)
                found[value] = max(found.get(value, 0.0), each.last)
    ordered = sorted(((last, value) for value, last in found.items() if last), key=lambda each: (-each[0], each[1]))
    groups = [CountGroup(value, last, {}) for last, value in ordered[:MOST_GROUPS]]
    groups += [CountGroup(OTHER_VALUES, last, {}) for last, _ in ordered[MOST_GROUPS : MOST_GROUPS + 1]]
    return CountAnswer(ROLLUP_STEPS[-1], series, groups)


def matching_series(
    db: sqlite3.Connection, query: Query, by: str, limit: TimeLimit
) -> Iterator[tuple[KnownSeries, bool]]:
    """
    Yield all series that have the labels which are asked for, and whether a query matches each.

    @raise ConfigError: the query has too much to do with a label.
    @raise webhookrx.console.counts.count_reading.TookTooLong: the time is over.
    """
    for each in read_series(db, of_routers=needs_routers(query, by)):
        limit.check()
        yield each, not query.text or _matches(query, each)


def _step(asked: CountRange, wanted: int, known: int, now: int, steps: Sequence[RollupStep]) -> RollupStep:
    rows = rows_of_a_step(wanted, known)
    step = asked.step or step_for(asked.start, asked.end, rows, now, steps)
    if step is None or ((asked.end - asked.start) // step.seconds + 2) * rows > MOST_ROWS:
        raise ConfigError(
            f"That is more than {MOST_ROWS:,} sums, of {wanted:,} series; ask for a shorter time, a longer step, up to "
            f"{ROLLUP_STEPS[-1].name}, fewer series, or by labels without the router."
        )
    return step


def _matches(query: Query, series: KnownSeries) -> bool:
    try:
        return query.matches(series.labels.record)
    except (TooMuchWork, RegexTooCostly):
        raise ConfigError("The query has too much to do with the labels of a connector.") from None


def _value(labels: SeriesLabels, by: str) -> str:
    if not by or by in (REASON, STATUS):
        return ""
    value: Any = get_field(labels.record, split_path(by))
    return str(value) if isinstance(value, str | int) and value is not MISSING else ""


def _by_label(
    db: sqlite3.Connection, wanted: WantedSums, names: Sequence[str], measure: GroupMeasure, *, with_points: bool
) -> list[CountGroup]:
    """
    Return the groups by their measure, those with the most first; all past L{MOST_GROUPS} as one.

    Of many groups, most of which are summed up as one, only the totals are read before it is known which those are.
    """
    sums = GROUP_SUMS[measure]
    points: dict[int, dict[int, Any]] = {}
    if with_points and len(names) <= MOST_GROUPS + 1:
        points = sums.points(db, wanted)
        totals = {place: sums.total(each.values()) for place, each in points.items()}
    else:
        totals = sums.totals(db, wanted)
    shown = {place: sums.shown(total) for place, total in totals.items()}
    ordered = sorted(filter(shown.get, totals), key=lambda place: (-(shown[place] or 0), names[place]))
    first, others = ordered[:MOST_GROUPS], ordered[MOST_GROUPS:]
    if with_points and not points:
        ranks = {place: rank for rank, place in enumerate(first)}
        of = {number: ranks.get(place, MOST_GROUPS) for number, place in wanted.places.items() if place in totals}
        ranked = sums.points(db, wanted._replace(places=of))
        points = {place: ranked.get(rank, {}) for place, rank in ranks.items()}
        rest = ranked.get(MOST_GROUPS, {})
    else:
        rest = {}
        for place in others:
            for at, amount in points.get(place, {}).items():
                rest[at] = sums.total([rest[at], amount]) if at in rest else amount

    def told(amounts: dict[int, Any]) -> dict[int, float | None]:
        return {at: sums.shown(amounts[at]) for at in sorted(amounts)}

    groups = [CountGroup(names[place], shown[place], told(points.get(place, {}))) for place in first]
    if others:
        groups.append(CountGroup(OTHER_VALUES, sums.shown(sums.total(totals[place] for place in others)), told(rest)))
    return groups


def _by_refusal(db: sqlite3.Connection, wanted: WantedSums, by: str, measure: GroupMeasure) -> list[CountGroup]:
    """Return the reasons for refusals, or the classes of statuses, as groups."""
    groups: dict[str, dict[int, CountedPart]] = {}
    for at, _, part in read_whole(db, wanted):
        refused, part.refused = part.refused, {}
        if by == STATUS and part:
            _add(groups, _TAKEN, at, part)
        for reason, count in refused.items():
            value = reason if by == REASON else _CLASSES.get(reason, _UNKNOWN_CLASS)
            _add(groups, value, at, CountedPart(refused={reason: count}))
    return _told(groups, measure)


def _add(groups: dict[str, dict[int, CountedPart]], value: str, at: int, part: CountedPart) -> None:
    points = groups.setdefault(value, {})
    known = points.get(at)
    if known is None:
        points[at] = part
    else:
        known.add(part)


def _told(groups: dict[str, dict[int, CountedPart]], measure: GroupMeasure) -> list[CountGroup]:
    """Return the groups by their measure, those with the most first; all past L{MOST_GROUPS} as one."""
    totals = {value: measured(_sum(points.values()), measure) for value, points in groups.items()}
    ordered = sorted(filter(totals.get, groups), key=lambda value: (-(totals[value] or 0), value))
    told = [CountGroup(value, totals[value], _points(groups[value], measure)) for value in ordered[:MOST_GROUPS]]
    rest: dict[int, CountedPart] = {}
    for value in ordered[MOST_GROUPS:]:
        for at, part in groups[value].items():
            rest.setdefault(at, CountedPart()).add(part)
    if rest:
        told.append(CountGroup(OTHER_VALUES, measured(_sum(rest.values()), measure), _points(rest, measure)))
    return told


def _points(parts: dict[int, CountedPart], measure: GroupMeasure) -> dict[int, float | None]:
    return {at: measured(parts[at], measure) for at in sorted(parts)}


def _sum(parts: Iterable[CountedPart]) -> CountedPart:
    total = CountedPart()
    for part in parts:
        total.add(part)
    return total
