"""
Queries on what has certain fields and no others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from webhookrx.query.query import FieldUse, Query


def unknown_fields(query: Query, known: Collection[str]) -> Iterator[FieldUse]:
    """
    Yield each use of a field that is not known.

    @param known: fields; those that end with C{.KEY} stand for any key.
    """
    prefixes = tuple(each.removesuffix("KEY") for each in known if each.endswith(".KEY"))
    return (use for use in query.fields if use.field not in known and not use.field.startswith(prefixes))
