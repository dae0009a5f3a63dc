"""The language of expression steps: a subset of FilterX."""

from webhookrx.expressions.function_table import function_table
from webhookrx.expressions.limits import Limits
from webhookrx.expressions.mistakes import ExpressionError
from webhookrx.expressions.program import Program, compile_expression
from webhookrx.expressions.run import Allowance

__all__ = ["Allowance", "ExpressionError", "Limits", "Program", "compile_expression", "function_table"]
