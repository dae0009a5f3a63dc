"""
What another machine says, as log lines, dead letters and errors may quote it: its beginning, on one line.
"""

from __future__ import annotations

from typing import Final

EXCERPT: Final = 200
"""The most characters that are quoted."""


def excerpt_of(words: bytes | str) -> str:
    """Return the beginning of what a server says, without line ends and control characters."""
    text = " ".join((words if isinstance(words, str) else words.decode("utf-8", "backslashreplace")).split())
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:EXCERPT])
    return f"{shown}…" if len(text) > EXCERPT else shown
