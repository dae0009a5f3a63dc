"""
All routes of the console's API, joined from those of each of its parts.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from webhookrx.console import about_routes, query_routes
from webhookrx.console.activity_routes import ROUTES as ACTIVITY
from webhookrx.console.alarms import alarm_routes, target_routes
from webhookrx.console.api.openapi import describe
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.counts import analytics_routes
from webhookrx.console.oidc import oidc_routes
from webhookrx.console.own_settings import setting_routes
from webhookrx.console.people.routes import ROUTES as PEOPLE
from webhookrx.console.routers import completion_routes, discovery_routes, preview_routes, reach_routes, trial_routes
from webhookrx.console.routers import routes as router_routes
from webhookrx.console.rules import list_routes, revision_routes
from webhookrx.console.rules import routes as rule_routes
from webhookrx.console.taps import tap_routes


async def openapi(call: ApiCall) -> Any:
    """Return the description of all routes."""
    return _description()


@cache
def _description() -> dict[str, Any]:
    return describe(CONSOLE_ROUTES)


#: Add the ROUTES of your part here.
CONSOLE_ROUTES: Final[tuple[ApiRoute, ...]] = (
    ApiRoute(
        "GET", "/openapi.json", Permission.SIGNED_IN, openapi, "Describe this API by OpenAPI.", answer=dict[str, Any]
    ),
    *analytics_routes.ROUTES,
    *router_routes.ROUTES,
    *discovery_routes.ROUTES,
    *rule_routes.ROUTES,
    *revision_routes.ROUTES,
    *list_routes.ROUTES,
    *reach_routes.ROUTES,
    *preview_routes.ROUTES,
    *trial_routes.ROUTES,
    *query_routes.ROUTES,
    *completion_routes.ROUTES,
    *tap_routes.ROUTES,
    *alarm_routes.ROUTES,
    *target_routes.ROUTES,
    *setting_routes.ROUTES,
    *about_routes.ROUTES,
    *oidc_routes.ROUTES,
    *PEOPLE,
    *ACTIVITY,
)
