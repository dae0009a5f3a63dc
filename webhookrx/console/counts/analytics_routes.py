"""
The routes of analytics: what was counted, by time and by label.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import BAD_CALL, BUSY, ApiProblem
from webhookrx.console.api.route import CSV_TYPE, Answer, ApiCall, ApiRoute
from webhookrx.console.counts.analytics import (
    MOST_GROUPS,
    REASON,
    CountAnswer,
    CountRange,
    Measure,
    StepName,
    read_counts,
    read_last,
)
from webhookrx.console.counts.analytics_csv import csv_of
from webhookrx.console.counts.connector_queries import connector_query
from webhookrx.console.counts.count_reading import TimeLimit, TookTooLong
from webhookrx.errors import ConfigError
from webhookrx.management.rollups import ROLLUP_STEPS, RollupStep
from webhookrx.message.fields import split_path
from webhookrx.query import Query, QueryError

LAST_DAY: Final = 86_400
"""Seconds before C{to} at which a call without C{from} begins."""

LONGEST_QUESTION: Final = 5.0
"""Seconds."""

_Moment = Annotated[int, Meta(ge=0, lt=1 << 40)]


class TopQuery(msgspec.Struct, frozen=True, kw_only=True):
    """
    @ivar query: on the labels of connectors and routers; empty for all.
    @ivar begin: C{from}, seconds since the epoch; a day before C{to} by default, which is the end of this second.
    @ivar by: a label such as C{connector.labels.product}, or C{reason} or C{status}; empty for one sum.
    @ivar format: empty for what C{Accept} asks for.
    """

    query: Annotated[str, Meta(max_length=8192)] = ""
    begin: _Moment | None = msgspec.field(default=None, name="from")
    to: _Moment | None = None
    by: Annotated[str, Meta(max_length=256)] = ""
    measure: Measure = "messages"
    step: StepName = ""
    format: Literal["", "json", "csv"] = ""


class AnalyticsQuery(TopQuery, frozen=True, kw_only=True):
    """As L{TopQuery}, with points in time."""


class TopValue(msgspec.Struct, frozen=True):
    """
    A value of the label, and its measure in the whole time; None for a time to an answer of nothing. A last message is
    seconds since the epoch.
    """

    value: str
    total: float | None


class TopAnswer(msgspec.Struct, frozen=True):
    """
    @ivar step: the length of time by which the counts were summed that were read.
    @ivar series: how many matched.
    """

    step: str
    series: int
    values: list[TopValue]


class AnalyticsPoint(msgspec.Struct, frozen=True):
    """
    @ivar at: when the step begins, seconds since the epoch.
    """

    at: int
    amount: float | None


class AnalyticsValue(TopValue, frozen=True):
    """A value of the label, step by step; steps with nothing are left out."""

    points: list[AnalyticsPoint]


class AnalyticsAnswer(msgspec.Struct, frozen=True):
    """As L{TopAnswer}, with points in time."""

    step: str
    step_seconds: int
    series: int
    values: list[AnalyticsValue]


async def analytics(call: ApiCall) -> Answer:
    """Return counts by time and label."""
    asked: TopQuery = call.query
    if asked.measure == "last_message":
        raise ApiProblem(BAD_CALL, "measure: last_message has no points in time; ask /analytics/top.")
    return await _answered(call, _with_points)


async def top(call: ApiCall) -> Answer:
    """Return the values of a label with the most."""
    return await _answered(call, _totals)


def _with_points(found: CountAnswer) -> AnalyticsAnswer:
    values = [
        AnalyticsValue(group.value, group.total, [AnalyticsPoint(at, amount) for at, amount in group.points.items()])
        for group in found.groups
    ]
    return AnalyticsAnswer(found.step.name, found.step.seconds, found.series, values)


def _totals(found: CountAnswer) -> TopAnswer:
    return TopAnswer(found.step.name, found.series, [TopValue(group.value, group.total) for group in found.groups])


async def _answered(call: ApiCall, shown: Callable[[CountAnswer], AnalyticsAnswer | TopAnswer]) -> Answer:
    """Read and encode in the thread of the store: there may be some ten thousand points."""
    asked: TopQuery = call.query
    with_points = shown is _with_points
    read = _reading(asked, int(call.console.clock()), call.console.live.retention.steps, with_points=with_points)
    # It goes on while others are answered first, so that many questions keep nobody waiting for longer.
    limit = TimeLimit(LONGEST_QUESTION)
    as_csv = asked.format == "csv" or (not asked.format and CSV_TYPE in call.accepted)

    def work(db: sqlite3.Connection) -> bytes:
        found = read(db, limit)
        if as_csv:
            return csv_of(found, asked.measure, with_points=with_points)
        return msgspec.json.encode(shown(found))

    try:
        content: bytes = await call.console.store.read(work)
    except ConfigError as error:
        raise ApiProblem(BAD_CALL, error.problem) from error
    except TookTooLong:
        raise took_too_long() from None
    if not as_csv:
        return Answer(content)
    named = ("Content-Disposition", 'attachment; filename="analytics.csv"')
    return Answer(content, content_type=f"{CSV_TYPE}; charset=utf-8", headers=(named,))


def took_too_long() -> ApiProblem:
    """Return the problem of a question that took longer than L{LONGEST_QUESTION}."""
    sentence = (
        f"It took longer than {LONGEST_QUESTION:.0f} s; ask for a shorter time, a longer step, fewer series, or by "
        "labels without the router."
    )
    return ApiProblem(BUSY, sentence, headers=(("Retry-After", "30"),))


def _reading(
    asked: TopQuery, now: int, steps: Sequence[RollupStep], *, with_points: bool
) -> Callable[[sqlite3.Connection, TimeLimit], CountAnswer]:
    """
    Return what reads the answer.

    @raise ApiProblem: it can't be asked so.
    """
    query = _checked(asked)
    if asked.measure == "last_message":
        return lambda db, limit: read_last(db, query, asked.by, limit)
    end = now + 1 if asked.to is None else asked.to
    start = max(0, end - LAST_DAY) if asked.begin is None else asked.begin
    if start >= end:
        raise ApiProblem(BAD_CALL, "The time ends before it begins: from is a moment before to.")
    step = next((each for each in ROLLUP_STEPS if each.name == asked.step), None)
    wanted = CountRange(query=query, start=start, end=end, by=asked.by, step=step)
    measure = asked.measure
    return lambda db, limit: read_counts(db, wanted, measure, now, limit, steps, with_points=with_points)


def _checked(asked: TopQuery) -> Query:
    try:
        split_path(asked.by or REASON)
    except ValueError as error:
        raise ApiProblem(BAD_CALL, f"by: {error}") from error
    try:
        return connector_query(asked.query)
    except QueryError as error:
        raise ApiProblem(BAD_CALL, f"query: {error}") from error


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/analytics",
        Permission.VIEW,
        analytics,
        f"What connectors have counted, by time and by a label, of which {MOST_GROUPS} values are told apart.",
        answer=AnalyticsAnswer,
        also_gives=CSV_TYPE,
        query=AnalyticsQuery,
    ),
    ApiRoute(
        "GET",
        "/analytics/top",
        Permission.VIEW,
        top,
        "The values of a label with the most, without points in time.",
        answer=TopAnswer,
        also_gives=CSV_TYPE,
        query=TopQuery,
    ),
)
