"""
The page Alarms: what is not well now, and all alarms; and the part of it that stands beside a rule.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from webhookrx.console.alarms.alarm_routes import AlarmsPage, ShownAlarm
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.pages import alarm_editor, alarm_targets
from webhookrx.console.pages.alarm_words import KIND, KINDS, STATE_BADGES
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute
from webhookrx.console.pages.rendering import query_string
from webhookrx.console.turns import in_turns
from webhookrx.management.rule_changes import ListedRule
from webhookrx.query import Query, QueryError, parse
from webhookrx.query.query import compile_tree
from webhookrx.query.query_lexer import written
from webhookrx.query.query_tree import And, Everything, Exists, Node, Not, Or, Term
from webhookrx.work import TooMuchWork, Work

STATES_A_PAGE: Final = 30
ALARMS_A_PAGE: Final = 40

#: Units of work for one alarm: its query is decided in the reactor.
_MOST_WORK: Final = 100_000
_LONGEST_NAME: Final = 253

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")


async def show_alarms(call: PageCall) -> PageAnswer:
    """Show what is not ok, and all alarms."""
    values = await _states(call)
    page: AlarmsPage = values["page"]
    first = call.query.number("first")
    tells = any(each.notify for each in page.alarms)
    alarms = page.alarms[first : first + ALARMS_A_PAGE]
    more = max(0, len(page.alarms) - first - ALARMS_A_PAGE)
    listed = {"alarms": alarms, "first": first, "more": more, "alarms_a_page": ALARMS_A_PAGE, "tells": tells}
    return Page("alarms.html", {**values, **listed, "kinds": KINDS})


async def show_states(call: PageCall) -> PageAnswer:
    """Show the part with what is not ok."""
    return Page("_alarm_states.html", await _states(call))


async def _states(call: PageCall) -> dict[str, Any]:
    query, state = call.query, call.query.text("state")
    if state not in STATE_BADGES:
        state = ""
    alarm, skip = query.text("alarm")[:63], query.number("skip")
    asked = {"alarm": alarm, "state": state, "skip": skip, "count": STATES_A_PAGE}
    page: AlarmsPage = (await call.api("GET", "/alarms", query=asked)).body
    wanted = [each for each in page.alarms if alarm in ("", each.name)]
    counts = {name: sum(getattr(each, name) for each in wanted) for name in STATE_BADGES}

    def url(path: str = "/alarms", **changes: object) -> str:
        return path + query_string(**{"alarm": alarm, "state": state, "skip": skip, **changes})

    return {
        "page": page,
        "counts": counts,
        "left_out": sum(each.left_out for each in wanted),
        "state": state,
        "alarm": alarm,
        "skip": skip,
        "step": STATES_A_PAGE,
        "badges": STATE_BADGES,
        "url_of": url,
    }


# -- beside a rule -----------------------------------------------------------------------------------------------


async def show_alarms_of_rule(call: PageCall) -> PageAnswer:
    """Show the alarms that are about the connectors of a rule; as a part of a page, if a script asks."""
    rule = call.query.text("rule")[:_LONGEST_NAME]
    page: AlarmsPage = (await call.api("GET", "/alarms", query={"count": 1})).body
    own: list[ShownAlarm] = []
    also = 0
    async for each in in_turns(call.console.reactor, page.alarms):
        if "label" in KIND[each.kind].fields or "rule" not in KIND[each.kind].fields:
            continue
        names_it, holds = is_about_rule(each.when, rule)
        if holds is not False:
            own += [each] if names_it else []
            also += not names_it
    new = [(f"Silent for {lasts}", new_alarm_url("silent", rule, **{"for": lasts})) for lasts in ("1h", "6h", "1d")]
    new.append(("Refusals above 5%", new_alarm_url("refused", rule, above="5%")))
    if await _has_certificate(call, rule):
        new.append(("Certificate ends within 14d", new_alarm_url("certificate", rule, **{"for": "14d"})))
    values = {
        "rule": rule,
        "own": own,
        "also": also,
        "kinds": KIND,
        "badges": STATE_BADGES,
        "new": new,
    }
    return Page("_alarms_of_rule.html" if call.is_fragment else "alarms_of_rule.html", values)


async def _has_certificate(call: PageCall, rule: str) -> bool:
    """Tell whether the connectors of a rule have certificates: not with plain HTTP, nor when there is no such rule."""
    try:
        listed: ListedRule = (await call.api("GET", f"/rules/{in_path(rule)}")).body
    except ApiProblem as problem:
        if problem.kind is not NOT_FOUND:
            raise
        return False
    return bool(listed.document["protocol"] == "HTTPS")


def new_alarm_url(kind: str, rule: str, **fields: str) -> str:
    """Return where a new alarm about a rule is written, with what it is filled with."""
    name = _NO_NAME.sub("-", f"{kind}-{rule}").strip("-.")[:63]
    return "/alarms:new" + query_string(kind=kind, name=name, when=f"rule = {written(rule)}", **fields)


def is_about_rule(when: str, rule: str) -> tuple[bool, bool | None]:
    """
    Return whether the query of an alarm names rules, and whether it holds for connectors of a rule; None for that when
    it depends on more than the rule.
    """
    try:
        query = _parsed(when)
        return any(each.field == "rule" for each in query.fields), _holds(query.tree, rule, Work(_MOST_WORK))
    except (QueryError, TooMuchWork):
        return False, None


@lru_cache(maxsize=256)
def _parsed(when: str) -> Query:
    return parse(when)


def _holds(node: Node, rule: str, work: Work) -> bool | None:
    match node:
        case Everything():
            return True
        case Term() | Exists():
            return compile_tree(node)({"rule": rule}, work) if node.path == ("rule",) else None
        case Not():
            inner = _holds(node.operand, rule, work)
            return None if inner is None else not inner
        case And() | Or():
            found = [_holds(each, rule, work) for each in node.operands]
            decides = isinstance(node, Or)
            return decides if decides in found else None if None in found else not decides


ROUTES: Final = (
    PageRoute("GET", "/alarms", Permission.VIEW, show_alarms),
    PageRoute("GET", "/alarms:states", Permission.VIEW, show_states),
    PageRoute("GET", "/alarms:of-rule", Permission.VIEW, show_alarms_of_rule),
    *alarm_editor.ROUTES,
    *alarm_targets.ROUTES,
)
