"""
The route by which Prometheus finds the routers of a console.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.routers.routes import RouterQuery, matching_routers
from webhookrx.management.scrape_targets import ScrapeTarget, scrape_target


async def scrape_targets(call: ApiCall) -> list[ScrapeTarget]:
    """Return the approved routers that Prometheus can reach, by name; those that are away, too: it is to say so."""
    routers = [each async for each in matching_routers(call) if each.state == "approved"]
    routers.sort(key=lambda each: each.name)
    found = (scrape_target(each.guid, each.name, each.facts, each.all_labels) for each in routers)
    return [each for each in found if each is not None]


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/prometheus/sd",
        Permission.VIEW,
        scrape_targets,
        "The admin endpoints of routers as targets, for http_sd of Prometheus.",
        answer=list[ScrapeTarget],
        query=RouterQuery,
    ),
)
