"""
The routes of revisions: what one of them has changed, and what rolling back to it would change.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Final

import msgspec

from webhookrx.console.api.history import HistoryQuery
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.api.route import Answer, ApiCall, ApiRoute
from webhookrx.console.rules.rulebook import RollbackPlan
from webhookrx.console.store.history import HistoryEntry, read_history


class RevisionPage(msgspec.Struct, frozen=True):
    """
    A revision and its changes, the newest first.

    @ivar by: whose revision it is.
    @ivar changes: how many it has; C{entries} may be a part of them.
    """

    number: int
    at: float
    by: str
    via: str
    note: str
    changes: int
    entries: tuple[HistoryEntry, ...]


def revision_number(call: ApiCall) -> int:
    """
    Return the number in the path.

    @raise ApiProblem: it is none.
    """
    if not re.fullmatch("[0-9]{1,15}", call.path["number"]):
        raise ApiProblem(NOT_FOUND, "There is no such revision.")
    return int(call.path["number"])


async def _show(call: ApiCall) -> RevisionPage:
    number, asked = revision_number(call), call.query

    def read(db: sqlite3.Connection) -> RevisionPage | None:
        head = db.execute("SELECT at, by, via, note FROM revision WHERE number = ?", (number,)).fetchone()
        if head is None:
            return None
        (changes,) = db.execute("SELECT count(*) FROM change WHERE revision = ?", (number,)).fetchone()
        entries = read_history(db, before=asked.before, count=asked.count, revision=number)
        at, by, via, note = head
        return RevisionPage(number, at, by, via, note, changes, tuple(entries))

    found: RevisionPage | None = await call.console.store.read(read)
    if found is None:
        raise ApiProblem(NOT_FOUND, "There is no such revision.")
    return found


async def _preview(call: ApiCall) -> Answer:
    plan: RollbackPlan = await call.console.rulebook.plan_roll_back(revision_number(call))
    return Answer(plan, etag=f"r{plan.revision}")


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/revisions/{number}",
        Permission.VIEW,
        _show,
        "A revision and its changes.",
        answer=RevisionPage,
        query=HistoryQuery,
    ),
    ApiRoute(
        "POST",
        "/revisions/{number}:preview",
        Permission.EDIT,
        _preview,
        "What rolling back to a revision would change. Nothing is changed.",
        answer=RollbackPlan,
        safe=True,
    ),
)
