"""
The route that tells whether a text is a query, by what takes such queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiFinding, findings_of
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.counts.analytics_routes import LONGEST_QUESTION, took_too_long
from webhookrx.console.counts.connector_queries import connector_query, try_on_connectors
from webhookrx.console.counts.count_reading import TimeLimit, TookTooLong
from webhookrx.console.routers.routes import decided_routers
from webhookrx.diagnostics import ERROR, Diagnostic, diagnose
from webhookrx.errors import ConfigError
from webhookrx.query import Query, QueryError, QueryTooCostly, format_tree, line_and_column, parse, plain_tree
from webhookrx.regex import RegexTooCostly
from webhookrx.router.rules.selectors import SelectorFields, Selectors
from webhookrx.router.steps.step_compiler import query_problems

_LONGEST_QUERY: Final = 8192

QuerySubject: TypeAlias = Literal["routers", "messages", "connectors"]


class QueryText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A text that may be a query.

    @ivar about: C{routers}, as for a selector; C{messages}, as for a condition; C{connectors}, as for analytics.
    """

    text: Annotated[str, Meta(max_length=_LONGEST_QUERY)]
    about: QuerySubject = "routers"


class QueryVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    Whether a text is a query: what C{webhookrx query check --json} says, and what it means for its subject.

    @ivar problem: what is wrong, at a line and column of the text; 0 where it is at no place.
    @ivar findings: what it is taken with, but is probably not meant.
    """

    valid: bool
    text: str
    normalized: str = ""
    fields: tuple[dict[str, Any], ...] = ()
    tree: Any = None
    line: int = 0
    column: int = 0
    problem: str = ""
    findings: tuple[ApiFinding, ...] = ()


async def check_query(call: ApiCall) -> QueryVerdict:
    """Judge a text by what takes queries on its subject."""
    text, about = call.body.text, call.body.about
    found = list(_JUDGES[about](text))
    error = next((each for each in found if each.severity == ERROR), None)
    if error is not None:
        return QueryVerdict(False, text, line=error.line, column=error.column, problem=error.sentence)
    query = parse(text)
    problem = await _cost_problem(call, query, about)
    if problem:
        return QueryVerdict(False, text, problem=problem)
    fields = tuple({"field": use.field, "column": use.column} for use in query.fields)
    return QueryVerdict(
        True, text, format_tree(query.tree), fields, plain_tree(query.tree), findings=findings_of(found)
    )


async def _cost_problem(call: ApiCall, query: Query, about: QuerySubject) -> str:
    """Return why a query takes too much work with what is there now; empty if it does not."""
    console = call.console
    try:
        if about == "routers" and console.fleet is not None:
            async for _ in decided_routers(console.reactor, query, tuple(console.fleet.registry)):
                pass
        if about == "connectors" and query.text:
            limit = TimeLimit(LONGEST_QUESTION)
            await console.store.read(lambda db: try_on_connectors(db, query, limit))
    except (QueryTooCostly, RegexTooCostly) as error:
        return str(error)
    except ConfigError as error:
        return error.problem
    except TookTooLong:
        raise took_too_long() from None
    return ""


def _of_routers(text: str) -> Iterable[Diagnostic]:
    return Selectors([text]).mistakes(text, (), SelectorFields(()))


def _of_connectors(text: str) -> Iterable[Diagnostic]:
    try:
        connector_query(text)
    except QueryError as error:
        yield diagnose("bad-query", (), error.problem, *line_and_column(text, error.column))


_JUDGES: Final[Mapping[QuerySubject, Callable[[str], Iterable[Diagnostic]]]] = {
    "routers": _of_routers,
    "messages": query_problems,
    "connectors": _of_connectors,
}


ROUTES: Final = (
    ApiRoute(
        "POST",
        "/queries:check",
        Permission.VIEW,
        check_query,
        "Whether a text is a query on routers, messages or connectors, and which fields it asks for.",
        request=QueryText,
        answer=QueryVerdict,
        safe=True,
    ),
)
