"""
Queries that callers write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.query import QueryError
from webhookrx.regex import RegexTooCostly
from webhookrx.work import TooMuchWork


@contextmanager
def no_query() -> Iterator[None]:
    """
    Refuse what is no query, or takes too much work.

    @raise ApiProblem: within this a query was one of these.
    """
    try:
        yield
    except QueryError as error:
        raise ApiProblem(INVALID, f"Column {error.column} of the query: {error.problem}") from None
    except (TooMuchWork, RegexTooCostly):
        raise ApiProblem(INVALID, "The query takes too much work.") from None
