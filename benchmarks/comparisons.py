"""
What figures come to: ratios and bounds beside their goals, with the spread over the rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from benchmarks.runs import Figures, Run

Rounds: TypeAlias = "Mapping[str, Sequence[Figures | None]]"
"""The figures of each run of a case by its name, one entry a round; None: it was not measured in that round."""

LESS_IS_BETTER = {"cpu", "p50", "p99", "p99.9", "calls", "instructions"}


@dataclass(frozen=True)
class Spread:
    """A median and what it lies between."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Return the spread of some values; None when there are none."""
        return cls(median(values), min(values), max(values)) if values else None


@dataclass(frozen=True)
class Goal:
    """
    Where a figure is to come.

    @ivar enough: at least that, or at most.
    @ivar best: what to go for.
    """

    enough: float
    best: float

    def verdict(self, value: float) -> str:
        """Return what a value is by this goal; it is better to be higher when C{best} is not below C{enough}."""
        direction = 1 if self.best >= self.enough else -1
        if direction * value >= direction * self.best:
            return "best"
        return "enough" if direction * value >= direction * self.enough else "SHORT"


@dataclass(frozen=True)
class Ratio:
    """
    One run over another: above 1, ours is better.

    @ivar by: the figure that the goal is about; C{"cpu"} or C{"rate"}, or any other that both runs have.
    @ivar note: what to know when one reads it.
    """

    ours: Run
    other: Run
    by: str = "cpu"
    goal: Goal | None = None
    note: str = ""

    @property
    def remark(self) -> str:
        """What the other does not do, when it is a peer, and what else there is to know when one reads the figure."""
        return "; ".join(filter(None, (self.other.less, self.note)))

    @property
    def runs(self) -> tuple[Run, ...]:
        """What must be run for it."""
        return (self.ours, self.other)

    def spread(self, rounds: Rounds, by: str | None = None) -> Spread | None:
        """Return the ratio by a figure; each round's pair counts once. None: no round has both."""
        figure = by or self.by
        ratios = []
        for ours, other in zip(rounds.get(self.ours.name, ()), rounds.get(self.other.name, ()), strict=False):
            if ours and other and figure in ours and figure in other:
                ratio = ours[figure] / other[figure]
                ratios.append(1 / ratio if figure in LESS_IS_BETTER else ratio)
        return Spread.of(ratios)


@dataclass(frozen=True)
class Bound:
    """
    One figure of one run, by itself.

    @ivar title: what it is called in tables; C{{requests}} in it stands for the figure of that name.
    @ivar unit: what it is counted in.
    @ivar note: what to know when one reads it.
    """

    run: Run
    figure: str
    title: str
    unit: str
    goal: Goal | None = None
    note: str = ""

    def titled(self, rounds: Rounds) -> str:
        """Return the title with what was measured in its place."""
        numbers = [
            figures["requests"] for figures in rounds.get(self.run.name, ()) if figures and "requests" in figures
        ]
        return self.title.format(requests=f"{numbers[0]:,.0f}" if numbers else "many")

    @property
    def remark(self) -> str:
        """What the server does not do, when it is a peer, and what else there is to know when one reads the figure."""
        return "; ".join(filter(None, (self.run.less, self.note)))

    @property
    def runs(self) -> tuple[Run, ...]:
        """What must be run for it."""
        return (self.run,)

    def spread(self, rounds: Rounds) -> Spread | None:
        """Return the figure; None when it was not measured."""
        return Spread.of([figures[self.figure] for figures in rounds.get(self.run.name, ()) if figures])


@dataclass(frozen=True)
class Case:
    """
    Comparisons that belong together.

    @ivar name: short and stable, for the command line and the docs.
    @ivar about: what is looked at, in a few words.
    @ivar note: what to know when one reads the figures.
    """

    name: str
    about: str
    comparisons: tuple[Ratio | Bound, ...]
    note: str = ""
