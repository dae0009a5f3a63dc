"""
Named counts, for operators.
"""

from __future__ import annotations

from collections import Counter


class Counters:
    """
    Counts by name and label, such as C{refused} and C{bad_token}. Labels never come from senders, so there are few.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, label: str = "", amount: int = 1) -> None:
        """Count C{amount} more."""
        self._counts[name, label] += amount

    def get(self, name: str, label: str = "") -> int:
        """Return a count; 0 when nothing was counted."""
        return self._counts.get((name, label), 0)

    def summary(self) -> str:
        """Return all counts as one line of C{name=1 name.label=2}, in the order of their names."""
        items = sorted(self._counts.items())
        return " ".join(f"{name}.{label}={count}" if label else f"{name}={count}" for (name, label), count in items)
