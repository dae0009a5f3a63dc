"""
What a proof is: something that measures, and figures of which some have goals.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Value = TypeVar("Value")


class Skipped(Exception):
    """A proof needs what this machine does not have; the text says what."""


@dataclass(frozen=True)
class Effort:
    """
    How much a proof may take.

    @ivar long: the figures are for the documents; else seconds must do, on a machine that is busy with other things.
    @ivar seed: of everything that is random.
    """

    long: bool
    seed: int

    def pick(self, short: Value, long: Value) -> Value:
        """Return one of two amounts."""
        return long if self.long else short

    def random(self, *more: object) -> random.Random:
        """Return a source of randomness that is the same for the same seed and names."""
        return random.Random(repr((self.seed, *more)))


@dataclass
class Figure:
    """One figure. Its goal is a text such as C{"at most 0"}, empty when it has none."""

    name: str
    value: str
    goal: str = ""
    met: bool = True


@dataclass
class Figures:
    """
    What a proof has found.

    @ivar notes: what must be known to judge a missed goal, such as the first few lines that can't be read.
    """

    rows: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def tell(self, name: str, value: object) -> None:
        """Add a figure that has no goal."""
        self.rows.append(Figure(name, _text(value)))

    def at_most(self, name: str, value: float, limit: float, unit: str = "") -> None:
        """Add a figure that must not be larger."""
        self._judge(name, value, f"at most {_text(limit)}", value <= limit, unit)

    def at_least(self, name: str, value: float, limit: float, unit: str = "") -> None:
        """Add a figure that must not be smaller."""
        self._judge(name, value, f"at least {_text(limit)}", value >= limit, unit)

    def none(self, name: str, found: Sequence[object]) -> None:
        """Add the count of things of which there must be none; the first few go into the notes."""
        self.at_most(name, len(found), 0)
        self.notes += [f"{name}: {each!r:.300}" for each in found[:5]]

    @property
    def missed(self) -> list[str]:
        """The goals that were not met."""
        return [f"{row.name}: {row.value}, not {row.goal}" for row in self.rows if not row.met]

    def table(self) -> str:
        """Return all figures as lines of text."""
        lines = [
            f"  {row.name:<46} {row.value:>16}  {row.goal}{'' if row.met else '  MISSED'}".rstrip() for row in self.rows
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _judge(self, name: str, value: float, goal: str, met: bool, unit: str) -> None:
        behind = f" {unit}" if unit else ""
        self.rows.append(Figure(name, _text(value) + behind, goal + behind, met))


#: A proof: how much it may take, to what it has found.
Proof = Callable[[Effort], Figures]


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
