"""
The page of enrolments: makes the tokens by which hosts become routers, and lists those that can still be used.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.router_words import RouterCommands, typed_labels
from webhookrx.console.routers.routes import MadeEnrolment, ShownEnrolments

#: No router's name has a colon.
PATH: Final = "/routers/:enrol"

MOST_ROWS: Final = 50
_HOUR: Final = 3600
_EMPTY_ROW: Final = ("", "")


async def show_enrolments(call: PageCall) -> PageAnswer:
    """Show the form, and the enrolments that can be used."""
    return await _page(call)


async def make_enrolment(call: PageCall) -> PageAnswer:
    """Make an enrolment; its token is shown this once."""
    form = call.form
    typed = typed_labels(form)
    values: dict[str, Any] = {
        "approve": form.text("approve", "manual"),
        "uses": form.text("uses"),
        "hours": form.text("hours"),
        "rows": [*typed, _EMPTY_ROW],
    }
    try:
        if len(dict(typed)) < len(typed):
            raise ApiProblem(INVALID, "A label is there twice.")
        body = {
            "approve": values["approve"],
            "uses": form.number("uses", 1),
            "seconds": form.number("hours", 1) * _HOUR,
            "labels": dict(typed),
        }
        answer = await call.api("POST", "/enrolments", body)
    except ApiProblem as problem:
        page = await _page(call)
        return Page(page.template, {**page.values, **values, "problem": problem}, problem.kind.status)
    made: MadeEnrolment = answer.body
    page = await _page(call)
    return Page(page.template, {**page.values, "made": made, "commands": RouterCommands(made)})


async def delete_enrolment(call: PageCall) -> PageAnswer:
    """Delete an enrolment: its token is good for nothing."""
    await call.api("DELETE", f"/enrolments/{in_path(call.path['id'])}")
    return Redirect(PATH, "enrolment-deleted")


async def _page(call: PageCall) -> Page:
    answer = await call.api("GET", "/enrolments")
    listed: ShownEnrolments = answer.body
    enrolments = sorted(listed.enrolments, key=lambda each: -each.made_at)
    return Page(
        "enrolments.html",
        {
            "path": PATH,
            "made": None,
            "commands": None,
            "problem": None,
            "approve": "manual",
            "uses": "1",
            "hours": "1",
            "rows": [_EMPTY_ROW, _EMPTY_ROW],
            "enrolments": enrolments[:MOST_ROWS],
            "more": len(enrolments[MOST_ROWS:]),
        },
    )


ROUTES: Final = (
    PageRoute("GET", PATH, Permission.ADMINISTER, show_enrolments),
    PageRoute("POST", PATH, Permission.ADMINISTER, make_enrolment),
    PageRoute("POST", f"{PATH}/{{id}}:delete", Permission.ADMINISTER, delete_enrolment, 4096),
)
