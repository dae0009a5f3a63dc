"""
The page Settings: what can be set, and where.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import PageAnswer, PageCall, PageRoute
from webhookrx.console.pages.settings_tabs import settings_page


async def show_settings(call: PageCall) -> PageAnswer:
    """Show all tabs that somebody may see."""
    return settings_page(call, "settings.html", {})


ROUTES: Final = (PageRoute("GET", "/settings", Permission.SIGNED_IN, show_settings),)
