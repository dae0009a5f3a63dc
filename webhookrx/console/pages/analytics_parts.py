"""
The parts of the page Analytics that have numbers: each is asked for and shown by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.counts.analytics import OTHER_VALUES
from webhookrx.console.counts.analytics_routes import AnalyticsAnswer, AnalyticsValue, TopAnswer
from webhookrx.console.pages.analytics_question import LABELS, MEASURES, OTHER, AnalyticsQuestion, shown, unit_of
from webhookrx.console.pages.charts import MOST_LINES, ChartLine, TimeChart, shares, time_chart
from webhookrx.console.pages.page import PageCall
from webhookrx.console.pages.rendering import duration, query_string, when

MOST_TOP: Final = 8
"""Values of a part that has those with the most."""

MOST_TIMES: Final = 6
"""Steps whose numbers are on the page; CSV has all."""

MOST_ROWS: Final = 15
"""Of the table beside the chart, for the size of the page with all of its parts; CSV has all."""

LAST_MESSAGE: Final = "last_message"

_STEP_NAMES: Final = {60: "minute", 600: "10 minutes", 3600: "hour", 86_400: "day"}
_NO_LABELS: Final = ("reason", "status", "")
_MEASURE_NAMES: Final = dict(MEASURES)
_LABEL_NAMES: Final = {field: name for field, name in LABELS if field not in ("", OTHER)}

_decode_points: Final = msgspec.json.Decoder(AnalyticsAnswer).decode
_decode_totals: Final = msgspec.json.Decoder(TopAnswer).decode


class ValueRow(msgspec.Struct, frozen=True):
    """
    One value of a label.

    @ivar value: text of others; empty where the label is missing.
    @ivar link: to its own numbers; empty for none.
    @ivar total: with its unit.
    @ivar share: how long its bar is, in percent; empty for none.
    @ivar highest: the largest amount of a step; of a last message the time since.
    @ivar at: when the step was.
    """

    value: str
    link: str
    total: str
    share: str
    highest: str = ""
    at: str = ""


class AnalyticsPart(msgspec.Struct, frozen=True, kw_only=True):
    """
    A part, as C{_analytics.html} writes it.

    @ivar label: what the values are of.
    @ivar measure: what the totals are of.
    @ivar values: how many rows there are in all, at most 50 and the others.
    @ivar is_moment: totals are last messages.
    @ivar lines: names of the lines of the chart.
    @ivar times: the newest steps: when, and an amount of each line.
    @ivar steps: how many there are in all.
    @ivar more: a path with more of it; empty for none.
    @ivar csv: the path of the same as CSV.
    @ivar again: the path by which it is asked for again each minute; empty where that would change nothing.
    """

    name: str
    heading: str
    problem: ApiProblem | None = None
    label: str = ""
    measure: str = ""
    rows: Sequence[ValueRow] = ()
    values: int = 0
    is_moment: bool = False
    chart: TimeChart | None = None
    lines: Sequence[str] = ()
    times: Sequence[tuple[str, Sequence[str]]] = ()
    steps: int = 0
    about: str = ""
    more: str = ""
    csv: str = ""
    again: str = ""


class Asking(msgspec.Struct, frozen=True):
    """What parts are made of."""

    call: PageCall
    question: AnalyticsQuestion
    now: float

    async def points(self, **others: str) -> AnalyticsAnswer:
        """Return counts by time."""
        answer = await self.call.api("GET", "/analytics", query=self.question.for_api(self.now, **others))
        return _decode_points(answer.body)

    async def totals(self, **others: str) -> TopAnswer:
        """Return counts of the whole time."""
        answer = await self.call.api("GET", "/analytics/top", query=self.question.for_api(self.now, **others))
        return _decode_totals(answer.body)

    def csv(self, path: str, **others: str) -> str:
        """Return the path of the API that gives the same as CSV."""
        return f"/api/v1{path}{query_string(**self.question.for_api(self.now, **others), format='csv')}"


async def _counts(asking: Asking) -> AnalyticsPart:
    """Return the measure by time and label."""
    question, measure = asking.question, asking.question.measure
    name = _MEASURE_NAMES.get(measure, measure)
    heading = f"{name} by {label_name(question.field)}" if question.field else name
    if measure == LAST_MESSAGE:
        return await _top(asking, "counts", heading, by=question.field, measure=measure, most=MOST_ROWS)
    answer = await asking.points()
    unit, known = unit_of(measure), answer.values
    step = _STEP_NAMES[answer.step_seconds]
    title = f"{name} in each {step}" if unit == "seconds" else f"{name} per {step}"
    totals = shares(each.total for each in known)
    rows = [_row(question, question.field, each, unit, share) for each, share in zip(known, totals, strict=True)]
    return AnalyticsPart(
        name="counts",
        heading=heading,
        label=label_name(question.field) or "sum",
        measure=name,
        rows=rows[:MOST_ROWS],
        values=len(rows),
        **_over_time(asking, "counts", title, answer, known, unit),
        about=f"{answer.series:,} series match.",
        csv=asking.csv("/analytics"),
    )


async def _latency(asking: Asking) -> AnalyticsPart:
    """Return the times to answer."""
    half, most = await asking.points(measure="p50", by=""), await asking.points(measure="p99", by="")
    # Both are one sum, or none.
    known = [
        msgspec.structs.replace(value, value=name)
        for name, answer in (("p50", half), ("p99", most))
        for value in answer.values
    ]
    title = f"Time to answer in each {_STEP_NAMES[half.step_seconds]}"
    return AnalyticsPart(
        name="latency",
        heading="Time to answer",
        label="of all answers",
        measure="whole time",
        rows=[_row(asking.question, "", each, "seconds", "") for each in known],
        **_over_time(asking, "latency", title, half, known, "seconds"),
        more=asking.question.url(measure="p99"),
        csv=asking.csv("/analytics", measure="p99", by=""),
    )


async def _connectors(asking: Asking) -> AnalyticsPart:
    return await _talkers(asking, "connectors", "connector.name", "Connectors")


async def _routers(asking: Asking) -> AnalyticsPart:
    return await _talkers(asking, "routers", "router", "Routers")


async def _talkers(asking: Asking, name: str, by: str, what: str) -> AnalyticsPart:
    """Return what has the most of the measure, or of messages for one that is no count."""
    measure = asking.question.measure
    measure = measure if unit_of(measure) in ("count", "bytes") else "messages"
    heading = f"{what} with the most {_MEASURE_NAMES.get(measure, measure).lower()}"
    return await _top(asking, name, heading, by=by, measure=measure)


async def _refusals(asking: Asking) -> AnalyticsPart:
    return await _top(asking, "refusals", "Refused requests by reason", by="reason", measure="refused")


async def _last(asking: Asking) -> AnalyticsPart:
    by = asking.question.field
    by = "connector.name" if by in _NO_LABELS else by
    return await _top(asking, "last", f"Last message by {label_name(by)}", by=by, measure=LAST_MESSAGE)


async def _top(
    asking: Asking, name: str, heading: str, *, by: str, measure: str, most: int = MOST_TOP
) -> AnalyticsPart:
    """Return the values with the most; of last messages the newest, with bars of the silence since."""
    answer = await asking.totals(by=by, measure=measure)
    values, unit = answer.values[:most], unit_of(measure)
    is_moment = unit == "moment"
    lengths = shares(max(0.0, asking.now - (each.total or 0)) if is_moment else each.total for each in values)
    in_choice = by if by in _LABEL_NAMES else OTHER
    more = asking.question.url(by=in_choice, label=by if in_choice == OTHER else "", measure=measure)
    return AnalyticsPart(
        name=name,
        heading=heading,
        label=label_name(by) or "sum",
        measure=_MEASURE_NAMES[measure],
        rows=[
            ValueRow(
                each.value,
                asking.question.narrowed(by, each.value) if each.value != OTHER_VALUES else "",
                shown(each.total, unit),
                share,
                highest=duration(max(0.0, asking.now - each.total)) if is_moment and each.total else "",
            )
            for each, share in zip(values, lengths, strict=True)
        ],
        values=len(answer.values),
        is_moment=is_moment,
        more=more if name != "counts" and len(answer.values) > len(values) else "",
        csv=asking.csv("/analytics/top", by=by, measure=measure),
    )


def _row(question: AnalyticsQuestion, field: str, each: AnalyticsValue, unit: str, share: str) -> ValueRow:
    highest = max(each.points, key=lambda point: point.amount or 0, default=None)
    return ValueRow(
        each.value,
        question.narrowed(field, each.value) if each.value != OTHER_VALUES else "",
        shown(each.total, unit),
        share,
        "" if highest is None else shown(highest.amount, unit),
        "" if highest is None else when(highest.at),
    )


def _over_time(
    asking: Asking, name: str, title: str, answer: AnalyticsAnswer, known: Sequence[AnalyticsValue], unit: str
) -> dict[str, Any]:
    """Return what a part has of steps: their chart, and the numbers of the newest."""
    begin, end = asking.question.span(asking.now)
    seconds, nothing = answer.step_seconds, None if unit == "seconds" else 0
    lines = [
        ChartLine(_name(each.value, len(known)), {point.at: point.amount for point in each.points})
        for each in known[:MOST_LINES]
    ]
    chart = time_chart(
        name,
        title,
        lines,
        start=begin,
        end=end,
        step=seconds,
        now=asking.now,
        unit="bytes" if unit == "bytes" else "seconds" if unit == "seconds" else "count",
        missing="gap" if nothing is None else "zero",
    )
    steps = range(begin // seconds * seconds, min(end, int(asking.now) + 1), seconds)
    newest = [
        (when(at), [shown(line.points.get(at, nothing), unit) for line in lines])
        for at in reversed(steps[-MOST_TIMES:])
    ]
    return {"chart": chart, "lines": [line.name for line in lines], "times": newest, "steps": len(steps)}


def _name(value: str, many: int) -> str:
    return value or ("(none)" if many > 1 else "sum")


def label_name(field: str) -> str:
    """Return what people call a label; empty for one sum."""
    return _LABEL_NAMES.get(field, field) if field else ""


PartMaker = Callable[[Asking], Awaitable[AnalyticsPart]]

PARTS: Final[dict[str, tuple[str, PartMaker]]] = {
    "counts": ("Chart and table", _counts),
    "connectors": ("Connectors with the most", _connectors),
    "routers": ("Routers with the most", _routers),
    "refusals": ("Refused requests by reason", _refusals),
    "last": ("Last message", _last),
    "latency": ("Time to answer", _latency),
}
"""By name: the heading while there are no numbers, and what makes it."""


async def part_of(name: str, call: PageCall, question: AnalyticsQuestion) -> AnalyticsPart:
    """Return a part; what can't be asked so is a part, too, with its problem."""
    heading, make = PARTS[name]
    try:
        part = await make(Asking(call, question, call.console.clock()))
    except ApiProblem as problem:
        part = AnalyticsPart(name=name, heading=heading, problem=problem)
    return msgspec.structs.replace(part, again=question.url(numbers=name)) if question.goes_on else part
