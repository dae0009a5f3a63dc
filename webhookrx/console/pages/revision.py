"""
One revision with the difference of each of its changes, and the way back to what all rules were then.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.diffs import DiffLine, change_diff
from webhookrx.console.pages.one_by_one import one_by_one
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.rules import may_edit_rules
from webhookrx.console.rules.rulebook import RollbackPlan
from webhookrx.console.store.history import HistoryEntry

MOST_CHANGES: Final = 20
"""Changes on one page, each with its difference."""

MOST_LINES: Final = 450
"""Lines of all differences of a page: what it may weigh."""

MOST_NAMES: Final = 50
MOST_FIELDS: Final = 20
"""Rules, and fields of one, that the preview of a roll back names."""

_LINKS: Final = {"rule": "/rules/", "router": "/routers/", "alarm": "/alarms/"}
"""Where a thing of a kind is shown, as long as it is there."""


class ShownChange(msgspec.Struct, frozen=True):
    """
    A change with its difference.

    @ivar link: to what was changed; empty for none.
    @ivar is_cut: its difference is left out, as the page has enough.
    """

    entry: HistoryEntry
    link: str
    lines: list[DiffLine]
    is_cut: bool


async def show_revision(call: PageCall) -> PageAnswer:
    """Show what a revision has changed."""
    number, before = call.path["number"], call.query.number("before")
    asked = {"before": before or "", "count": MOST_CHANGES + 1}
    revision = (await call.api("GET", f"/revisions/{in_path(number)}", query=asked)).body
    shown = revision.entries[:MOST_CHANGES]
    values = {
        "revision": revision,
        "changes": await one_by_one(_shown, shown),
        "before": before,
        "older": shown[-1].id if len(revision.entries) > len(shown) else None,
        "may_edit": may_edit_rules(call),
    }
    return Page("revision.html", values)


async def show_roll_back(call: PageCall) -> PageAnswer:
    """Show what rolling back to a revision would change, before it is done."""
    return await _plan(call)


async def roll_back(call: PageCall) -> PageAnswer:
    """Make all rules what they were, unless one has changed since that was shown."""
    number, read = call.path["number"], call.form.number("read")
    try:
        await call.api("POST", f"/revisions/{in_path(number)}:rollback", if_match=f"r{read}")
    except ApiProblem as problem:
        return await _plan(call, problem)
    return Redirect("/activity", "rules-rolled-back")


async def _plan(call: PageCall, problem: ApiProblem | None = None) -> Page:
    number = in_path(call.path["number"])
    plan: RollbackPlan = (await call.api("POST", f"/revisions/{number}:preview")).body
    revision = (await call.api("GET", f"/revisions/{number}", query={"count": 1})).body
    values = {
        "revision": revision,
        "plan": plan,
        "changed": len(plan.creates) + len(plan.updates) + len(plan.deletes),
        "most_names": MOST_NAMES,
        "most_fields": MOST_FIELDS,
        "problem": problem,
        "may_edit": may_edit_rules(call),
    }
    headers = () if problem is None else problem.headers
    return Page("revision_roll_back.html", values, 200 if problem is None else problem.kind.status, headers)


def _shown(entries: tuple[HistoryEntry, ...]) -> list[ShownChange]:
    changes, left = [], MOST_LINES
    for entry in entries:
        lines = change_diff(entry.kind, entry.before, entry.after) if left > 0 else []
        changes.append(ShownChange(entry, _link(entry), lines, left <= 0))
        left -= len(lines)
    return changes


def _link(entry: HistoryEntry) -> str:
    place: Any = _LINKS.get(entry.kind)
    if entry.kind == "rule":
        # A rule that is deleted has its history.
        return f"{place}{in_path(entry.name)}/history"
    return "" if place is None or entry.after is None else f"{place}{in_path(entry.name)}"


_AT: Final = "/activity/{number}/roll-back"

ROUTES: Final = (
    PageRoute("GET", "/activity/{number}", Permission.VIEW, show_revision),
    PageRoute("GET", _AT, Permission.EDIT, show_roll_back),
    PageRoute("POST", _AT, Permission.EDIT, roll_back, 4096),
)
