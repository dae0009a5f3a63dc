"""
What is wrong with a query.
"""

from __future__ import annotations

from webhookrx.errors import WebhookrxError


class QueryError(WebhookrxError):
    """
    A text is no query.

    @ivar problem: sentences for the one who wrote it: what is wrong, what is allowed. They may quote the text.
    @ivar column: the character that they are about, from 1; a line end counts as one, see L{line_and_column}.
    """

    def __init__(self, problem: str, column: int) -> None:
        super().__init__(f"column {column}: {problem}")
        self.problem = problem
        self.column = column


def line_and_column(text: str, column: int) -> tuple[int, int]:
    """Return the line, and the column in it, both from 1, of a column of a text that may have several lines."""
    before = text[: column - 1]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
