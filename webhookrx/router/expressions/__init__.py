"""The language of expression steps: FilterX for messages of the router form."""

from webhookrx.router.expressions.calls import function_table
from webhookrx.router.expressions.hiding import is_mask
from webhookrx.router.expressions.json_files import Files, no_files, table_of, tables_of
from webhookrx.router.expressions.program import Program, compile_expression
from webhookrx.router.expressions.run import ExpressionError, OperationError, RunLimits

__all__ = [
    "ExpressionError",
    "Files",
    "OperationError",
    "Program",
    "RunLimits",
    "compile_expression",
    "function_table",
    "is_mask",
    "no_files",
    "table_of",
    "tables_of",
]
