"""
The page of the targets of alarms, for admins.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.console.alarms.alarm_routes import AlarmsPage
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.api.table import fits_path
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect


async def show_targets(call: PageCall) -> PageAnswer:
    """Show them."""
    return await _page(call, {"name": call.query.text("name"), "url": "", "built_in": False})


async def save_target(call: PageCall) -> PageAnswer:
    """Make or change a target."""
    form = call.form
    typed = {"name": form.text("name"), "url": form.text("url"), "built_in": form.flag("built_in")}
    name = form.text("name")
    try:
        body = {"url": typed["url"], "built_in": typed["built_in"]}
        # A name that can't be one in a path can't be one of a target either, which the API says best.
        await call.api("PUT", f"/alarm-targets/{in_path(name) if name and fits_path(name) else '-'}", body)
    except ApiProblem as problem:
        return await _page(call, typed, problem)
    return Redirect("/alarm-targets", "alarm-target-saved")


async def delete_target(call: PageCall) -> PageAnswer:
    """Delete a target."""
    try:
        await call.api("DELETE", f"/alarm-targets/{in_path(call.path['name'])}")
    except ApiProblem as problem:
        if problem.kind is NOT_FOUND:
            raise
        return await _page(call, {"name": "", "url": "", "built_in": False}, problem)
    return Redirect("/alarm-targets", "alarm-target-deleted")


async def _page(call: PageCall, typed: dict[str, Any], problem: ApiProblem | None = None) -> Page:
    targets = (await call.api("GET", "/alarm-targets")).body.targets
    alarms: AlarmsPage = (await call.api("GET", "/alarms", query={"count": 1})).body
    told = [(alarm.name, alarm.notify.split(",")) for alarm in alarms.alarms]
    users = {each.name: [alarm for alarm, names in told if each.name in names] for each in targets}
    values = {"targets": targets, "users": users, "typed": typed, "problem": problem}
    status, headers = (200, ()) if problem is None else (problem.kind.status, problem.headers)
    return Page("alarm_targets.html", values, status, headers)


ROUTES: Final = (
    PageRoute("GET", "/alarm-targets", Permission.VIEW, show_targets),
    PageRoute("POST", "/alarm-targets", Permission.ADMINISTER, save_target, 16 * 1024),
    PageRoute("POST", "/alarm-targets/{name}:delete", Permission.ADMINISTER, delete_target),
)
