"""
What is said of mutants when all have been tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tests.mutants.mutant import Fate, Mutant


def score(fates: Sequence[Fate]) -> float:
    """Return the percentage of those that did not survive; 100 of none."""
    return 100.0 * sum(fate is not Fate.SURVIVED for fate in fates) / len(fates) if fates else 100.0


def report(mutants: Sequence[Mutant], fates: Sequence[Fate]) -> str:
    """Return the survivors, each with its place, name and diff; the score of each file; and the score."""
    lines: list[str] = []
    by_path: defaultdict[str, list[Fate]] = defaultdict(list)
    for mutant, fate in sorted(zip(mutants, fates, strict=True), key=lambda pair: (pair[0].path, pair[0].line)):
        by_path[mutant.path].append(fate)
        if fate is Fate.SURVIVED:
            lines += [f"{mutant.path}:{mutant.line}", mutant.name, mutant.diff, ""]
    for path, each in by_path.items():
        lines.append(f"{score(each):5.1f} % of {len(each):3d}  {path}")
    late = sum(fate is Fate.TIMED_OUT for fate in fates)
    lines.append(f"{score(fates):.1f} % of {len(fates)} mutants killed, {late} of them by the time-out")
    return "\n".join(lines)
