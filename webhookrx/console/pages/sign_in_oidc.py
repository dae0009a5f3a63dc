"""
The pages of single sign-on: one sends a browser to the provider, the other takes it back.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.oidc.flows import FLOW_COOKIE, flow_cookie
from webhookrx.console.oidc.oidc_routes import SignedIn, SignInPlace
from webhookrx.console.oidc.single_sign_on import CALLBACK
from webhookrx.console.pages.page import PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.sign_in import local_path, sign_in_page


async def begin_sign_in(call: PageCall) -> PageAnswer:
    """Send the browser to the provider."""
    next_path = local_path(call.query.text("next"))
    try:
        answer = await call.api("POST", "/single-sign-on", {"next": next_path if len(next_path) < 2000 else ""})
    except ApiProblem as problem:
        return sign_in_page(call, next_path, problem=problem)
    place: SignInPlace = answer.body
    return Redirect(place.url, headers=answer.headers)


async def end_sign_in(call: PageCall) -> PageAnswer:
    """Take a browser that the provider has sent back."""
    query, cookies = call.query, call.cookies(FLOW_COOKIE)
    body = {name: query.text(name) for name in ("state", "code", "error", "iss")}
    try:
        answer = await call.api(
            "POST", "/single-sign-on/session", {**body, "flow": cookies[0] if len(cookies) == 1 else ""}
        )
    except ApiProblem as problem:
        return sign_in_page(call, "", problem=problem, headers=(("Set-Cookie", flow_cookie("")),))
    made: SignedIn = answer.body
    return Redirect(local_path(made.next), headers=answer.headers)


ROUTES: Final = (
    PageRoute("GET", "/sign-in/oidc", Permission.ANYONE, begin_sign_in),
    PageRoute("GET", CALLBACK, Permission.ANYONE, end_sign_in),
)
