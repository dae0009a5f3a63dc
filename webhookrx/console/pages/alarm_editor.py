"""
The pages of one alarm: new, changed, deleted, and its history.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from webhookrx.console.alarms.alarm_book import ListedAlarm
from webhookrx.console.alarms.alarm_routes import AlarmsPage
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, STALE, ApiProblem
from webhookrx.console.pages.alarm_targets import NewTarget, new_target
from webhookrx.console.pages.alarm_words import KIND, KINDS, STATE_BADGES
from webhookrx.console.pages.api_calls import in_path, typed_in_path
from webhookrx.console.pages.diffs import change_diff, document_diff
from webhookrx.console.pages.form import Form
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.store.history import HistoryEntry

KEYS: Final = ("kind", "when", "for", "above", "expect_within", "notify")
"""What an alarm says, beside its name."""

_NO_TARGET: Final = NewTarget()
_STATES_SHOWN: Final = 20
_CHANGES_A_PAGE: Final = 20

#: What the API says of a key that is missing stands nowhere in the document.
_TAKES: Final = re.compile(r"It takes (\w+):")


async def show_new(call: PageCall) -> PageAnswer:
    """Ask what a new alarm is to be about, with what the query says already."""
    kind = call.query.text("kind")
    if kind not in KIND:
        return Page("alarm_kinds.html", {"kinds": KINDS})
    texts = _texts(call.query) | {"kind": kind}
    if not call.query.flag("for"):
        texts["for"] = KIND[kind].example
    return await _form(call, call.query.text("name"), texts, None)


async def make_alarm(call: PageCall) -> PageAnswer:
    """Make an alarm, and the target that its form names."""
    name, texts = call.form.text("name"), _texts(call.form)
    target = await new_target(call)
    try:
        await _save(call, name, texts, target, if_none_match="*")
    except ApiProblem as problem:
        return await _form(call, name, texts, None, problem, target)
    return Redirect(_path(name), "alarm-saved")


async def show_alarm(call: PageCall) -> PageAnswer:
    """Show an alarm, its fields, and what it is not content with now."""
    listed = await _listed(call)
    return await _form(call, listed.name, listed.alarm.texts, listed)


async def change_alarm(call: PageCall) -> PageAnswer:
    """Change an alarm, unless somebody else has in the meantime; and make the target that its form names."""
    name, texts = call.path["name"], _texts(call.form)
    generation = call.form.number("generation")
    target = await new_target(call)
    try:
        await _save(call, name, texts, target, if_match=f"g{generation}")
    except ApiProblem as problem:
        if problem.kind is NOT_FOUND:
            raise
        return await _form(call, name, texts, await _listed(call), problem, target)
    return Redirect(_path(name), "alarm-saved")


async def delete_alarm(call: PageCall) -> PageAnswer:
    """Delete an alarm, unless somebody has changed it in the meantime."""
    name = call.path["name"]
    try:
        await call.api("DELETE", f"/alarms/{in_path(name)}", if_match=f"g{call.form.number('generation')}")
    except ApiProblem as problem:
        if problem.kind is not STALE:
            raise
        listed = await _listed(call)
        return await _form(call, name, listed.alarm.texts, listed, problem)
    return Redirect("/alarms", "alarm-deleted")


async def show_history(call: PageCall) -> PageAnswer:
    """Show the changes of an alarm."""
    return await _history(call)


async def roll_back(call: PageCall) -> PageAnswer:
    """Make an alarm what it was."""
    name = call.path["name"]
    try:
        body = {"generation": call.form.number("generation")}
        await call.api("POST", f"/alarms/{in_path(name)}:rollback", body)
    except ApiProblem as problem:
        if problem.kind is NOT_FOUND:
            raise
        return await _history(call, problem)
    return Redirect(_path(name), "alarm-rolled-back")


async def _history(call: PageCall, problem: ApiProblem | None = None) -> Page:
    name, before = call.path["name"], call.query.number("before")
    asked = {"count": _CHANGES_A_PAGE, "before": before or None}
    entries: tuple[HistoryEntry, ...] = ()
    try:
        entries = (await call.api("GET", f"/alarms/{in_path(name)}/history", query=asked)).body.entries
    except ApiProblem as missing:
        # A built-in alarm may have no history.
        if missing.kind is not NOT_FOUND:
            raise
        await call.api("GET", f"/alarms/{in_path(name)}")
    values = {
        "name": name,
        "entries": [(each, change_diff("alarm", each.before, each.after)) for each in entries],
        "newest": entries[0].generation if entries and not before else None,
        "next": entries[-1].id if len(entries) == _CHANGES_A_PAGE else None,
        "problem": problem,
    }
    return Page("alarm_history.html", values, *_status(problem))


async def _form(
    call: PageCall,
    name: str,
    texts: Mapping[str, str],
    listed: ListedAlarm | None,
    problem: ApiProblem | None = None,
    target: NewTarget = _NO_TARGET,
) -> Page:
    """
    @param listed: the alarm as it is now; None for a new one.
    @param target: the one that was named in the form.
    """
    targets = (await call.api("GET", "/alarm-targets")).body.targets
    notify = [("", "nobody"), *((each.name, f"{each.name} ({each.url})") for each in targets)]
    if texts.get("notify") and texts["notify"] not in dict(notify):
        notify.append((texts["notify"], f"{texts['notify']} (there is no such target)"))
    page: AlarmsPage | None = None
    if listed is not None:
        asked = {"alarm": name, "count": _STATES_SHOWN}
        page = (await call.api("GET", "/alarms", query=asked)).body
    stale = problem is not None and problem.kind is STALE
    values: dict[str, Any] = {
        "name": name,
        "texts": {key: texts.get(key, "") for key in KEYS},
        "listed": listed,
        "page": page,
        "kinds": KINDS,
        "notify": notify,
        "target": target,
        "badges": STATE_BADGES,
        "errors": _errors(problem),
        "problem": problem,
        "other": await _other(call, name, texts) if stale and listed is not None else None,
    }
    return Page("alarm.html", values, *_status(problem))


async def _other(call: PageCall, name: str, texts: Mapping[str, str]) -> dict[str, Any] | None:
    """Return who has changed an alarm, and how what they have saved differs from what was typed now."""
    entries = (await call.api("GET", f"/alarms/{in_path(name)}/history", query={"count": 1})).body.entries
    typed = dict(sorted({"name": name, **texts}.items()))  # as the history has it
    newest: HistoryEntry = entries[0]
    lines = document_diff(newest.after, typed)
    return {"by": newest.by, "at": newest.at, "lines": lines}


def _errors(problem: ApiProblem | None) -> dict[str, list[str]]:
    """Return what is wrong, by the field of the form."""
    errors: dict[str, list[str]] = {}
    for each in problem.findings if problem is not None else ():
        missing = _TAKES.match(each.sentence)
        key = str(each.path[0]) if each.path else missing[1] if missing else ""
        place = f" (column {each.column})" if each.column else ""
        errors.setdefault(key, []).append(each.sentence + place)
    return errors


async def _listed(call: PageCall) -> ListedAlarm:
    listed: ListedAlarm = (await call.api("GET", _path(call.path["name"]))).body
    return listed


async def _save(
    call: PageCall,
    name: str,
    texts: dict[str, str],
    target: NewTarget,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> None:
    """
    Save an alarm. It tells the new target, if there is one, also in C{texts}.

    @raise ApiProblem: it can't be saved, or the target could not be made.
    """
    if target.problem is not None:
        raise target.problem
    if target.made:
        texts["notify"] = target.made
    await call.api(
        "PUT", f"/alarms/{typed_in_path(name)}", {**texts, "name": name}, if_match=if_match, if_none_match=if_none_match
    )


def _texts(form: Form) -> dict[str, str]:
    return {key: text for key in KEYS if (text := form.text(key))}


def _path(name: str) -> str:
    return f"/alarms/{in_path(name)}"


def _status(problem: ApiProblem | None) -> tuple[int, tuple[tuple[str, str], ...]]:
    return (200, ()) if problem is None else (problem.kind.status, problem.headers)


ROUTES: Final = (
    PageRoute("GET", "/alarms:new", Permission.EDIT, show_new),
    PageRoute("POST", "/alarms:new", Permission.EDIT, make_alarm),
    PageRoute("GET", "/alarms/{name}", Permission.VIEW, show_alarm),
    PageRoute("POST", "/alarms/{name}", Permission.EDIT, change_alarm),
    PageRoute("POST", "/alarms/{name}:delete", Permission.EDIT, delete_alarm),
    PageRoute("GET", "/alarms/{name}/history", Permission.VIEW, show_history),
    PageRoute("POST", "/alarms/{name}:rollback", Permission.EDIT, roll_back),
)
