"""
What routes share of the history of an object: whose change a call is, which changes it asks for, and the way back.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.api.route import ApiCall
from webhookrx.console.store.history import Author, HistoryEntry, read_history

_MOST_ENTRIES: Final = 500
_NEWEST: Final = (1 << 53) - 1


class HistoryQuery(msgspec.Struct, frozen=True):
    """
    Which changes.

    @ivar before: the id of a change; only older ones are wanted.
    """

    before: Annotated[int, Meta(ge=1, lt=1 << 53)] = _NEWEST
    count: Annotated[int, Meta(ge=1, le=_MOST_ENTRIES)] = 100


class HistoryPage(msgspec.Struct, frozen=True):
    """Changes, the newest first."""

    entries: tuple[HistoryEntry, ...]


class RollbackRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The generation that a rule or alarm is to be like again."""

    generation: Annotated[int, Meta(ge=1, lt=1 << 53)]


def author_of(call: ApiCall) -> Author:
    """Return whose change a call is."""
    return Author(call.caller.name, call.caller.via)


def rollback_author(call: ApiCall, number: int) -> Author:
    """Return whose change it is to go back to a generation or revision."""
    return Author(call.caller.name, f"rollback:{number}")


async def history_page(call: ApiCall, kind: str, missing: str) -> HistoryPage:
    """
    Return the changes of the object in the path, as the query of the call asks.

    @param kind: C{rule} or C{alarm}.
    @param missing: what is said when nobody has ever written one of this name.
    @raise ApiProblem: so it is.
    """
    name, query = call.path["name"], call.query
    entries = await call.console.store.read(
        lambda db: read_history(db, before=query.before, count=query.count, kind=kind, name=name)
    )
    if not entries and query.before == _NEWEST:
        raise ApiProblem(NOT_FOUND, missing)
    return HistoryPage(tuple(entries))
