"""
The page Activity: who has changed what, the newest first; and for admins the audit, of what changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute

MOST_ROWS: Final = 50

#: Queries that people ask for most.
ACTIVITY_QUERIES: Final = (
    ("", "all"),
    ("kind = rule", "rules"),
    ("kind = router", "routers"),
    ("kind = alarm", "alarms"),
    ("kind IN (user, token)", "people and tokens"),
    ("kind IN (enrolment, setting)", "enrolments and settings"),
    ("via =* rollback:", "roll backs"),
)
AUDIT_QUERIES: Final = (
    ("", "all"),
    ("event = login", "log-ins"),
    ("event = login_failed", "failed log-ins"),
    ("event IN (tap, tap_ended)", "taps"),
    ("event IN (certificate, enrolment_refused)", "routers"),
)
_REFUSALS: Final = ("login_failed", "enrolment_refused")
_LONGEST_DETAILS: Final = 300


class AuditRow(msgspec.Struct, frozen=True):
    """
    An entry of the audit.

    @ivar details: as text.
    @ivar is_refusal: somebody was not let in.
    """

    entry: Any
    details: str
    is_refusal: bool


async def show_activity(call: PageCall) -> PageAnswer:
    """Show the changes that a query matches."""
    page, error, problem = await _asked(call, "/activity")
    values = {"entries": [] if page is None else page.entries, "queries": ACTIVITY_QUERIES}
    return _listed("activity.html", call, values, page, error, problem)


async def show_audit(call: PageCall) -> PageAnswer:
    """Show what people and routers have done, or tried, that changes nothing."""
    page, error, problem = await _asked(call, "/audit")
    entries = [] if page is None else page.entries
    rows = [AuditRow(each, _details(each.details), each.event in _REFUSALS) for each in entries]
    return _listed("audit.html", call, {"rows": rows, "queries": AUDIT_QUERIES}, page, error, problem)


async def _asked(call: PageCall, path: str) -> tuple[Any, str, ApiProblem | None]:
    """Return a page of entries, or what is wrong with the query."""
    asked = {"query": call.query.text("query"), "before": call.query.number("before"), "count": MOST_ROWS}
    try:
        return (await call.api("GET", path, query={**asked, "before": asked["before"] or ""})).body, "", None
    except ApiProblem as problem:
        if problem.kind is not INVALID:
            raise
        return None, problem.detail or problem.kind.title, problem


def _listed(
    template: str, call: PageCall, values: dict[str, Any], page: Any, error: str, problem: ApiProblem | None
) -> Page:
    shell = {
        "query": call.query.text("query"),
        "before": call.query.number("before"),
        "older": None if page is None else page.next_before,
        "error": error,
    }
    return Page(template, {**shell, **values}, 200 if problem is None else problem.kind.status)


def _details(details: dict[str, Any]) -> str:
    parts = [f"{name}: {_plain(value)}" for name, value in details.items() if value not in ("", None, [], {})]
    text = ", ".join(parts)
    return text if len(text) <= _LONGEST_DETAILS else f"{text[: _LONGEST_DETAILS - 1]}…"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


ROUTES: Final = (
    PageRoute("GET", "/activity", Permission.VIEW, show_activity),
    PageRoute("GET", "/audit", Permission.ADMINISTER, show_audit),
)
