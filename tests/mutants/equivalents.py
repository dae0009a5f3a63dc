"""
Mutants that no test can tell from the code, because they do the same.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

FILE = Path(__file__).with_name("equivalent.txt")


def read_equivalents(text: str) -> dict[str, str]:
    """
    Return the names of mutants, each with the reason.

    A name is a line of its own; the reason is in the lines below it, which are indented. C{#} begins a comment.

    @raise ValueError: a name without a reason, or there twice.
    """
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            found[name] = f"{found[name]} {line.strip()}".strip()
            continue
        if line in found:
            raise ValueError(f"twice: {line}")
        name = line
        found[name] = ""
    bare = [name for name, reason in found.items() if not reason]
    if bare:
        raise ValueError("without a reason: " + ", ".join(bare))
    return found


def out_of_date(known: Collection[str], names: Collection[str]) -> list[str]:
    """Return those that are not among the names of all mutants: the code has changed, and they want a new look."""
    return sorted(set(known) - set(names))
