"""
The page Routers.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_routers(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("routers.html")


ROUTES: Final = (PageRoute("GET", "/routers", Permission.VIEW, show_routers),)
