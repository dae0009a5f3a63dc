"""
The page Rules.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_rules(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("rules.html")


ROUTES: Final = (PageRoute("GET", "/rules", Permission.VIEW, show_rules),)
