"""
The page Tap.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_tap(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("tap.html")


ROUTES: Final = (PageRoute("GET", "/tap", Permission.TAP, show_tap),)
