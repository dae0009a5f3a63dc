"""
Running what cases need, in rounds, and what came out of it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from benchmarks.comparisons import Bound, Case, Ratio
from benchmarks.lab import Lab
from benchmarks.runs import Figures, Run
from benchmarks.tools import Broken, Unavailable


@dataclass
class Outcome:
    """
    What came out.

    @ivar machine: what it was measured on and with.
    @ivar rounds: the figures of each run by its name, one entry a round.
    @ivar skipped: why a run was not measured.
    @ivar broken: what went wrong in a run, whose figures then count no more.
    """

    machine: dict[str, str]
    rounds: dict[str, list[Figures | None]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    def as_json(self, cases: Sequence[Case]) -> str:
        """Return all of it, and what it comes to, as JSON."""
        comparisons = []
        for case in cases:
            for comparison in case.comparisons:
                spread = comparison.spread(self.rounds)
                comparisons.append(
                    {
                        "case": case.name,
                        "what": _title(comparison),
                        "by": comparison.by if isinstance(comparison, Ratio) else comparison.figure,
                        "is ratio": isinstance(comparison, Ratio),
                        "spread": spread and asdict(spread),
                        "goal": comparison.goal and asdict(comparison.goal),
                    }
                )
        return json.dumps({**asdict(self), "comparisons": comparisons}, indent=1) + "\n"


def _title(comparison: Ratio | Bound) -> str:
    if isinstance(comparison, Ratio):
        return f"{comparison.ours.name} / {comparison.other.name}"
    return comparison.title


def run_rounds(
    cases: Sequence[Case], lab: Callable[[], Lab], rounds: int, outcome: Outcome, say: Callable[[str], None]
) -> None:
    """
    Run everything that some cases need, once a round, so that what is compared runs side by side.

    @param lab: makes the place for a round, in which every server is started anew.
    """
    runs: list[Run] = list(
        dict.fromkeys(run for case in cases for comparison in case.comparisons for run in comparison.runs)
    )
    for number in range(rounds):
        with lab() as place:
            for run in runs:
                if run.name in outcome.skipped or run.name in outcome.broken or (run.once and number):
                    continue
                say(f"round {number + 1} of {rounds}: {run.name}")
                measured = outcome.rounds.setdefault(run.name, [None] * rounds)
                try:
                    measured[number] = run.measure(place)
                except Unavailable as error:
                    outcome.skipped[run.name] = str(error)
                except (Broken, OSError, subprocess.SubprocessError) as error:
                    outcome.broken[run.name] = str(error)
                    outcome.rounds.pop(run.name)
