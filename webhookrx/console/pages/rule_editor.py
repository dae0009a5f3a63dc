"""
The page Rule.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute


async def show_rule_editor(call: PageCall) -> PageAnswer:
    """Show it."""
    return Page("rule_editor.html")


ROUTES: Final = (PageRoute("GET", "/rules/{name}", Permission.VIEW, show_rule_editor),)
