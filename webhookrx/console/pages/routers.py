"""
The page Routers: all of them, those that wait for consent first.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute
from webhookrx.console.pages.router_words import BADGES, MEANINGS
from webhookrx.console.routers.shown import STANDINGS, ShownRouter, ShownRouters

MOST_ROWS: Final = 50
MOST_WAITING: Final = 10
"""Routers that wait and are shown above the others."""


async def show_routers(call: PageCall) -> PageAnswer:
    """Show the routers that a query matches, a page of them; or their table alone, for a script."""
    query, standing, offset = call.query.text("query"), call.query.text("state"), call.query.number("offset")
    standing = standing if standing in STANDINGS else ""
    fields: dict[str, object] = {"query": query}
    error, waiting = "", tuple[ShownRouter, ...]()
    try:
        listed = await _listed(call, fields | {"standing": standing, "offset": offset, "count": MOST_ROWS})
        if listed.standings.get("pending") and not offset and standing in ("", "pending"):
            waiting = (await _listed(call, fields | {"standing": "pending", "count": MOST_WAITING})).routers
    except ApiProblem as problem:
        if problem.kind is not INVALID:
            raise
        error, listed = problem.detail, ShownRouters(())
    wanted = listed.standings.get(standing, 0) if standing else listed.matched
    values: dict[str, Any] = {
        "query": query,
        "error": error,
        "standing": standing,
        "listed": listed,
        "waiting": waiting,
        "offset": offset,
        "wanted": wanted,
        "most": MOST_ROWS,
        "badges": BADGES,
        "meanings": MEANINGS,
    }
    return Page("_routers_table.html" if call.is_fragment else "routers.html", values, INVALID.status if error else 200)


async def _listed(call: PageCall, fields: dict[str, object]) -> ShownRouters:
    answer = await call.api("GET", "/routers", query=fields)
    listed: ShownRouters = answer.body
    return listed


ROUTES: Final = (PageRoute("GET", "/routers", Permission.VIEW, show_routers),)
