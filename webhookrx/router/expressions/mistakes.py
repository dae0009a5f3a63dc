"""
What is wrong with a program, found when it is compiled or when it runs.
"""

from __future__ import annotations

from webhookrx.diagnostics import Position
from webhookrx.errors import WebhookrxError


class ExpressionError(WebhookrxError):
    """
    A program can't be compiled, or a run of it failed.

    @ivar problem: one sentence; it may quote the program, and never the message.
    @ivar line: of the place in the program, from 1.
    @ivar column: of the place in the program, in characters from 1.
    """

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {problem}")
        self.problem = problem
        self.line = line
        self.column = column


class RecoverableError(ExpressionError):
    """An operation failed on these values. C{??} gives another value in its place."""


class OperationError(Exception):
    """
    An operation failed; whoever called it knows where it stands in the program.

    @ivar final: a bound of the whole run is reached; C{??} does not help.
    """

    def __init__(self, problem: str, *, final: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.final = final


def located(position: Position, error: OperationError) -> ExpressionError:
    """Return an error with its place in the program: L{RecoverableError} when the run may go on without this value."""
    kind = ExpressionError if error.final else RecoverableError
    return kind(error.problem, position.line, position.column)


class Ended(Exception):
    """
    C{drop} or C{done} within an expression.

    @ivar keep: the message is kept.
    """

    def __init__(self, keep: bool) -> None:
        super().__init__()
        self.keep = keep
