"""
The history of a rule: each change with its difference, and the way back to what the rule was.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.diffs import DiffLine, change_diff
from webhookrx.console.pages.one_by_one import one_by_one
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.rules import may_edit_rules
from webhookrx.console.store.history import HistoryEntry

MOST_CHANGES: Final = 20
"""Changes on one page, each with its difference."""


class ChangeOfRule(msgspec.Struct, frozen=True):
    """
    A change with its difference.

    @ivar is_now: it is the newest, and so what the rule is.
    """

    entry: HistoryEntry
    lines: list[DiffLine]
    is_now: bool


async def show_rule_history(call: PageCall) -> PageAnswer:
    """Show the changes of a rule, the newest first."""
    name, before = call.path["name"], call.query.number("before")
    entries = await _entries(call, before=before, count=MOST_CHANGES + 1)
    shown = entries[:MOST_CHANGES]
    changes = await one_by_one(lambda: [_shown(each, is_now=each is entries[0] and not before) for each in shown])
    values = {
        "name": name,
        "changes": changes,
        "before": before,
        "older": shown[-1].id if len(entries) > len(shown) else None,
        "is_there": bool(before) or (bool(entries) and entries[0].operation != "delete"),
        "may_edit": may_edit_rules(call),
    }
    return Page("rule_history.html", values)


async def show_roll_back(call: PageCall) -> PageAnswer:
    """Show what rolling back to a generation would change, before it is done."""
    return await _plan(call)


async def roll_back(call: PageCall) -> PageAnswer:
    """Make the rule what it was, unless it has changed since that was shown."""
    name, generation = call.path["name"], _generation(call)
    read = call.form.number("read")
    try:
        answer = await call.api(
            "POST", f"/rules/{in_path(name)}:rollback", {"generation": generation}, if_match=f"g{read}"
        )
    except ApiProblem as problem:
        return await _plan(call, problem)
    # A rule that was rolled back to one that is deleted has no page of its own.
    to = f"/rules/{in_path(name)}" if answer.body.rules else f"/rules/{in_path(name)}/history"
    return Redirect(to, "rule-rolled-back")


async def _plan(call: PageCall, problem: ApiProblem | None = None) -> Page:
    name, generation = call.path["name"], _generation(call)
    (newest,) = await _entries(call, count=1)
    past = (await call.api("GET", f"/rules/{in_path(name)}/history/{generation}")).body
    preview: Any = None
    preview_problem: ApiProblem | None = None
    if past.after is not None and newest.generation != generation:
        replaces = name if newest.after is not None else ""
        try:
            preview = (await call.api("POST", "/rules:preview", _body(past.after, replaces))).body
        except ApiProblem as error:
            preview_problem = error
    values = {
        "name": name,
        "past": past,
        "newest": newest,
        "lines": await one_by_one(lambda: change_diff("rule", newest.after, past.after)),
        "preview": preview,
        "problem": problem or preview_problem,
        "may_edit": may_edit_rules(call),
    }
    headers = () if problem is None else problem.headers
    return Page("rule_roll_back.html", values, 200 if problem is None else problem.kind.status, headers)


def _shown(entry: HistoryEntry, *, is_now: bool) -> ChangeOfRule:
    return ChangeOfRule(entry, change_diff("rule", entry.before, entry.after), is_now)


def _body(entry: dict[str, Any], replaces: str) -> dict[str, Any]:
    if "yaml" in entry:
        return {"yaml": entry["yaml"], "replaces": replaces}
    return {"rule": entry["rule"], "replaces": replaces}


async def _entries(call: PageCall, *, before: int = 0, count: int) -> tuple[HistoryEntry, ...]:
    asked = {"before": before or "", "count": count}
    answer = await call.api("GET", f"/rules/{in_path(call.path['name'])}/history", query=asked)
    entries: tuple[HistoryEntry, ...] = answer.body.entries
    return entries


def _generation(call: PageCall) -> int:
    text = call.path["generation"]
    if not re.fullmatch("[1-9][0-9]{0,14}", text):
        raise ApiProblem(NOT_FOUND, "The rule had no such generation.")
    return int(text)


_AT: Final = "/rules/{name}/history/{generation}"

ROUTES: Final = (
    PageRoute("GET", "/rules/{name}/history", Permission.VIEW, show_rule_history),
    PageRoute("GET", _AT, Permission.EDIT, show_roll_back),
    PageRoute("POST", _AT, Permission.EDIT, roll_back, 4096),
)
