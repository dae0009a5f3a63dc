"""
The page of the targets of alarms, for admins; and the target that the form of an alarm names.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from webhookrx.console.alarms.alarm_routes import AlarmsPage
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import CONFLICT, NOT_FOUND, ApiProblem
from webhookrx.console.pages.api_calls import in_path, typed_in_path
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.settings_tabs import errors_at


class NewTarget(NamedTuple):
    """
    A target that the form of an alarm names.

    @ivar name: as it was typed; empty once it is made, as C{url} is.
    @ivar made: its name, once it is made.
    @ivar problem: why it is not.
    """

    name: str = ""
    url: str = ""
    made: str = ""
    problem: ApiProblem | None = None

    def errors(self, name: str) -> list[str]:
        """Return what is wrong with its name, or its URL."""
        return errors_at(self.problem, name)


async def new_target(call: PageCall) -> NewTarget:
    """Make the target that the form of an alarm names, if it names one. One that is there keeps its URL."""
    typed = NewTarget(call.form.text("target_name"), call.form.text("target_url"))
    if not (typed.name or typed.url):
        return typed
    try:
        targets = (await call.api("GET", "/alarm-targets")).body.targets
        if any(each.name == typed.name for each in targets):
            raise ApiProblem(CONFLICT, f"There is a target {typed.name} already: choose it, or write another name.")
        await call.api("PUT", f"/alarm-targets/{typed_in_path(typed.name)}", {"url": typed.url})
    except ApiProblem as problem:
        return typed._replace(problem=problem)
    return NewTarget(made=typed.name)


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
        await call.api("PUT", f"/alarm-targets/{typed_in_path(name)}", body)
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
    values = {
        "targets": targets,
        "users": users,
        "typed": typed,
        "errors": {key: errors_at(problem, key) for key in ("name", "url")},
        "problem": problem,
    }
    status, headers = (200, ()) if problem is None else (problem.kind.status, problem.headers)
    return Page("alarm_targets.html", values, status, headers)


ROUTES: Final = (
    PageRoute("GET", "/alarm-targets", Permission.VIEW, show_targets),
    PageRoute("POST", "/alarm-targets", Permission.ADMINISTER, save_target, 16 * 1024),
    PageRoute("POST", "/alarm-targets/{name}:delete", Permission.ADMINISTER, delete_target),
)
