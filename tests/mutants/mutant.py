"""
One mutant, and what became of it.
"""

from __future__ import annotations

import difflib
from enum import Enum
from typing import NamedTuple


class Mutant(NamedTuple):
    """
    A file with one fault.

    @ivar name: path, function, the line's text, operator, and a number where all these are the same.
    @ivar path: of the file, from the root of the tree.
    @ivar line: where the fault begins.
    @ivar source: the file's text.
    @ivar mutated: its text with the fault.
    """

    name: str
    path: str
    line: int
    source: str
    mutated: str

    @property
    def diff(self) -> str:
        """The lines that differ."""
        lines = difflib.unified_diff(self.source.splitlines(), self.mutated.splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if line[:3] not in ("---", "+++") and line[:2] != "@@")


class Fate(Enum):
    """What the tests said of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "killed, by its time-out"
    SURVIVED = "survived"
