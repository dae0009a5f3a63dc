"""
Charts as SVG that is made here: where lines, axes and bars go. C{templates/_chart.html} writes them, and so all text is
escaped like that of any page. No chart stands without a table of the same numbers.

Text isn't stretched with the drawing: points in time are percents of a width that only the browser knows, heights are
CSS pixels, and the lines alone have coordinates of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import msgspec

from webhookrx.console.pages.rendering import duration, number, size

WIDTH: Final = 1000
"""How far lines go to the right, in their own coordinates."""

HEIGHT: Final = 180
"""How far they go down; CSS pixels, too."""

TOP: Final = 18
"""Pixels above the lines, for the topmost number."""

MOST_LINES: Final = 8
"""Colours of lines that can be told apart; C{console.css} has as many."""

MOST_POINTS: Final = 400
"""Of all lines together: what a page may weigh."""

Unit: TypeAlias = Literal["count", "rate", "bytes", "seconds"]
"""Of what there are no parts is a C{count}; a C{rate} is any number."""

_TIME_STEPS: Final = tuple(
    [60 * n for n in (1, 2, 5, 10, 15, 30)]
    + [3600 * n for n in (1, 2, 3, 6, 12)]
    + [86_400 * n for n in (1, 2, 7, 14, 28, 91, 182, 364)]
)
_MOST_TIMES: Final = 6
_DAY: Final = 86_400


def seconds(value: float) -> str:
    """Return a short time, such as C{250 ms} or C{2.5 s}."""
    return f"{value:.3g} s" if 1 <= value < 60 else duration(value)


_SHOWN: Final[Mapping[Unit, Callable[[float], str]]] = {
    "count": number,
    "rate": number,
    "bytes": size,
    "seconds": seconds,
}


class ChartLine(msgspec.Struct, frozen=True):
    """
    What a line is to show.

    @ivar points: amounts by when their step begins, seconds since the epoch; None where there is no amount.
    """

    name: str
    points: Mapping[int, float | None]


class DrawnLine(msgspec.Struct, frozen=True):
    """
    @ivar name: text of others; empty for the only line.
    @ivar path: of the line.
    @ivar area: path of what is below it; empty for none.
    """

    name: str
    path: str
    area: str = ""


class Mark(msgspec.Struct, frozen=True):
    """
    A number at the vertical axis.

    @ivar y: pixels from the top.
    """

    y: int
    text: str


class TimeMark(msgspec.Struct, frozen=True):
    """
    A point in time at the horizontal axis.

    @ivar x: percent of the width.
    @ivar anchor: which end of the text is at C{x}.
    @ivar at: in UTC, as ISO 8601.
    @ivar is_day: the text is a day of UTC; else it is a time, which C{chart.js} shows in the reader's zone.
    """

    x: str
    anchor: Literal["start", "middle", "end"]
    at: str
    text: str
    is_day: bool


class TimeChart(msgspec.Struct, frozen=True):
    """
    Lines over time.

    @ivar name: unique on its page, for ids.
    @ivar title: what is shown, with its unit.
    @ivar about: in a sentence, for who doesn't see it.
    """

    name: str
    title: str
    about: str
    lines: list[DrawnLine]
    marks: list[Mark]
    times: list[TimeMark]

    @property
    def is_local(self) -> bool:
        """Whether times are shown in the reader's zone, when there is a script."""
        return not all(mark.is_day for mark in self.times)


