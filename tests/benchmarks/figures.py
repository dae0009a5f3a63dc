"""
Runs that measure nothing, and figures for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.lab import Lab
from benchmarks.runs import Figures, Run


@dataclass(frozen=True)
class Told(Run):
    """A run whose name is told, and whose figures are too: those of each round, or what goes wrong."""

    title: str = "told"
    says: tuple[tuple[tuple[str, float], ...] | Exception, ...] = ()
    only_once: bool = False

    @property
    def name(self) -> str:
        """What it is told to be called."""
        return self.title

    @property
    def once(self) -> bool:
        """Whether it was told so."""
        return self.only_once

    def measure(self, lab: Lab) -> Figures:
        """Return the figures of the next round."""
        number = _count.get(self.title, 0)
        _count[self.title] = number + 1
        said = self.says[number]
        if isinstance(said, Exception):
            raise said
        return dict(said)


_count: dict[str, int] = {}


def told(title: str, *says: dict[str, float] | Exception, once: bool = False) -> Told:
    """Make a run that begins with its first figures."""
    _count.pop(title, None)
    return Told(title, tuple(said if isinstance(said, Exception) else tuple(said.items()) for said in says), once)


def rounds_of(**values: Sequence[float | None]) -> dict[str, list[Figures | None]]:
    """Return rounds in which each run has a C{cpu} alone; the name of the run is that of the argument."""
    return {name: [None if value is None else {"cpu": value} for value in each] for name, each in values.items()}
