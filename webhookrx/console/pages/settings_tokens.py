"""
The settings of API tokens, for admins: those of all people.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.settings_tabs import rows_found, settings_page
from webhookrx.console.people.accounts import TokenView

_PATH: Final = "/settings/tokens"


async def show_tokens(call: PageCall) -> PageAnswer:
    """List the tokens of all people."""
    tokens: list[TokenView] = (await call.api("GET", "/tokens")).body
    shown, more_rows = rows_found(call, _PATH, tokens, lambda each: (each.name, each.person))
    return settings_page(call, "settings_tokens.html", {"tokens": shown, **more_rows, "now": call.console.clock()})


async def remove_token(call: PageCall) -> PageAnswer:
    """Remove a token."""
    await call.api("DELETE", f"/tokens/{in_path(call.path['id'])}")
    return Redirect(_PATH, "token-removed")


ROUTES: Final = (
    PageRoute("GET", _PATH, Permission.ADMINISTER, show_tokens),
    PageRoute("POST", f"{_PATH}/{{id}}:remove", Permission.ADMINISTER, remove_token, 4096),
)
