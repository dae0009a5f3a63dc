"""
The pages of whoever is not signed in yet: sign in, sign out, the first admin; and the choice of colours.
"""

from __future__ import annotations

import re
from typing import Any, Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.pages.page import THEME_COOKIE, Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.rendering import query_string

#: A path of this console: browsers take C{//} and C{/\\} for another host.
_LOCAL: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*")


def local_path(text: str) -> str:
    """Return a path with its query if it is one of this console; else that of the overview."""
    return text if _LOCAL.fullmatch(text) else "/"


def sign_in_page(
    call: PageCall,
    next_path: str,
    name: str = "",
    problem: ApiProblem | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Page:
    """
    Return the page that asks who somebody is.

    @param problem: why they are not signed in; None for a first try.
    """
    oidc = call.console.settings.oidc
    values: dict[str, Any] = {
        "next": next_path,
        "name": name,
        "problem": problem,
        "single_sign_on": oidc is not None,
        "only": oidc is not None and oidc.only,
        # Never that of a provider's answer, which holds its code.
        "url": f"/sign-in{query_string(next=next_path)}",
    }
    if problem is None:
        return Page("sign_in.html", values, headers=headers)
    return Page("sign_in.html", values, problem.kind.status, (*problem.headers, *headers))


async def show_sign_in(call: PageCall) -> PageAnswer:
    """Ask for name and password."""
    return sign_in_page(call, call.query.text("next"))


async def sign_in(call: PageCall) -> PageAnswer:
    """Begin a session, and go on where somebody wanted to be."""
    form = call.form
    name, next_path = form.text("name"), form.text("next")
    password = form.raw("password")
    try:
        answer = await call.api("POST", "/session", {"name": name, "password": password})
    except ApiProblem as problem:
        return sign_in_page(call, next_path, name, problem)
    return Redirect(local_path(next_path), headers=answer.headers)


async def sign_out(call: PageCall) -> PageAnswer:
    """End the session."""
    answer = await call.api("DELETE", "/session")
    return Redirect("/sign-in", "signed-out", answer.headers)


async def show_first_admin(call: PageCall) -> PageAnswer:
    """Ask for the secret of the link, and for a name and a password."""
    return Page("first_admin.html", {"secret": "", "name": "", "problem": None})


async def make_first_admin(call: PageCall) -> PageAnswer:
    """Make the first admin."""
    form = call.form
    secret, name = form.text("secret"), form.text("name")
    password = form.raw("password")
    try:
        await call.api("POST", "/first-admin", {"secret": secret, "name": name, "password": password})
    except ApiProblem as problem:
        values = {"secret": secret, "name": name, "problem": problem}
        return Page("first_admin.html", values, problem.kind.status, problem.headers)
    return Redirect("/sign-in", "first-admin")


async def set_theme(call: PageCall) -> PageAnswer:
    """Keep the choice of colours in the browser for a year."""
    theme = call.form.text("theme")
    kept = f"{theme}; Max-Age=31536000" if theme in ("light", "dark") else "; Max-Age=0"
    cookie = f"{THEME_COOKIE}={kept}; Path=/; Secure; HttpOnly; SameSite=Lax"
    return Redirect(local_path(call.form.text("back")), headers=(("Set-Cookie", cookie),))


ROUTES: Final = (
    PageRoute("GET", "/sign-in", Permission.ANYONE, show_sign_in),
    PageRoute("POST", "/sign-in", Permission.ANYONE, sign_in, 4096),
    PageRoute("POST", "/sign-out", Permission.SIGNED_IN, sign_out, 4096),
    PageRoute("GET", "/first-admin", Permission.ANYONE, show_first_admin),
    PageRoute("POST", "/first-admin", Permission.ANYONE, make_first_admin, 4096),
    PageRoute("POST", "/theme", Permission.ANYONE, set_theme, 8192),
)
