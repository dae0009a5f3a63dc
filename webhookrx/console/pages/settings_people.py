"""
The settings of people: a list of all, and a page for each, with rights and password.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.console.api.principal import ROLES, Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.settings_tabs import rows_found, settings_page
from webhookrx.console.people.accounts import PersonView, TokenView

_PATH: Final = "/settings/people"
_ROLES: Final = [(role, role) for role in ROLES]


async def show_people(call: PageCall) -> PageAnswer:
    """List people, and offer to add one."""
    return await _list(call)


async def add_person(call: PageCall) -> PageAnswer:
    """Add a person with a password."""
    form = call.form
    typed = {"name": form.text("name"), "role": form.text("role"), "tap": form.flag("tap")}
    try:
        await call.api("POST", "/people", {**typed, "password": form.raw("password")})
    except ApiProblem as problem:
        return await _list(call, problem, typed=typed)
    return Redirect(_PATH, "person-added")


async def show_person(call: PageCall) -> PageAnswer:
    """Show a person."""
    return await _person(call)


async def change_person(call: PageCall) -> PageAnswer:
    """Change rights; all sessions of the person end."""
    form, name = call.form, call.path["name"]
    body: dict[str, Any] = {"enabled": form.flag("enabled")}
    if form.text("role"):
        body |= {"role": form.text("role"), "tap": form.flag("tap")}
    try:
        await call.api("PATCH", f"/people/{in_path(name)}", body)
    except ApiProblem as problem:
        return await _person(call, problem)
    if name == call.me.name:
        return Redirect("/sign-in", "own-rights-changed")
    return Redirect(_PATH, "person-changed")


async def set_password(call: PageCall) -> PageAnswer:
    """Give a person a new password; all sessions of the person end."""
    form, name = call.form, call.path["name"]
    body = {"password": form.raw("password"), "keep_tokens": form.flag("keep_tokens")}
    try:
        await call.api("PATCH", f"/people/{in_path(name)}", body)
    except ApiProblem as problem:
        return await _person(call, problem, keep_tokens=form.flag("keep_tokens"), wrong=[problem.detail])
    if name == call.me.name:
        return Redirect("/sign-in", "own-password-changed")
    return Redirect(_PATH, "person-changed")


async def remove_person(call: PageCall) -> PageAnswer:
    """Remove a person, with sessions and API tokens."""
    name = call.path["name"]
    try:
        await call.api("DELETE", f"/people/{in_path(name)}")
    except ApiProblem as problem:
        if problem.kind is NOT_FOUND:
            raise
        return await _person(call, problem)
    return Redirect("/sign-in", "own-account-removed") if name == call.me.name else Redirect(_PATH, "person-removed")


async def _list(call: PageCall, problem: ApiProblem | None = None, **more: Any) -> Page:
    everyone: list[PersonView] = (await call.api("GET", "/people")).body
    shown, more_rows = rows_found(call, _PATH, everyone, lambda each: (each.name,))
    oidc = call.console.settings.oidc
    values = {
        "people": shown,
        **more_rows,
        "only": oidc is not None and oidc.only,
        "has_provider": oidc is not None,
        "roles": _ROLES,
        "typed": {"name": "", "role": "viewer", "tap": False},
        **more,
    }
    return settings_page(call, "settings_people.html", values, problem, _PATH)


async def _person(call: PageCall, problem: ApiProblem | None = None, **more: Any) -> Page:
    everyone: list[PersonView] = (await call.api("GET", "/people")).body
    person = next((each for each in everyone if each.name == call.path["name"]), None)
    if person is None:
        raise ApiProblem(NOT_FOUND, "There is no such person.")
    tokens: list[TokenView] = (await call.api("GET", "/tokens")).body
    values = {
        "person": person,
        "is_me": person.name == call.me.name,
        "tokens": [each for each in tokens if each.person == person.name],
        "roles": _ROLES,
        "keep_tokens": False,
        "wrong": [],
        **more,
    }
    return settings_page(call, "settings_person.html", values, problem, _PATH)


_ADMIN: Final = Permission.ADMINISTER

ROUTES: Final = (
    PageRoute("GET", _PATH, _ADMIN, show_people),
    PageRoute("POST", _PATH, _ADMIN, add_person, 4096),
    PageRoute("GET", f"{_PATH}/{{name}}", _ADMIN, show_person),
    PageRoute("POST", f"{_PATH}/{{name}}", _ADMIN, change_person, 4096),
    PageRoute("POST", f"{_PATH}/{{name}}:password", _ADMIN, set_password, 4096),
    PageRoute("POST", f"{_PATH}/{{name}}:remove", _ADMIN, remove_person, 4096),
)
