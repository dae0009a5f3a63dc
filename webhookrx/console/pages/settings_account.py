"""
The settings of whoever is signed in: password, sessions, API tokens.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.console.api.principal import ROLES, Permission
from webhookrx.console.api.problems import FORBIDDEN, ApiProblem
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.settings_tabs import ROWS, settings_page
from webhookrx.console.people.accounts import TokenView
from webhookrx.console.people.routes import MadeToken, WhoAmI
from webhookrx.console.people.sessions import SessionView

_PATH: Final = "/settings/account"
_TYPED: Final = {"name": "", "role": "viewer", "tap": False, "days": "90"}


async def show_account(call: PageCall) -> PageAnswer:
    """Show it."""
    return await _page(call)


async def change_password(call: PageCall) -> PageAnswer:
    """Change the password; other sessions end."""
    form = call.form
    body = {
        "old": form.raw("old"),
        "password": form.raw("password"),
        "keep_tokens": form.flag("keep_tokens"),
    }
    try:
        await call.api("PUT", "/session/password", body)
    except ApiProblem as problem:
        at = "old" if problem.kind is FORBIDDEN else "password"
        return await _page(call, problem, keep_tokens=form.flag("keep_tokens"), wrong={at: [problem.detail]})
    return Redirect(_PATH, "password-changed")


async def end_session(call: PageCall) -> PageAnswer:
    """End one of one's own sessions."""
    await call.api("DELETE", f"/sessions/{in_path(call.path['id'])}")
    return Redirect(_PATH, "session-ended")


async def make_token(call: PageCall) -> PageAnswer:
    """Make an API token; its secret is shown this once."""
    form = call.form
    typed = {
        "name": form.text("name"),
        "role": form.text("role"),
        "tap": form.flag("tap"),
        "days": form.text("days"),
    }
    try:
        body = {**typed, "days": form.number("days", 90)}
        made: MadeToken = (await call.api("POST", "/tokens", body)).body
    except ApiProblem as problem:
        return await _page(call, problem, typed=typed)
    return await _page(call, made=made)


async def remove_token(call: PageCall) -> PageAnswer:
    """Remove one of one's own API tokens."""
    await call.api("DELETE", f"/tokens/{in_path(call.path['id'])}")
    return Redirect(_PATH, "token-removed")


async def _page(call: PageCall, problem: ApiProblem | None = None, **more: Any) -> Page:
    me: WhoAmI = (await call.api("GET", "/session")).body
    sessions: list[SessionView] = (await call.api("GET", "/sessions")).body
    all_tokens: list[TokenView] = (await call.api("GET", "/tokens")).body
    tokens = [each for each in all_tokens if each.person == me.name]
    values = {
        "single_sign_on": me.single_sign_on,
        "session_id": call.me.session_id,
        "sessions": sorted(sessions, key=lambda each: (each.id != call.me.session_id, -each.used_at)),
        "tokens": tokens[:ROWS],
        "now": call.console.clock(),
        "roles": [(role, role) for role in ROLES if call.may(Permission(role))],
        "made": None,
        "typed": _TYPED,
        "keep_tokens": False,
        "wrong": {},
        **more,
    }
    return settings_page(call, "settings_account.html", values, problem, _PATH)


ROUTES: Final = (
    PageRoute("GET", _PATH, Permission.SIGNED_IN, show_account),
    PageRoute("POST", f"{_PATH}/password", Permission.SIGNED_IN, change_password, 4096),
    PageRoute("POST", f"{_PATH}/sessions/{{id}}:end", Permission.SIGNED_IN, end_session, 4096),
    PageRoute("POST", f"{_PATH}/tokens", Permission.SIGNED_IN, make_token, 4096),
    PageRoute("POST", f"{_PATH}/tokens/{{id}}:remove", Permission.SIGNED_IN, remove_token, 4096),
)
