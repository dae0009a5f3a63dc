"""
The page Overview: what is wrong, how the routers do, what comes, and what was changed last.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.console.activity_routes import ActivityPage
from webhookrx.console.alarms.alarm_routes import AlarmsPage
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.counts.analytics_routes import AnalyticsAnswer, TopAnswer
from webhookrx.console.pages.charts import ChartLine, shares, time_chart
from webhookrx.console.pages.first_steps import first_steps, steps_of
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.router_words import BADGES, MEANINGS, RouterCommands
from webhookrx.console.routers.routes import MadeEnrolment
from webhookrx.console.routers.shown import ShownRouters

MOST_ALARMS: Final = 5
MOST_CHANGES: Final = 10
_SPAN: Final = 3600
_MINUTE: Final = 60
_TABLE_STEP: Final = 300

#: Routers report every 15 s, and the console writes counts once a minute: a minute is whole by then.
_LATE: Final = 90


#: What the forms of the first steps show before they were sent.
_NOTHING_MADE: Final[dict[str, Any]] = {"commands": None, "problem": None, "rule_name": "try", "rule_port": "8080"}


async def show_overview(call: PageCall) -> PageAnswer:
    """Show the page, with the first steps while there is no message yet."""
    return Page("overview.html", await _overview(call))


async def show_steps(call: PageCall) -> PageAnswer:
    """Show how far the first steps have come."""
    steps = await steps_of(call, await _routers(call))
    return _part(call, "_first_steps.html", {**_NOTHING_MADE, "steps": steps, "by_script": call.is_fragment})


async def make_token(call: PageCall) -> PageAnswer:
    """Make an enrolment for one router, and show its token with the commands that use it."""
    approve = "auto" if call.form.flag("auto") else "manual"
    answer = await call.api("POST", "/enrolments", {"approve": approve})
    made: MadeEnrolment = answer.body
    values = await _overview(call)
    return Page("overview.html", {**values, "commands": RouterCommands(made)})


async def make_rule(call: PageCall) -> PageAnswer:
    """Make a rule that gives each router a connector to try."""
    form = call.form
    name, port = form.text("name"), form.text("port")
    try:
        rule = {"name": name, "protocol": "HTTP", "port": form.number("port")}
        await call.api("POST", "/rules", rule)
    except ApiProblem as problem:
        values = {"problem": problem, "rule_name": name, "rule_port": port}
        return Page("overview.html", {**await _overview(call), **values}, problem.kind.status)
    return Redirect("/", "first-rule")


async def _overview(call: PageCall) -> dict[str, Any]:
    """Return what the page shows at once."""
    routers = await _routers(call)
    steps = await first_steps(call, routers)
    return {**_NOTHING_MADE, **await _now(call, routers), "steps": steps, "by_script": False}


async def show_now(call: PageCall) -> PageAnswer:
    """Show alarms and routers as they are now."""
    return _part(call, "_overview_now.html", await _now(call, await _routers(call)))


async def show_traffic(call: PageCall) -> PageAnswer:
    """Show messages a second, and refusals, of the last hour."""
    now = int(call.console.clock())
    end = (now - _LATE) // _MINUTE * _MINUTE
    start = end - _SPAN
    asked: dict[str, object] = {"from": start, "to": end}
    answer = await call.api("GET", "/analytics", query={**asked, "step": "1m"})
    found = msgspec.json.decode(answer.body, type=AnalyticsAnswer)
    answer = await call.api("GET", "/analytics/top", query={**asked, "by": "reason", "measure": "refused"})
    refused = msgspec.json.decode(answer.body, type=TopAnswer).values
    amounts = {point.at: point.amount or 0 for value in found.values for point in value.points}
    rates: dict[int, float | None] = {at: amount / _MINUTE for at, amount in amounts.items()}
    rows = [
        (at, sum(amounts.get(at + minute, 0) for minute in range(0, _TABLE_STEP, _MINUTE)) / _TABLE_STEP)
        for at in range(end - _TABLE_STEP, start - 1, -_TABLE_STEP)
    ]
    chart = time_chart(
        "messages",
        "Messages a second",
        [ChartLine("", rates)],
        start=start,
        end=end,
        step=_MINUTE,
        now=end,
        unit="rate",
    )
    values = {
        "chart": chart,
        "total": sum(amounts.values()),
        "rows": rows,
        "refused": list(zip(refused[:MOST_CHANGES], shares(each.total for each in refused), strict=False)),
        "more": len(refused[MOST_CHANGES:]),
    }
    return _part(call, "_overview_traffic.html", values)


async def show_changes(call: PageCall) -> PageAnswer:
    """Show the last changes."""
    answer = await call.api("GET", "/activity", query={"count": MOST_CHANGES})
    page: ActivityPage = answer.body
    return _part(call, "_overview_changes.html", {"entries": page.entries})


def _part(call: PageCall, template: str, values: dict[str, Any]) -> Page:
    """Return a part for a script, and a page with it for those without."""
    return Page(template if call.is_fragment else "overview_part.html", {**values, "part": template})


async def _routers(call: PageCall) -> ShownRouters:
    answer = await call.api("GET", "/routers", query={"count": 1})
    listed: ShownRouters = answer.body
    return listed


async def _now(call: PageCall, routers: ShownRouters) -> dict[str, Any]:
    answer = await call.api("GET", "/alarms", query={"state": "firing", "count": MOST_ALARMS})
    alarms: AlarmsPage = answer.body
    return {
        "routers": routers,
        "alarms": alarms,
        "firing": sum(each.firing for each in alarms.alarms),
        "pending": sum(each.pending for each in alarms.alarms),
        "unknown": sum(each.unknown + each.left_out for each in alarms.alarms),
        "badges": BADGES,
        "meanings": MEANINGS,
    }


ROUTES: Final = (
    PageRoute("GET", "/", Permission.VIEW, show_overview),
    PageRoute("GET", "/overview/steps", Permission.VIEW, show_steps),
    PageRoute("POST", "/overview/token", Permission.ADMINISTER, make_token, 4096),
    PageRoute("POST", "/overview/rule", Permission.EDIT, make_rule, 4096),
    PageRoute("GET", "/overview/now", Permission.VIEW, show_now),
    PageRoute("GET", "/overview/traffic", Permission.VIEW, show_traffic),
    PageRoute("GET", "/overview/changes", Permission.VIEW, show_changes),
)
