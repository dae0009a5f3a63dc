"""
What the settings only show: certificates, backup, single sign-on, and what runs.
"""

from __future__ import annotations

import shlex
from typing import Final

from webhookrx.console.about_routes import ShownAuthority, ShownConsole, ShownDatabase
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.oidc.oidc_routes import ShownOidc, ShownProvider
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute
from webhookrx.console.pages.settings_tabs import settings_page

_SIGN_ON: Final = "/settings/single-sign-on"
_SHORT: Final = 60 * 86_400


async def show_certificates(call: PageCall) -> PageAnswer:
    """Show CA certificates and signing keys."""
    authority: ShownAuthority = (await call.api("GET", "/about/authority")).body
    now = call.console.clock()
    return settings_page(call, "settings_certificates.html", {"authority": authority, "soon": now + _SHORT, "now": now})


async def show_backup(call: PageCall) -> PageAnswer:
    """Show how to copy the console's files."""
    database: ShownDatabase = (await call.api("GET", "/about/database")).body
    db = shlex.quote(database.path)
    commands = {
        "alone": f"webhookrx console backup --db {db} console-$(date +%F).sqlite",
        "with_keys": f"webhookrx console backup --db {db} --with-keys console-$(date +%F).keys --passphrase-file FILE "
        "console-$(date +%F).sqlite",
        "restore": f"webhookrx console restore --db {db} --keys KEYS --passphrase-file FILE COPY",
    }
    return settings_page(call, "settings_backup.html", {"database": database, "commands": commands})


async def show_sign_on(call: PageCall) -> PageAnswer:
    """Show how single sign-on is set up."""
    try:
        shown: ShownOidc | None = (await call.api("GET", "/single-sign-on")).body
    except ApiProblem as problem:
        if problem.kind is not NOT_FOUND:
            raise
        shown = None
    callback = f"{call.console.settings.url}/sign-in/oidc/callback"
    return settings_page(call, "settings_sign_on.html", {"shown": shown, "callback": callback})


async def show_provider(call: PageCall) -> PageAnswer:
    """Show whether the provider answers."""
    provider: ShownProvider = (await call.api("GET", "/single-sign-on/provider")).body
    if call.is_fragment:
        return Page("_settings_provider.html", {"provider": provider})
    return settings_page(call, "settings_provider.html", {"provider": provider}, current=_SIGN_ON)


async def show_about(call: PageCall) -> PageAnswer:
    """Show what runs."""
    console: ShownConsole = (await call.api("GET", "/about")).body
    database: ShownDatabase | None = None
    if call.may(Permission.ADMINISTER):
        database = (await call.api("GET", "/about/database")).body
    return settings_page(call, "settings_about.html", {"console": console, "database": database})


ROUTES: Final = (
    PageRoute("GET", "/settings/certificates", Permission.VIEW, show_certificates),
    PageRoute("GET", "/settings/backup", Permission.ADMINISTER, show_backup),
    PageRoute("GET", _SIGN_ON, Permission.ADMINISTER, show_sign_on),
    PageRoute("GET", f"{_SIGN_ON}/provider", Permission.ADMINISTER, show_provider),
    PageRoute("GET", "/settings/about", Permission.VIEW, show_about),
)
