"""
C{python -m benchmarks.guard}: whether webhookrx has become much slower, in a minute and on any machine.

It looks at what hardly depends on the machine or on what else runs there: the processor time of a request beside that
of a peer doing the same job in the same minute, the system calls of a request, and its instructions where valgrind is
at hand. A value far from the usual one fails, and so does a webhookrx without its compiled module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.compared import WRITTEN
from benchmarks.comparisons import Bound, Case, Ratio, Rounds
from benchmarks.counts import Instructions, SystemCalls
from benchmarks.lab import Lab, heed_signals
from benchmarks.outcome import Outcome, run_rounds
from benchmarks.report import text_table
from benchmarks.runs import Laps
from benchmarks.servers import uvicorn
from benchmarks.tools import Tools

LEAST_RATIO = 1.45
"""Of uvicorn's processor time over ours; it is usually about 1.8, and 1.2 without the compiled module."""

MOST_CALLS = 2.9
"""
System calls a request over 64 connections; it is usually about 2.2, and 2.5 on a machine that is busy with other work.
With answers that go out a turn later it is 4.4.
"""

MOST_INSTRUCTIONS = {1: 320.0, 64: 165.0}
"""
Thousands a request, by the number of connections; they are usually about 255, and 100 to 123 as more or fewer messages
go into a batch. Without the module they are 340 and 210 at least. Python 3.11, as a distribution or pyenv builds it.
"""

ROUNDS = 4
"""Of which the best counts: noise only ever adds. What is counted is counted in the first alone."""

OURS, PEER, CALLS = Laps(WRITTEN), Laps(uvicorn()), SystemCalls(WRITTEN)
COUNTED = {connections: Instructions(WRITTEN, connections=connections) for connections in MOST_INSTRUCTIONS}


@dataclass(frozen=True)
class Finding:
    """
    One value and where it must be.

    @ivar value: None: it could not be measured.
    @ivar bound: what it must not pass, in words.
    """

    what: str
    value: float | None
    bound: str
    holds: bool


def findings(rounds: Rounds) -> tuple[Finding, ...]:
    """Judge what was measured; what was not holds."""
    ours, peer = _best(rounds, OURS.name, "cpu"), _best(rounds, PEER.name, "cpu")
    ratio = peer / ours if ours and peer else None
    calls = _best(rounds, CALLS.name, "calls")
    compiled = _best(rounds, OURS.name, "compiled")
    counted = {connections: _best(rounds, run.name, "instructions") for connections, run in COUNTED.items()}
    return (
        Finding("compiled path in use", compiled, "1", compiled is None or compiled == 1),
        Finding("CPU µs a request, webhookrx", ours, "", True),
        Finding("CPU µs a request, uvicorn", peer, "", True),
        Finding("CPU ratio, uvicorn / webhookrx", ratio, f">= {LEAST_RATIO:g}", ratio is None or ratio >= LEAST_RATIO),
        Finding("system calls a request", calls, f"<= {MOST_CALLS:g}", calls is None or calls <= MOST_CALLS),
        *(
            Finding(
                f"thousand instructions a request @{connections}",
                counted[connections],
                f"<= {most:g}",
                (found := counted[connections]) is None or found <= most,
            )
            for connections, most in MOST_INSTRUCTIONS.items()
        ),
    )


def table(found: Sequence[Finding]) -> str:
    """Return what was found, for people."""
    return text_table(
        ("what", "value", "must be", ""),
        (
            (
                finding.what,
                "not measured" if finding.value is None else f"{finding.value:.2f}",
                finding.bound,
                "" if not finding.bound or finding.value is None else ("ok" if finding.holds else "FAILED"),
            )
            for finding in found
        ),
    )


def main() -> int:
    """
    Measure, print, and judge.

    @return: the exit status: 1 when a value is far from the usual one, or a message is missing.
    """
    heed_signals()
    tools = Tools(peers_python=sys.executable)
    os.sched_setaffinity(0, {tools.cores.load})
    outcome = Outcome({})
    counted = (Bound(run, "instructions", "", "") for run in COUNTED.values())
    case = Case("guard", "", (Ratio(OURS, PEER), Bound(CALLS, "calls", "", ""), *counted))
    run_rounds((case,), lambda: Lab(tools), ROUNDS, outcome, lambda _: None)
    found = findings(outcome.of(case))
    print(table(found))
    for name, reason in outcome.skipped.items():
        print(f"Not measured: {name}: {reason}")
    for name, reason in outcome.broken.items():
        print(f"WRONG: {name}: {reason}")
    return 0 if not outcome.broken and all(finding.holds for finding in found) else 1


def _best(rounds: Rounds, name: str, figure: str) -> float | None:
    return min((figures[figure] for figures in rounds.get(name, ()) if figures and figure in figures), default=None)


if __name__ == "__main__":
    sys.exit(main())
