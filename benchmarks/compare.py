"""
Two checkouts of webhookrx beside each other, in turns: C{python -m benchmarks.compare BASE --case plain64 --rounds 5}.

For each run of webhookrx in a case: the processor time of a request before and after, the medians, and their ratio with
its spread. In each round both are asked right after one another, first the one and then the other by turns, so that a
slow moment is one for both.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.cases import all_cases
from benchmarks.comparisons import Spread
from benchmarks.lab import Lab, heed_signals
from benchmarks.report import text_table
from benchmarks.runs import Asking, Figures, Run
from benchmarks.tools import ROOT, Broken, Tools, Unavailable

ROUNDS = 5
SECONDS = 2.0


def twistd_of(checkout: str) -> str:
    """
    Return the C{twistd} in the virtual environment of a checkout.

    @raise Unavailable: there is none.
    """
    twistd = os.path.join(os.path.abspath(checkout), ".venv", "bin", "twistd")
    if not os.path.exists(twistd):
        raise Unavailable(f"{twistd} is not there; install the checkout into an environment .venv of its own")
    return twistd


def runs_of(name: str) -> tuple[Run, ...]:
    """
    Return what a case asks webhookrx.

    @raise Unavailable: there is no such case, or it asks nothing.
    """
    for case in all_cases():
        if case.name == name:
            found = dict.fromkeys(run for comparison in case.comparisons for run in comparison.runs)
            ours = [run for run in found if isinstance(run, Asking) and run.server.is_webhookrx]
            if ours:
                return tuple(ours)
    raise Unavailable(f"no case {name!r} asks webhookrx for something; see python -m benchmarks --list")


def measured(
    runs: Sequence[Run], base: Callable[[], Lab], new: Callable[[], Lab], rounds: int
) -> list[tuple[Run, list[Figures], list[Figures]]]:
    """
    Return the figures of some runs with both, one entry a round. Each round starts both anew: where a process has its
    objects in memory makes a percent or two, which no number of loads on the same process would show.
    """
    found: list[tuple[Run, list[Figures], list[Figures]]] = [(run, [], []) for run in runs]
    for number in range(rounds):
        with base() as before, new() as after:
            for run, of_base, of_new in found:
                both = ((before, of_base), (after, of_new))
                for lab, figures in both if number % 2 == 0 else both[::-1]:
                    figures.append(run.measure(lab))
    return found


def rows(run: str, base: Sequence[Figures], new: Sequence[Figures]) -> list[tuple[str, str, str, str, str]]:
    """
    Return a row for each figure that tells the two apart: run, figure, both medians, and base over new with its spread.
    """
    found = []
    for figure in ("instructions", "cpu", "p50", "p99", "calls"):
        pairs = [
            (before[figure], after[figure])
            for before, after in zip(base, new, strict=True)
            if before.get(figure) and after.get(figure)
        ]
        if pairs:
            medians = [Spread.of(values) for values in zip(*pairs, strict=True)]
            ratio = Spread.of([before / after for before, after in pairs])
            assert medians[0] and medians[1] and ratio
            found.append(
                (
                    run,
                    figure,
                    f"{medians[0].median:.2f}",
                    f"{medians[1].median:.2f}",
                    f"{ratio.median:.3f} ({ratio.least:.3f}..{ratio.most:.3f})",
                )
            )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Measure and print.

    @return: the exit status: 1 when something could not be measured, or a message is missing.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.splitlines()[1])
    parser.add_argument("base", metavar="BASE", help="a checkout with an environment .venv that it is installed in")
    parser.add_argument("new", metavar="NEW", nargs="?", default=ROOT, help="another (default: this one)")
    parser.add_argument("--case", action="append", metavar="NAME", help="may be repeated (default: plain64)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often both are asked (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load (default: %(default)g)")
    options = parser.parse_args(arguments)
    heed_signals()
    try:
        tools = [Tools(twistd=twistd_of(checkout)) for checkout in (options.base, options.new)]
        runs = [run for name in options.case or ["plain64"] for run in runs_of(name)]
        os.sched_setaffinity(0, {tools[0].cores.load})
        base, new = (partial(Lab, each, options.seconds) for each in tools)
        table = [row for run, *both in measured(runs, base, new, options.rounds) for row in rows(run.name, *both)]
    except (Broken, Unavailable) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(text_table(("run", "figure", "base", "new", "base / new"), table))
    print("Processor time and calls are by request, in µs and in number; times in ms. Above 1 the new one takes less.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
