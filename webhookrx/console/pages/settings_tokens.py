"""
The settings of API tokens, for admins: those of all people.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.rendering import query_string
from webhookrx.console.pages.settings_tabs import ROWS, settings_page
from webhookrx.console.people.accounts import TokenView

_PATH: Final = "/settings/tokens"


async def show_tokens(call: PageCall) -> PageAnswer:
    """List the tokens of all people."""
    tokens: list[TokenView] = (await call.api("GET", "/tokens")).body
    find, start = call.query.text("find")[:63].lower(), call.query.number("from")
    found = [each for each in tokens if find in each.name or find in each.person]
    values = {
        "tokens": found[start : start + ROWS],
        "count": len(found),
        "all": len(tokens),
        "find": find,
        "start": start,
        "newer": _at(find, max(0, start - ROWS)) if start else "",
        "older": _at(find, start + ROWS) if len(found) > start + ROWS else "",
        "now": call.console.clock(),
    }
    return settings_page(call, "settings_tokens.html", values)


async def remove_token(call: PageCall) -> PageAnswer:
    """Remove a token."""
    await call.api("DELETE", f"/tokens/{in_path(call.path['id'])}")
    return Redirect(_PATH, "token-removed")


def _at(find: str, start: int) -> str:
    return f"{_PATH}{query_string(find=find, **{'from': start or ''})}"


ROUTES: Final = (
    PageRoute("GET", _PATH, Permission.ADMINISTER, show_tokens),
    PageRoute("POST", f"{_PATH}/{{id}}:remove", Permission.ADMINISTER, remove_token, 4096),
)
