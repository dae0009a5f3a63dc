"""
C{python -m benchmarks}: webhookrx beside what a user might take in its place.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks.cases import REQUESTS, all_cases
from benchmarks.comparisons import Case
from benchmarks.lab import Lab, heed_signals
from benchmarks.machine import describe
from benchmarks.outcome import Outcome, run_rounds
from benchmarks.provision import debian_packages, peers_python
from benchmarks.report import report
from benchmarks.tools import ROOT, Tools

FULL = (5, 1.5, 1_000_000)
"""Rounds, seconds of each load, and requests of the cases C{memory} and C{router}."""
SHORT = (2, 0.5, REQUESTS)
SOAK = 5_000_000
"""Requests of these cases with C{--soak}."""


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Measure and print.

    @return: the exit status: 1 when something that was answered is missing or wrong, or a server broke.
    """
    options = _parser().parse_args(arguments)
    rounds, seconds, requests = SHORT if options.short else FULL
    cases = all_cases(SOAK if options.soak else requests)
    if options.list:
        print("\n".join(f"{case.name:14}{case.about}" for case in cases))
        return 0
    heed_signals()
    if options.case:
        cases = _chosen(cases, options.case)
    if not options.no_install:
        debian_packages(_say)
    tools = Tools(
        peers_python=options.peers_python or (None if options.no_install else peers_python(_say)),
        twistd=options.twistd,
        reactor=options.reactor,
        options=tuple(shlex.split(options.options)),
    )
    # This process makes some of the load itself.
    os.sched_setaffinity(0, {tools.cores.load})
    outcome = Outcome(describe(tools, options.directory))
    run_rounds(
        cases,
        lambda: Lab(tools, options.seconds or seconds, options.directory),
        options.rounds or rounds,
        outcome,
        _say,
    )
    print(report(cases, outcome, markdown=options.markdown), end="")
    text = outcome.as_json(cases)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text)
    if options.plot:
        _plot(tools, text, options.plot)
    return 1 if outcome.broken else 0


def _chosen(cases: Sequence[Case], names: Sequence[str]) -> tuple[Case, ...]:
    known = {case.name: case for case in cases}
    for name in names:
        if name not in known:
            raise SystemExit(f"There is no case {name!r}; there are {', '.join(known)}.")
    return tuple(known[name] for name in names)


def _plot(tools: Tools, text: str, path: str) -> None:
    """Draw with the peers' interpreter, which has what that takes."""
    drawn = subprocess.run(
        (tools.peers_python or sys.executable, "-m", "benchmarks.plot", os.path.abspath(path)),
        input=text,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    if drawn.returncode:
        _say("The plot could not be drawn.")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few minutes, and less exact")
    parser.add_argument("--case", action="append", metavar="NAME", help="this case alone; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the cases and exit")
    parser.add_argument("--rounds", type=int, help=f"how often everything runs ({FULL[0]}; {SHORT[0]} with --short)")
    parser.add_argument("--seconds", type=float, help=f"of each load ({FULL[1]:g}; {SHORT[1]:g} with --short)")
    parser.add_argument("--soak", action="store_true", help=f"{SOAK:,} requests in the cases memory and router")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--plot", metavar="FILE", help="draw the ratios there, as PNG")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page of Markdown")
    parser.add_argument("--reactor", metavar="NAME", help="run webhookrx with twistd --reactor=NAME")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for every webhookrx")
    parser.add_argument("--twistd", metavar="FILE", help="measure the webhookrx of this twistd")
    parser.add_argument("--peers-python", metavar="FILE", help="an interpreter that has the Python peers")
    parser.add_argument("--no-install", action="store_true", help="install nothing")
    parser.add_argument(
        "--directory", default=tempfile.gettempdir(), metavar="DIR", help="on the disk to measure (%(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
