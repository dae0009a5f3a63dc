"""
The page Overview.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_overview(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("overview.html")


ROUTES: Final = (PageRoute("GET", "/", Permission.VIEW, show_overview),)
