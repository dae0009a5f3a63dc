"""
The expression step: statements that change a message, or drop it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webhookrx.connectors.passage import Action, Mark, Passage
from webhookrx.connectors.step_problem import StepProblems
from webhookrx.expressions import Allowance, ExpressionError, compile_expression

MOST_MADE: Final = 32 * 1024 * 1024
"""Characters that all expression steps of a connector make of one message, an element of an object or a list as 64."""


def compile_statements(text: str, dropped: Mark, clock: Callable[[], float], problems: StepProblems) -> Action | None:
    """
    Return what runs an expression. It raises L{ExpressionError} with everything undone that the run had changed.

    @param dropped: what it leaves behind of a message that it drops.
    """
    try:
        # The line ends behind a block of YAML are no part of it: a mistake at the end is where the last statement ends.
        run = compile_expression(text.rstrip(), clock=clock).run
    except ExpressionError as error:
        problems.add("bad-expression", error.problem, ("expression",), error.line, error.column)
        return None

    def express(passage: Passage) -> Mark | None:
        passage.stale = True
        record = passage.record
        identity = record["meta"].get("id")
        if passage.allowance is None:
            passage.allowance = Allowance(MOST_MADE)
        kept = run(record, passage.allowance)
        meta = record["meta"]
        if meta.get("id") is not identity:
            # What tells messages apart for a receiver that gets one twice.
            meta["id"] = identity
        return None if kept else dropped

    return express
