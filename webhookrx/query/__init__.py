"""
The query language of selectors, step conditions and filters.
"""

from webhookrx.query.errors import QueryError, line_and_column
from webhookrx.query.explanation import Deciding, Explanation, explain
from webhookrx.query.fleet import Fleet
from webhookrx.query.query import FieldUse, Query, parse
from webhookrx.query.query_tree import format_tree, plain_tree
from webhookrx.query.texts import spend_json
from webhookrx.query.thorough import QueryTooCostly

__all__ = [
    "Deciding",
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
    "spend_json",
]
