"""
Tables of what came out, for a terminal or for a page of Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.comparisons import Bound, Case, Goal, Ratio, Spread
from benchmarks.outcome import Outcome
from benchmarks.runs import Asking, Figures

_GOALS = ("case", "what", "ratio", "by", "at least", "go for", "", "requests/s", "remark")
_BOUNDS = ("case", "what", "figure", "at most", "go for", "", "remark")
_FIGURES = ("case", "run", "compiled", "requests/s", "CPU µs", "core", "p50 ms", "p99 ms", "p99.9 ms", "MiB")

_BY = {"cpu": "CPU", "rate": "requests/s"}

_LEGEND = """\
Ratios: above 1, webhookrx is better. CPU is processor time a request, of all processes of a server: a server that fills
its core answers 1,000,000 / CPU µs requests a second. Behind each median are the least and the most of the rounds; what
a row compares ran right after one another in each of them. @64 is over 64 connections. The remark is what the other one
does not do, in its favour."""


def report(cases: Sequence[Case], outcome: Outcome, *, markdown: bool) -> str:
    """Return everything that is to be said about some cases."""
    sections = parts(cases, outcome, markdown=markdown).values()
    return "\n\n".join(section for section in sections if section) + "\n"


def parts(cases: Sequence[Case], outcome: Outcome, *, markdown: bool) -> dict[str, str]:
    """Return the parts of the report by name."""
    table = markdown_table if markdown else text_table
    bullet, code = ("- ", "`") if markdown else ("", "")
    return {
        "conditions": "\n".join(f"{bullet}{name}: {value}" for name, value in outcome.machine.items()),
        "legend": _LEGEND,
        "circumstances": "\n".join(filter(None, (_disturbance(outcome), _compiled(cases, outcome)))),
        "ratios": table(_GOALS, _ratio_rows(cases, outcome, code)),
        "figures": table(_BOUNDS, _bound_rows(cases, outcome, code)),
        "runs": table(_FIGURES, _figure_rows(cases, outcome)),
        "notes": "\n".join(f"{bullet}{code}{case.name}{code}: {case.note}." for case in cases if case.note),
        "skipped": "\n".join(f"Not measured: {name}: {reason}" for name, reason in outcome.skipped.items()),
        "broken": "\n".join(f"WRONG: {name}: {reason}" for name, reason in outcome.broken.items()),
    }


def _disturbance(outcome: Outcome) -> str:
    """Say how much else went on: on a busy machine the spread is wide, and requests a second mean little."""
    others = Spread.of([figures["others"] for figures in _measured(outcome) if "others" in figures])
    if others is None:
        return ""
    return f"Meanwhile other programs took {others.median:.2f} cores ({others.least:.2f}..{others.most:.2f})."


def _compiled(cases: Iterable[Case], outcome: Outcome) -> str:
    """Say whether the compiled path was in use where it was to be."""
    uses: dict[str, bool] = {}
    for case in cases:
        runs = {run for comparison in case.comparisons for run in comparison.runs}
        for run in sorted(runs, key=lambda run: run.name):
            if isinstance(run, Asking) and run.server.compiles:
                for figures in outcome.of(case).get(run.name, ()):
                    if figures and "compiled" in figures:
                        uses[run.name] = uses.get(run.name, True) and bool(figures["compiled"])
    without = [run for run, used in uses.items() if not used]
    if not uses:
        return ""
    if len(without) == len(uses):
        return "The compiled path was NOT in use."
    return f"The compiled path was in use{', but not in: ' + ', '.join(without) if without else ''}."


def _measured(outcome: Outcome) -> Iterator[Figures]:
    """Return whatever was measured."""
    for runs in outcome.rounds.values():
        for rounds in runs.values():
            yield from filter(None, rounds)


def _ratio_rows(cases: Iterable[Case], outcome: Outcome, code: str) -> Iterator[tuple[str, ...]]:
    for case in cases:
        for ratio in case.comparisons:
            if isinstance(ratio, Ratio):
                judged = ratio.spread(outcome.of(case))
                yield (
                    f"{code}{case.name}{code}",
                    f"{ratio.ours.name} / {ratio.other.name}",
                    spread_text(judged),
                    _BY.get(ratio.by, ratio.by),
                    *_goal(ratio.goal, judged),
                    "" if ratio.by == "rate" else spread_text(ratio.spread(outcome.of(case), "rate")),
                    ratio.remark,
                )


def _bound_rows(cases: Iterable[Case], outcome: Outcome, code: str) -> Iterator[tuple[str, ...]]:
    for case in cases:
        for bound in case.comparisons:
            if isinstance(bound, Bound):
                spread = bound.spread(outcome.of(case))
                yield (
                    f"{code}{case.name}{code}",
                    bound.titled(outcome.of(case)),
                    f"{spread_text(spread)} {bound.unit}".rstrip() if spread else "",
                    *_goal(bound.goal, spread),
                    bound.remark,
                )


def _goal(goal: Goal | None, spread: Spread | None) -> tuple[str, str, str]:
    if goal is None:
        return "", "", ""
    return f"{goal.enough:.3g}", f"{goal.best:.3g}", "" if spread is None else goal.verdict(spread.median)


def _figure_rows(cases: Iterable[Case], outcome: Outcome) -> Iterator[tuple[str, ...]]:
    """Give each run of a case a row with the medians of its rounds."""
    for case in cases:
        for name, rounds in outcome.of(case).items():
            measured = [figures for figures in rounds if figures and "rate" in figures]
            if measured:
                uses = [figures["compiled"] for figures in measured if "compiled" in figures]
                cells = [case.name, name, ("yes" if all(uses) else "no") if uses else ""]
                for figure, form in (
                    ("rate", ",.0f"), ("cpu", ".1f"), ("busy", ".0%"), ("p50", ".2f"), ("p99", ".2f"), ("p99.9", ".2f"),
                    ("memory", ".0f"),
                ):  # fmt: skip
                    spread = Spread.of([figures[figure] for figures in measured if figure in figures])
                    cells.append("" if spread is None else format(spread.median, form))
                yield tuple(cells)


def spread_text(spread: Spread | None) -> str:
    """Return C{median (least..most)}."""
    if spread is None:
        return ""
    form = ".2f" if abs(spread.median) < 10 else ".1f"
    between = f" ({spread.least:{form}}..{spread.most:{form}})" if spread.least != spread.most else ""
    return f"{spread.median:{form}}{between}"


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for a terminal; empty without rows."""
    body = list(rows)
    if not body:
        return ""
    widths = [max(len(cell) for cell in column) for column in zip(header, *body, strict=True)]
    lines = [header, ["-" * width for width in widths], *body]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for a page; empty without rows."""
    body = list(rows)
    if not body:
        return ""
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *body))
