"""
The page Settings.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_settings(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("settings.html")


ROUTES: Final = (PageRoute("GET", "/settings", Permission.SIGNED_IN, show_settings),)
