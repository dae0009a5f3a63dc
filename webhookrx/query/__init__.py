"""
The query language of selectors, step conditions and filters.
"""

from webhookrx.query.explanation import DecidingTerm, Explanation, explain
from webhookrx.query.fleet import Fleet
from webhookrx.query.query import FieldUse, Query, QueryTooCostly, parse
from webhookrx.query.query_lexer import QueryError, line_and_column
from webhookrx.query.query_tree import ANY, format_tree, plain_tree

__all__ = [
    "ANY",
    "DecidingTerm",
    "Explanation",
    "FieldUse",
    "Fleet",
    "Query",
    "QueryError",
    "QueryTooCostly",
    "explain",
    "format_tree",
    "line_and_column",
    "parse",
    "plain_tree",
]
