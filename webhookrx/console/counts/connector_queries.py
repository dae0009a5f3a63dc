"""
Queries on connectors: which fields they have, and what they cost with the connectors that have counted something.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from webhookrx.console.counts.analytics import matching_series
from webhookrx.console.counts.count_reading import TimeLimit
from webhookrx.diagnostics import quoted_short
from webhookrx.query import Query, QueryError, parse
from webhookrx.query.known_fields import unknown_fields
from webhookrx.query.query import MOST_WORK, most_work

_CONNECTOR: Final = ("type", "name", "port", "labels.KEY")

CONNECTOR_FIELDS: Final = (
    "rule",
    *(f"connector.{field}" for field in _CONNECTOR),
    *(f"meta.connector.{field}" for field in _CONNECTOR),
    "router",
    "label.KEY",
)
"""The fields that such a query may test: those of L{webhookrx.console.counts.count_tables.SeriesLabels.record}."""

_LONGEST_VALUE: Final = 1024
"""Characters of a name or a label that routers tell at most."""


def connector_query(text: str) -> Query:
    """
    Read a query on connectors.

    @raise QueryError: it is none, or tests a field that no connector has.
    """
    query = parse(text)
    for use in unknown_fields(query, CONNECTOR_FIELDS):
        raise QueryError(f"{quoted_short(use.field)} is not one of {', '.join(CONNECTOR_FIELDS)}.", use.column)
    return query


def try_on_connectors(db: sqlite3.Connection, query: Query, limit: TimeLimit) -> None:
    """
    Decide a query for every connector, as an answer of analytics does, unless it can't be too costly for any.

    @raise webhookrx.errors.ConfigError: it has too much to do with one.
    @raise webhookrx.console.counts.count_reading.TookTooLong: the time is over.
    """
    most = most_work(query, _LONGEST_VALUE)
    if most is not None and most <= MOST_WORK:
        return
    with limit.bounds(db):
        for _ in matching_series(db, query, "", limit):
            pass
