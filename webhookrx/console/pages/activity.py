"""
The page Activity.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_activity(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("activity.html")


ROUTES: Final = (PageRoute("GET", "/activity", Permission.VIEW, show_activity),)
