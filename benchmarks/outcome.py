"""
Running what cases need, in rounds, and what came out of it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields

from benchmarks.comparisons import Bound, Case, Ratio, Rounds
from benchmarks.lab import Lab
from benchmarks.runs import Asking, Figures, Run
from benchmarks.tools import Broken, Unavailable


@dataclass
class Outcome:
    """
    What came out.

    @ivar machine: what it was measured on and with.
    @ivar rounds: by case, the figures of each of its runs by name, one entry a round.
    @ivar skipped: why a run was not measured.
    @ivar broken: what went wrong in a run of a case, by both, whose figures then count no more.
    """

    machine: dict[str, str]
    rounds: dict[str, dict[str, list[Figures | None]]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    def of(self, case: Case) -> Rounds:
        """Return what was measured for a case."""
        return self.rounds.get(case.name, {})

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        """Return what L{as_json} has written."""
        read = json.loads(text)
        return cls(*(read[each.name] for each in fields(cls)))

    def as_json(self, cases: Sequence[Case]) -> str:
        """Return all of it, and what it comes to, as JSON."""
        comparisons = []
        for case in cases:
            for comparison in case.comparisons:
                spread = comparison.spread(self.of(case))
                comparisons.append(
                    {
                        "case": case.name,
                        "what": _title(comparison, self.of(case)),
                        "by": comparison.by if isinstance(comparison, Ratio) else comparison.figure,
                        "is ratio": isinstance(comparison, Ratio),
                        "spread": spread and asdict(spread),
                        "goal": comparison.goal and asdict(comparison.goal),
                    }
                )
        return json.dumps({**asdict(self), "comparisons": comparisons}, indent=1) + "\n"


def _title(comparison: Ratio | Bound, rounds: Rounds) -> str:
    if isinstance(comparison, Ratio):
        return f"{comparison.ours.name} / {comparison.other.name}"
    return comparison.titled(rounds)


def run_rounds(
    cases: Sequence[Case], lab: Callable[[], Lab], rounds: int, outcome: Outcome, say: Callable[[str], None]
) -> None:
    """
    Run everything that some cases need, once a round. What a case compares runs right after one another, also where an
    earlier case has just had one of its runs: what was measured minutes apart is not compared.

    @param lab: makes the place for a round, in which every server is started anew.
    """
    for number in range(rounds):
        with lab() as place:
            for case in cases:
                for run in dict.fromkeys(run for comparison in case.comparisons for run in comparison.runs):
                    which = f"{case.name}: {run.name}"
                    if run.name in outcome.skipped or which in outcome.broken or (run.once and number):
                        continue
                    say(f"round {number + 1} of {rounds}: {which}")
                    measured = outcome.rounds.setdefault(case.name, {}).setdefault(run.name, [None] * rounds)
                    try:
                        measured[number] = _measured(run, place)
                    except Unavailable as error:
                        outcome.skipped[run.name] = str(error)
                    except (Broken, OSError, subprocess.SubprocessError) as error:
                        outcome.broken[which] = str(error)
                        del outcome.rounds[case.name][run.name]
                        if isinstance(run, Asking):
                            # What it has left in its file is not looked for again.
                            place.end(run.server)


def _measured(run: Run, lab: Lab) -> Figures:
    figures = run.measure(lab)
    if isinstance(run, Asking) and run.server.is_webhookrx:
        compiled = lab.compiled(run.server)
        if compiled is not None:
            figures["compiled"] = float(compiled)
    return figures
