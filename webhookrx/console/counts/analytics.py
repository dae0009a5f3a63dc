"""
Analytics: sums of what was counted, by time and by the value of a label.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import structs

from webhookrx.console.counts.count_reading import TimeLimit, WantedSums, read_plain, read_whole, rows_of_a_step
from webhookrx.console.counts.count_tables import KnownSeries, SeriesLabels, read_series
from webhookrx.errors import REASONS, ConfigError
from webhookrx.management.rollups import MOST_ROWS, ROLLUP_STEPS, CountedPart, RollupStep, answer_quantile, step_for
from webhookrx.message.fields import MISSING, get_field, split_path
from webhookrx.query import ANY, Query
from webhookrx.regex import RegexTooCostly
from webhookrx.work import TooMuchWork

Measure: TypeAlias = Literal[
    "messages", "bytes", "answers", "refused", "dropped", "text_bodies", "p50", "p99", "last_message"
]
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

_PLAIN: Final = ("messages", "bytes")
"""Measures that have columns of their own."""

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


def measured(part: CountedPart, measure: Measure) -> float | None:
    """Return one measure; C{p50} and C{p99} are seconds, and None without answers."""
    match measure:
        case "messages" | "bytes" | "dropped" | "text_bodies":
            count: int = getattr(part, measure)
            return count
        case "answers":
            return sum(part.answers) + sum(part.refused.values())
        case "refused":
            return sum(part.refused.values())
        case "p50":
            return answer_quantile(part.answers, 0.5)
        case "p99":
            return answer_quantile(part.answers, 0.99)
        case "last_message":
            return None


def needs_routers(query: Query, by: str) -> bool:
    """Tell whether labels are asked for that the cube of all routers lacks."""
    fields = {use.field for use in query.fields} | ({by} if by else set())
    return not fields <= _OF_CUBE or ANY in query.text


def read_counts(
    db: sqlite3.Connection,
    asked: CountRange,
    measure: Measure,
    now: int,
    limit: TimeLimit,
    steps: Sequence[RollupStep] = ROLLUP_STEPS,
) -> CountAnswer:
    """
    Read what was counted. It may take seconds: call it by C{ConsoleStore.read}.

    @param measure: any but C{last_message}; see L{read_last}.
    @param steps: those of L{ROLLUP_STEPS}, as long as they are kept now.
    @raise ConfigError: it would read more than L{MOST_ROWS} rows, or the query has too much to do with a label; the
        sentence says what to ask for.
    @raise webhookrx.console.counts.count_reading.TookTooLong: the time is over.
    """
    of_routers = needs_routers(asked.query, asked.by)
    with limit.bounds(db):
        known = 0
        values: dict[str, int] = {}
        places: dict[int, int] = {}
        for each in read_series(db, of_routers=of_routers):
            limit.check()
            known += 1
            if _matches(asked.query, each):
                places[each.number] = values.setdefault(_value(each.labels, asked.by), len(values))
        step = _step(asked, len(places), known, now, steps)
        wanted = WantedSums(of_routers, step, asked.start, asked.end, places, known)
        is_plain = measure in _PLAIN and asked.by not in (REASON, STATUS)
        read = read_plain if is_plain else read_whole
        groups: dict[str, dict[int, CountedPart]] = {}
        names = list(values)
        for at, place, part in read(db, wanted):
            for value, share in _shares(part, names[place], asked.by):
                points = groups.setdefault(value, {})
                known_part = points.get(at)
                if known_part is None:
                    points[at] = share
                else:
                    known_part.add(share)
    return CountAnswer(step, len(places), _told(groups, measure))


def read_last(db: sqlite3.Connection, query: Query, by: str, limit: TimeLimit) -> CountAnswer:
    """
    Read when the last message came, seconds since the epoch, of whatever has ever had one; the newest first.

    @raise ConfigError: see L{read_counts}.
    @raise webhookrx.console.counts.count_reading.TookTooLong: the time is over.
    """
    found: dict[str, float] = {}
    series = 0
    with limit.bounds(db):
        for each in read_series(db, of_routers=needs_routers(query, by)):
            limit.check()
            if _matches(query, each):
                series += 1
                value = _value(each.labels, by)
                found[value] = max(found.get(value, 0.0), each.last)
    ordered = sorted(((last, value) for value, last in found.items() if last), key=lambda each: (-each[0], each[1]))
    groups = [CountGroup(value, last, {}) for last, value in ordered[:MOST_GROUPS]]
    groups += [CountGroup(OTHER_VALUES, last, {}) for last, _ in ordered[MOST_GROUPS : MOST_GROUPS + 1]]
    return CountAnswer(ROLLUP_STEPS[-1], series, groups)


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


def _shares(part: CountedPart, value: str, by: str) -> Iterator[tuple[str, CountedPart]]:
    if by == REASON:
        for reason, count in part.refused.items():
            yield reason, CountedPart(refused={reason: count})
    elif by == STATUS:
        taken = structs.replace(part, refused={})
        if taken:
            yield _TAKEN, taken
        for reason, count in part.refused.items():
            yield _CLASSES.get(reason, _UNKNOWN_CLASS), CountedPart(refused={reason: count})
    else:
        yield value, part


def _told(groups: dict[str, dict[int, CountedPart]], measure: Measure) -> list[CountGroup]:
    """Return the groups by their measure, those with the most first; all past L{MOST_GROUPS} as one."""
    totals = {value: measured(_sum(points.values()), measure) for value, points in groups.items()}
    ordered = sorted(groups, key=lambda value: (-(totals[value] or 0), value))
    told = [CountGroup(value, totals[value], _points(groups[value], measure)) for value in ordered[:MOST_GROUPS]]
    rest: dict[int, CountedPart] = {}
    for value in ordered[MOST_GROUPS:]:
        for at, part in groups[value].items():
            rest.setdefault(at, CountedPart()).add(part)
    if rest:
        told.append(CountGroup(OTHER_VALUES, measured(_sum(rest.values()), measure), _points(rest, measure)))
    return told


def _points(parts: dict[int, CountedPart], measure: Measure) -> dict[int, float | None]:
    return {at: measured(parts[at], measure) for at in sorted(parts)}


def _sum(parts: Iterable[CountedPart]) -> CountedPart:
    total = CountedPart()
    for part in parts:
        total.add(part)
    return total
