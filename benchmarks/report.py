"""
Tables of what came out, for a terminal or for a page of Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.comparisons import Bound, Case, Ratio, Rounds, Spread
from benchmarks.outcome import Outcome

_GOALS = ("case", "what", "CPU ratio", "requests/s ratio", "at least", "go for", "")
_BOUNDS = ("case", "what", "figure", "at most", "go for", "")
_FIGURES = ("run", "requests/s", "CPU µs", "core", "p50 ms", "p99 ms", "p99.9 ms", "MiB")

_LEGEND = """\
Ratios: above 1, webhookrx is better. CPU is processor time a request, of all processes of a server: a server that fills
its core answers 1,000,000 / CPU µs requests a second. Behind each median are the least and the most of the rounds.
@64 is over 64 connections. * marks what the goal is about."""


def report(cases: Sequence[Case], outcome: Outcome, *, markdown: bool) -> str:
    """Return everything that is to be said about some cases."""
    table = _markdown_table if markdown else text_table
    rounds = outcome.rounds
    code = "`" if markdown else ""
    sections = [
        "\n".join(f"{name}: {value}" for name, value in outcome.machine.items()),
        _LEGEND,
        _disturbance(rounds),
        table(_GOALS, _ratio_rows(cases, rounds, code)),
        table(_BOUNDS, _bound_rows(cases, rounds, code)),
        table(_FIGURES, _figure_rows(cases, rounds)),
        "\n".join(f"{'- ' if markdown else ''}{code}{case.name}{code}: {case.note}." for case in cases if case.note),
        "\n".join(f"Not measured: {name}: {reason}" for name, reason in outcome.skipped.items()),
        "\n".join(f"WRONG: {name}: {reason}" for name, reason in outcome.broken.items()),
    ]
    if markdown:
        sections[0] = "\n".join(f"- {line}" for line in sections[0].splitlines())
    return "\n\n".join(section for section in sections if section) + "\n"


def _disturbance(rounds: Rounds) -> str:
    """Say how much else went on: on a busy machine the spread is wide, and requests a second mean little."""
    others = Spread.of(
        [figures["others"] for run in rounds.values() for figures in run if figures and "others" in figures]
    )
    if others is None:
        return ""
    return f"Meanwhile other programs took {others.median:.2f} cores ({others.least:.2f}..{others.most:.2f})."


def _ratio_rows(cases: Iterable[Case], rounds: Rounds, code: str) -> Iterator[tuple[str, ...]]:
    for case in cases:
        for ratio in case.comparisons:
            if isinstance(ratio, Ratio):
                goal = ratio.goal
                judged = ratio.spread(rounds)
                yield (
                    f"{code}{case.name}{code}",
                    f"{ratio.ours.name} / {ratio.other.name}",
                    _spread(ratio.spread(rounds, "cpu"), mark=ratio.by == "cpu" and goal is not None),
                    _spread(ratio.spread(rounds, "rate"), mark=ratio.by == "rate" and goal is not None),
                    "" if goal is None else f"{goal.enough:g}",
                    "" if goal is None else f"{goal.best:g}",
                    "" if goal is None or judged is None else goal.verdict(judged.median),
                )


def _bound_rows(cases: Iterable[Case], rounds: Rounds, code: str) -> Iterator[tuple[str, ...]]:
    for case in cases:
        for bound in case.comparisons:
            if isinstance(bound, Bound):
                goal = bound.goal
                spread = bound.spread(rounds)
                yield (
                    f"{code}{case.name}{code}",
                    bound.title,
                    f"{_spread(spread)} {bound.unit}".rstrip() if spread else "",
                    "" if goal is None else f"{goal.enough:g}",
                    "" if goal is None else f"{goal.best:g}",
                    "" if goal is None or spread is None else goal.verdict(spread.median),
                )


def _figure_rows(cases: Iterable[Case], rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Give each run a row, once, with the medians of its rounds."""
    names = dict.fromkeys(run.name for case in cases for comparison in case.comparisons for run in comparison.runs)
    for name in names:
        measured = [figures for figures in rounds.get(name, ()) if figures and "rate" in figures]
        if measured:
            cells = []
            for figure, form in (
                ("rate", ",.0f"), ("cpu", ".1f"), ("busy", ".0%"), ("p50", ".2f"), ("p99", ".2f"), ("p99.9", ".2f"),
                ("memory", ".0f"),
            ):  # fmt: skip
                spread = Spread.of([figures[figure] for figures in measured if figure in figures])
                cells.append("" if spread is None else format(spread.median, form))
            yield (name, *cells)


def _spread(spread: Spread | None, *, mark: bool = False) -> str:
    """Return C{median (least..most)}; a mark is put on the one that a goal is about."""
    if spread is None:
        return ""
    form = ".2f" if abs(spread.median) < 10 else ".1f"
    between = f" ({spread.least:{form}}..{spread.most:{form}})" if spread.least != spread.most else ""
    return f"{spread.median:{form}}{between}{' *' if mark else ''}"


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = list(rows)
    if not body:
        return ""
    widths = [max(len(cell) for cell in column) for column in zip(header, *body, strict=True)]
    lines = [header, ["-" * width for width in widths], *body]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = list(rows)
    if not body:
        return ""
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *body))
