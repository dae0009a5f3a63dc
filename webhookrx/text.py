"""
Tables in Markdown, for pages of the docs that are made from the code.
"""

from __future__ import annotations

from collections.abc import Iterable


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """
    Return a table, its last line ended.

    @param head: the titles of its columns.
    @param rows: the texts of each row. A cell is one line, and a bar in it is no end of it.
    """
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(map(_cell, line)) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
