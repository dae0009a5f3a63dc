"""
The page Alarms.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_alarms(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("alarms.html")


ROUTES: Final = (PageRoute("GET", "/alarms", Permission.VIEW, show_alarms),)
