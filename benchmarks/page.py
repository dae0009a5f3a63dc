"""
Writes what was measured into the pages on performance: C{python -m benchmarks.page RUN.json...}, with what
C{python -m benchmarks --json RUN.json} has written. Of a case that several runs have, the last one counts.

Each table stands between two comments in a page. What they mean, and why a goal was missed, is written by hand.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from benchmarks.cases import all_cases
from benchmarks.comparisons import Bound, Case, Ratio, Rounds
from benchmarks.outcome import Outcome
from benchmarks.report import markdown_table, parts, spread_text
from benchmarks.runs import Asking, Loaded
from benchmarks.stores.runs import Storing
from benchmarks.tools import ROOT

_PAGES = tuple(
    os.path.join(ROOT, "docs", "explanation", name) for name in ("performance.md", "performance-measurements.md")
)

_BLOCK = "<!-- begin measured {name} -->\n{text}\n<!-- end measured {name} -->"


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Return one outcome of several: each case as the last one of them has it, the machine as the first one has it."""
    first, *others = outcomes
    found = Outcome(dict(first.machine), dict(first.rounds), dict(first.skipped), dict(first.broken))
    for other in others:
        found.rounds.update(other.rounds)
        found.skipped.update(other.skipped)
        found.broken.update(other.broken)
    return found


def blocks(cases: Sequence[Case], outcome: Outcome) -> dict[str, str]:
    """Return each table by its name in the pages."""
    measured = [case for case in cases if outcome.of(case)]
    report = parts(measured, outcome, markdown=True)
    return {
        **{name: report[name] for name in ("conditions", "circumstances", "ratios", "figures", "runs", "notes")},
        "peers": markdown_table(
            ("webhookrx beside", "ratio", "what the other one does"),
            (
                (_of_peer(ratio), spread_text(ratio.spread(outcome.of(case))), ratio.other.less)
                for case, ratio in _ratios(measured, outcome)
                if isinstance(ratio.other, Asking) and not ratio.other.server.is_webhookrx
            ),
        ),
        "durability": markdown_table(
            ("connections", "ratio"),
            (
                (str(ratio.ours.connections), spread_text(ratio.spread(outcome.of(case))))
                for case, ratio in _ratios(measured, outcome)
                if case.name.startswith("durable") and isinstance(ratio.ours, Loaded)
            ),
        ),
        "stores": markdown_table(
            ("store", "observer, messages/s", "client alone, messages/s", "ratio"),
            (
                (ratio.ours.place.name, *_rates(ratio, outcome.of(case)), spread_text(ratio.spread(outcome.of(case))))
                for case, ratio in _ratios(measured, outcome)
                if isinstance(ratio.ours, Storing)
            ),
        ),
        **{
            name: markdown_table(
                ("webhookrx", "ratio"),
                (
                    (_plainly(ratio.ours.name), spread_text(ratio.spread(outcome.of(case))))
                    for case, ratio in _ratios(measured, outcome)
                    if case.name in names and isinstance(ratio.other, Asking) and ratio.other.server.is_webhookrx
                ),
            )
            for name, names in (("features", ("features",)), ("forms", ("everything", "tls", "router", "plain512")))
        },
        "missed": markdown_table(
            ("case", "what", "measured", "goal"),
            (
                (
                    f"`{case.name}`",
                    _title(comparison, outcome.of(case)),
                    spread_text(spread),
                    f"{comparison.goal.enough:.3g}",
                )
                for case in measured
                for comparison in case.comparisons
                if comparison.goal is not None
                and (spread := comparison.spread(outcome.of(case))) is not None
                and comparison.goal.verdict(spread.median) == "SHORT"
            ),
        ),
    }


def _ratios(cases: Iterable[Case], outcome: Outcome) -> Iterator[tuple[Case, Ratio]]:
    """Return every ratio that was measured, with its case."""
    for case in cases:
        for comparison in case.comparisons:
            if isinstance(comparison, Ratio) and comparison.spread(outcome.of(case)) is not None:
                yield case, comparison


def _rates(ratio: Ratio, rounds: Rounds) -> tuple[str, str]:
    """Return the medians of both."""
    ours, other = (
        median(figures["rate"] for figures in rounds[run.name] if figures) for run in (ratio.ours, ratio.other)
    )
    return f"{ours:,.0f}", f"{other:,.0f}"


def _title(comparison: Ratio | Bound, rounds: Rounds) -> str:
    if isinstance(comparison, Bound):
        return f"{comparison.titled(rounds)}{f', {comparison.unit}' if comparison.unit else ''}"
    return f"{comparison.ours.name} / {comparison.other.name}"


def _of_peer(ratio: Ratio) -> str:
    by = "" if ratio.by == "cpu" else f" ({ratio.by})"
    return f"{_plainly(ratio.other.name)}{by}"


def _plainly(name: str) -> str:
    """Return the name of a run as a user reads it."""
    name = name.removesuffix(" @64").removeprefix("webhookrx").removesuffix(", forwarded").strip(" ,")
    counted = re.sub(r" ?@(\d+)$", lambda found: f", {found[1]} connection{'s' * (found[1] != '1')}", name)
    return counted.removeprefix(", ")


def with_blocks(page: str, found: Mapping[str, str]) -> str:
    """
    Return a page with all of its tables anew.

    @raise ValueError: it has one that is not known.
    """

    def anew(block: re.Match[str]) -> str:
        name = block[1]
        if name not in found:
            raise ValueError(f"there is no table {name!r}; there are {', '.join(found)}")
        return _BLOCK.format(name=name, text=found[name])

    return re.sub(r"<!-- begin measured ([a-z]+) -->\n.*?<!-- end measured \1 -->", anew, page, flags=re.DOTALL)


def main(paths: Sequence[str], say: Callable[[str], None] = print) -> int:
    """Write the pages; return the exit status."""
    if not paths:
        say("usage: python -m benchmarks.page RUN.json...")
        return 2
    outcomes = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            outcomes.append(Outcome.from_json(file.read()))
    found = blocks(all_cases(), merged(outcomes))
    for path in _PAGES:
        with open(path, encoding="utf-8") as file:
            page = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(with_blocks(page, found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
