"""
The page Rules: all rules, or those that a query matches, and what each reaches.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute

MOST_ROWS: Final = 25
"""The table comes twice, the second time with what rules reach: page, both and files have 60 KiB at most."""


def may_edit_rules(call: PageCall) -> bool:
    """Return whether who is signed in may change rules at this console."""
    return call.may(Permission.EDIT) and not call.console.settings.read_only_rules


async def show_rules(call: PageCall) -> PageAnswer:
    """Show the list; with C{reach} the numbers, too, which take longer."""
    asked = {"query": call.query.text("query"), "after": call.query.text("after"), "count": MOST_ROWS}
    values: dict[str, Any] = {
        "query": asked["query"],
        "after": asked["after"],
        "page": None,
        "reach": None,
        "error": "",
        "may_edit": may_edit_rules(call),
        "read_only": call.console.settings.read_only_rules,
    }
    try:
        values["page"] = (await call.api("GET", "/rules:search", query=asked)).body
    except ApiProblem as problem:
        if problem.kind is not INVALID:
            raise
        return Page("rules.html", {**values, "error": problem.detail}, problem.kind.status)
    if call.query.flag("reach"):
        values["reach"] = (await call.api("GET", "/rules:reach", query=asked)).body
    return Page("_rules_table.html" if call.is_fragment else "rules.html", values)


ROUTES: Final = (PageRoute("GET", "/rules", Permission.VIEW, show_rules),)
