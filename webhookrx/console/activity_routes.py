"""
The routes of who did what: the history of changes and the audit, in pages and as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.queries import no_query
from webhookrx.console.api.route import ApiCall, ApiRoute, PieceStream
from webhookrx.console.store.audit import AuditEntry, find_audit, read_audit
from webhookrx.console.store.history import HistoryEntry, find_changes
from webhookrx.query import parse
from webhookrx.work import Work

NDJSON: Final = "application/x-ndjson"

_MOST_ENTRIES: Final = 500
_PIECE: Final = 256 * 1024
_AUDIT_PIECE: Final = 200
_MOST_WORK: Final = 100_000_000
"""Units of work for a query on all entries of a call: some 200 ms at worst, and 160 terms on each of 2,000 changes."""

_Before = Annotated[int, Meta(ge=1, lt=1 << 53)]
_Count = Annotated[int, Meta(ge=1, le=_MOST_ENTRIES)]
_LAST: Final = (1 << 53) - 1


class ActivityQuery(msgspec.Struct, frozen=True):
    """
    Which changes.

    @ivar query: on C{by}, C{via}, C{kind}, C{name}, C{operation}, C{note} and C{revision}; empty for all.
    @ivar before: only older ones are wanted: C{next_before} of the page before.
    """

    query: Annotated[str, Meta(max_length=8192)] = ""
    before: _Before = _LAST
    count: _Count = 100


class ActivityPage(msgspec.Struct, frozen=True):
    """
    Changes, the newest first.

    @ivar next_before: for the next page, which may have none that match; null when there are no older changes.
    """

    entries: list[HistoryEntry]
    next_before: int | None


class AuditQuery(msgspec.Struct, frozen=True):
    """
    Which entries.

    @ivar query: on C{by}, C{via}, C{address}, C{event} and C{name}; empty for all.
    @ivar before: only older ones are wanted: C{next_before} of the page before.
    """

    query: Annotated[str, Meta(max_length=8192)] = ""
    before: _Before = _LAST
    count: _Count = 100


class AuditPage(msgspec.Struct, frozen=True):
    """
    Entries of the audit, the newest first.

    @ivar next_before: for the next page, which may have none that match; null when there are no older entries.
    """

    entries: list[AuditEntry]
    next_before: int | None


async def _activity(call: ApiCall) -> ActivityPage:
    asked: ActivityQuery = call.query
    with no_query():
        wanted = _wanted(asked.query) if asked.query else None
        found = await call.console.store.read(
            lambda db: find_changes(db, wanted, before=asked.before, count=asked.count)
        )
    return ActivityPage(*found)


async def _audit(call: ApiCall) -> AuditPage:
    asked: AuditQuery = call.query
    with no_query():
        wanted = _wanted(asked.query)
        found = await call.console.store.read(lambda db: find_audit(db, wanted, before=asked.before, count=asked.count))
    return AuditPage(*found)


def _wanted(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """
    Return what decides a query for all entries that one call looks at, with work for all of them together: the thread
    that reads has other calls to do.

    @raise QueryError: it is no query.
    """
    query, work = parse(text), Work(_MOST_WORK)
    return lambda record: query.decide(record, work)


async def _all_activity(call: ApiCall) -> PieceStream:
    def read(db: Any, before: int) -> tuple[Sequence[HistoryEntry], int | None]:
        return find_changes(db, None, before=before, count=_MOST_ENTRIES, most_bytes=_PIECE)

    return _pieces(call, read)


async def _all_audit(call: ApiCall) -> PieceStream:
    def read(db: Any, before: int) -> tuple[Sequence[AuditEntry], int | None]:
        entries = read_audit(db, before=before, count=_AUDIT_PIECE)
        return entries, entries[-1].id if entries else None

    return _pieces(call, read)


def _pieces(call: ApiCall, read: Callable[[Any, int], tuple[Sequence[Any], int | None]]) -> PieceStream:
    """Return an answer of lines, read and encoded a piece at a time in the thread of the store."""
    following: list[int | None] = [_LAST]

    def piece(db: Any) -> bytes:
        before = following[0]
        if before is None:
            return b""
        entries, following[0] = read(db, before)
        return b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)

    return PieceStream(lambda: call.console.store.read(piece), NDJSON)


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/activity",
        Permission.VIEW,
        _activity,
        "All changes, or those that a query matches, the newest first.",
        answer=ActivityPage,
        query=ActivityQuery,
    ),
    ApiRoute(
        "GET",
        "/activity.ndjson",
        Permission.VIEW,
        _all_activity,
        "All changes, one JSON object a line.",
        answer=str,
        gives=NDJSON,
    ),
    ApiRoute(
        "GET",
        "/audit",
        Permission.ADMINISTER,
        _audit,
        "Log-ins and other things done that change nothing, or those that a query matches, the newest first.",
        answer=AuditPage,
        query=AuditQuery,
    ),
    ApiRoute(
        "GET",
        "/audit.ndjson",
        Permission.ADMINISTER,
        _all_audit,
        "The whole audit, one JSON object a line.",
        answer=str,
        gives=NDJSON,
    ),
)
