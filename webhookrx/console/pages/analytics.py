"""
The page Analytics: a form whose question is in the URL, and numbers that come after it, part by part.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.analytics_parts import PARTS, AnalyticsPart, part_of
from webhookrx.console.pages.analytics_question import CUSTOM, LABELS, MEASURES, SPANS, STEPS, AnalyticsQuestion
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute
from webhookrx.console.query_routes import QueryVerdict

NUMBERS: Final = "numbers"
"""Which part is wanted at once, such as C{counts}; C{all} for every one, which needs no script."""

ALL: Final = "all"


async def show_analytics(call: PageCall) -> PageAnswer:
    """Show the form and where the numbers come; those at once that the query names."""
    question = AnalyticsQuestion.of(call.query)
    wanted = call.query.text(NUMBERS)
    if call.is_fragment and wanted in PARTS:
        part = await part_of(wanted, call, question)
        return Page("_analytics_part.html", {"part": part}, part.problem.kind.status if part.problem else 200)
    errors = question.errors
    verdict: Any = (await call.api("POST", "/queries:check", {"text": question.query, "about": "connectors"})).body
    if not verdict.valid:
        errors["query"] = [_no_query(verdict)]
    parts: dict[str, AnalyticsPart | None] = {}
    for name in PARTS if not errors else ():
        parts[name] = await part_of(name, call, question) if wanted in (name, ALL) else None
    # What is wrong with the question is said once, at the form.
    problem = next((part.problem for part in parts.values() if part is not None and part.problem is not None), None)
    values = {
        "question": question,
        "errors": errors,
        "problem": problem,
        "parts": parts,
        "headings": {name: heading for name, (heading, _) in PARTS.items()},
        "measures": MEASURES,
        "labels": LABELS,
        "spans": (*SPANS, (CUSTOM, "from … to")),
        "steps": STEPS,
    }
    return Page("analytics.html", values, problem.kind.status if problem else 422 if errors else 200)


def _no_query(verdict: QueryVerdict) -> str:
    place = f"Line {verdict.line}, column {verdict.column}: " if verdict.line else ""
    return place + verdict.problem


ROUTES: Final = (PageRoute("GET", "/analytics", Permission.VIEW, show_analytics),)