def time_chart(
    name: str,
    title: str,
    lines: Sequence[ChartLine],
    *,
    start: int,
    end: int,
    step: int,
    now: float,
    unit: Unit = "count",
    missing: Literal["zero", "gap"] = "zero",
) -> TimeChart:
    """
    Return a chart of the first L{MOST_LINES} lines. A step that is not over at C{now} is left out: it would look like
    a fall.

    @param start: seconds since the epoch, as is C{end}.
    @param step: seconds.
    @param missing: what a step without an amount is: nothing was counted, or nothing is known.
    """
    first, past = start // step * step, min(end, int(now) // step * step)
    steps = range(first, past, step)
    rows = [_amounts(line, steps, missing) for line in lines[:MOST_LINES]]
    known = [amount for row in rows for amount in row if amount is not None]
    rise = _rise(max(known, default=0.0), unit)
    top = rise * max(1, math.ceil(max(known, default=0.0) / rise - 1e-9))
    most = max(2, MOST_POINTS // max(1, len(rows)))

    def place(index: int, amount: float) -> tuple[int, int]:
        middle = min(max(steps[index] + step / 2, start), end)
        return round((middle - start) / (end - start) * WIDTH), round(HEIGHT * (1 - amount / top))

    drawn = []
    for line, row in zip(lines, rows, strict=False):
        runs = [[place(index, amount) for index, amount in run] for run in _runs(_fewer(row, most))]
        area = "".join(_area(run) for run in runs) if len(lines) == 1 else ""
        drawn.append(DrawnLine(line.name, "".join(_path(run) for run in runs), area))
    marks = [
        Mark(TOP + round(HEIGHT * (1 - index * rise / top)), _SHOWN[unit](index * rise))
        for index in range(round(top / rise) + 1)
    ]
    return TimeChart(name, title, _about(lines, rows, steps, unit), drawn, marks, _times(start, end))


def shares(amounts: Iterable[float | None]) -> list[str]:
    """Return how long the bars of some amounts are, in percent of the longest."""
    given = [amount or 0 for amount in amounts]
    most = max(given, default=0)
    return [f"{100 * amount / most:.4g}" if most > 0 and amount > 0 else "0" for amount in given]


def _amounts(line: ChartLine, steps: range, missing: Literal["zero", "gap"]) -> list[float | None]:
    nothing = 0.0 if missing == "zero" else None
    return [line.points.get(at, nothing) for at in steps]


def _fewer(row: Sequence[float | None], most: int) -> list[tuple[int, float | None]]:
    """Return at most so many points of a row with their indexes: of each stretch the lowest and the highest."""
    if len(row) <= most:
        return list(enumerate(row))
    fewer: list[tuple[int, float | None]] = []
    length = math.ceil(len(row) / (most // 2))
    for begin in range(0, len(row), length):
        known = [
            (amount, index) for index, amount in enumerate(row[begin : begin + length], begin) if amount is not None
        ]
        if known:
            fewer += [(index, row[index]) for index in sorted({min(known)[1], max(known)[1]})]
        else:
            fewer.append((begin, None))
    return fewer


def _runs(points: Sequence[tuple[int, float | None]]) -> list[list[tuple[int, float]]]:
    """Return the stretches of points without a gap."""
    runs: list[list[tuple[int, float]]] = []
    for is_known, run in itertools.groupby(points, lambda point: point[1] is not None):
        if is_known:
            runs.append([(index, amount) for index, amount in run if amount is not None])
    return runs


def _path(run: Sequence[tuple[int, int]]) -> str:
    """Return a line; of one point a dot, which a stroke with round ends makes of no length."""
    # Of points at one height the outer ones are enough.
    (x, y), *others = [
        point
        for index, point in enumerate(run)
        if not 0 < index < len(run) - 1 or not run[index - 1][1] == point[1] == run[index + 1][1]
    ]
    return f"M{x},{y}" + (" ".join(f"{'L' if not index else ''}{x},{y}" for index, (x, y) in enumerate(others)) or "h0")


def _area(run: Sequence[tuple[int, int]]) -> str:
    return f"{_path(run)}V{HEIGHT}H{run[0][0]}Z" if len(run) > 1 else ""


def _rise(highest: float, unit: Unit) -> float:
    """Return the distance of numbers at the axis: 1, 2 or 5 times a power of ten, of bytes in their larger unit."""
    if highest <= 0:
        return 0.001 if unit == "seconds" else 1
    if unit in ("count", "bytes") and highest <= 4:
        return 1
    scale = 1024.0 ** min(4, max(0, math.floor(math.log(highest, 1024)))) if unit == "bytes" else 1.0
    least = highest / scale / 4
    power = 10.0 ** math.floor(math.log10(least))
    rise = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    return rise * scale


def _times(start: int, end: int) -> list[TimeMark]:
    distance = next((each for each in _TIME_STEPS if (end - start) / each <= _MOST_TIMES), (end - start) // 5 or 1)
    marks = []
    for at in range(-(-start // distance) * distance, end + 1, distance):
        share = (at - start) / (end - start)
        moment = datetime.fromtimestamp(at, UTC)
        is_day = distance >= _DAY
        text = f"{moment.day} {moment:%b}" if is_day or at % _DAY == 0 else f"{moment:%H:%M}"
        anchor: Literal["start", "middle", "end"] = "start" if share < 0.06 else "end" if share > 0.94 else "middle"
        marks.append(TimeMark(f"{100 * share:.2f}", anchor, f"{moment:%Y-%m-%dT%H:%M:%SZ}", text, is_day))
    return marks


def _about(lines: Sequence[ChartLine], rows: Sequence[Sequence[float | None]], steps: range, unit: Unit) -> str:
    known = [(amount, index, line) for line, row in enumerate(rows) for index, amount in enumerate(row) if amount]
    if not known:
        return "Nothing was counted in this time."
    amount, index, line = max(known, key=lambda each: (each[0], each[1]))
    moment = datetime.fromtimestamp(steps[index], UTC)
    of = f" of {lines[line].name}" if len(rows) > 1 else ""
    lines_shown = f"{len(rows)} lines. " if len(rows) > 1 else ""
    return f"{lines_shown}The highest is {_SHOWN[unit](amount)}{of} at {moment:%Y-%m-%d %H:%M} UTC. The table has all."
