"""
The page Analytics.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_analytics(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("analytics.html")


ROUTES: Final = (PageRoute("GET", "/analytics", Permission.VIEW, show_analytics),)
