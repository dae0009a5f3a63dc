"""
The expression step: statements that change a message, or drop it.
"""

from __future__ import annotations

from webhookrx.router.expressions import ExpressionError, Files, compile_expression
from webhookrx.router.steps.context import Action, StepContext, StepEvent
from webhookrx.router.steps.step_problem import StepProblems


def compile_statements(text: str, dropped: StepEvent, files: Files, problems: StepProblems) -> Action | None:
    """
    Return what runs an expression. It raises L{ExpressionError} with everything undone that the run had changed.

    @param dropped: what it leaves behind of a message that it drops.
    @param files: gives the JSON files that it names.
    """
    try:
        # The line ends behind a block of YAML are no part of it: a mistake at the end is where the last statement ends.
        program = compile_expression(text.rstrip(), files=files)
    except ExpressionError as error:
        problems.add("bad-expression", error.problem, ("expression",), error.line, error.column)
        return None
    problems.hides = program.hides
    run = program.run

    def express(context: StepContext) -> StepEvent | None:
        context.stale = True
        record = context.record
        identity = record["meta"].get("id")
        kept = run(record, context.work)
        meta = record["meta"]
        if meta.get("id") is not identity:
            # What tells messages apart for a receiver that gets one twice.
            meta["id"] = identity
        return None if kept else dropped

    return express
