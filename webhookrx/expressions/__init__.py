"""The language of expression steps: FilterX, as far as a message of the router form has what it is about."""

from webhookrx.expressions.function_table import function_table
from webhookrx.expressions.hiding import is_mask
from webhookrx.expressions.json_files import Files, no_files, table_of, tables_of
from webhookrx.expressions.limits import Limits
from webhookrx.expressions.mistakes import ExpressionError, Mistake
from webhookrx.expressions.program import Program, compile_expression

__all__ = [
    "ExpressionError",
    "Files",
    "Limits",
    "Mistake",
    "Program",
    "compile_expression",
    "function_table",
    "is_mask",
    "no_files",
    "table_of",
    "tables_of",
]
