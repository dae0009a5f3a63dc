"""
The route of a list of rules: those that a query matches, in pages, with who has changed each and when.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.api.queries import no_query
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.rules.saved import SavedRule, SavedRules
from webhookrx.console.store.history import HistoryEntry, read_history
from webhookrx.query import parse

_MOST_ROWS: Final = 500


class RuleQuery(msgspec.Struct, frozen=True):
    """
    Which rules.

    @ivar query: on the fields of rules, C{label.NAME}, C{manager} and C{changed_by}; empty for all.
    @ivar after: only rules whose names come later are wanted: C{next_after} of the page before.
    """

    query: Annotated[str, Meta(max_length=8192)] = ""
    after: Annotated[str, Meta(max_length=253)] = ""
    count: Annotated[int, Meta(ge=1, le=_MOST_ROWS)] = 50


class RuleRow(msgspec.Struct, frozen=True):
    """
    A rule in a list.

    @ivar steps: how many it has, with Classify and Parse.
    @ivar changed_at: seconds since the epoch.
    """

    name: str
    generation: int
    manager: str
    protocol: str
    port: int
    selector: str
    labels: dict[str, str]
    description: str
    sender: str
    steps: int
    changed_at: float
    changed_by: str


class RulePage(msgspec.Struct, frozen=True):
    """
    Rules, by name.

    @ivar revision: the newest that has changed a rule.
    @ivar total: how many there are.
    @ivar matched: how many of them the query matches.
    @ivar next_after: for the next page; null when there are no more.
    """

    revision: int
    total: int
    matched: int
    rows: list[RuleRow]
    next_after: str | None


class _LastChange(msgspec.Struct, frozen=True):
    at: float
    by: str


async def find_rules(call: ApiCall) -> RulePage:
    """
    Return the rules that the query of a call matches.

    @raise ApiProblem: it is no query, or takes too much work.
    """
    asked: RuleQuery = call.query
    saved = call.console.rulebook.saved
    with no_query():
        page: RulePage = await call.console.store.read(lambda db: _page(saved, asked, _changes(db)))
    return page


def _changes(db: sqlite3.Connection) -> dict[str, _LastChange]:
    rows = db.execute("SELECT name, changed_at, changed_by FROM rule WHERE NOT deleted")
    return {name: _LastChange(at, by) for name, at, by in rows}


def _page(saved: SavedRules, asked: RuleQuery, changes: dict[str, _LastChange]) -> RulePage:
    query = parse(asked.query)
    nothing = _LastChange(0.0, "")
    found = [
        rule
        for name, rule in sorted(saved.rules.items())
        if not asked.query or query.matches(_record(rule, changes.get(name, nothing)))
    ]
    later = [rule for rule in found if rule.name > asked.after]
    shown = later[: asked.count]
    return RulePage(
        saved.revision,
        len(saved.rules),
        len(found),
        [_row(rule, changes.get(rule.name, nothing)) for rule in shown],
        shown[-1].name if len(later) > len(shown) else None,
    )


def _record(rule: SavedRule, change: _LastChange) -> dict[str, Any]:
    """Return the fields of a rule as queries ask for them."""
    document = rule.document
    own: dict[str, Any] = {"manager": rule.manager, "generation": rule.generation, "changed_by": change.by}
    labels = document.get("labels")
    return {**document, **({"label": labels} if labels else {}), **own}


def _row(saved: SavedRule, change: _LastChange) -> RuleRow:
    rule = saved.rule
    steps: Sequence[object] = rule.preprocessing.steps
    return RuleRow(
        name=saved.name,
        generation=saved.generation,
        manager=saved.manager,
        protocol=rule.protocol,
        port=rule.port,
        selector=rule.selector,
        labels=dict(rule.labels),
        description=rule.description,
        sender=rule.sender,
        steps=len(steps) + rule.preprocessing.classify + rule.preprocessing.parse,
        changed_at=change.at,
        changed_by=change.by,
    )


async def _show_generation(call: ApiCall) -> HistoryEntry:
    name, generation = call.path["name"], call.path["generation"]
    if not re.fullmatch("[0-9]{1,15}", generation):
        raise ApiProblem(NOT_FOUND, "The rule had no such generation.")

    def read(db: sqlite3.Connection) -> list[HistoryEntry]:
        row = db.execute(
            "SELECT id FROM change WHERE kind = 'rule' AND name = ? AND generation = ?", (name, int(generation))
        ).fetchone()
        return [] if row is None else read_history(db, before=row[0] + 1, count=1, kind="rule", name=name)

    entries: list[HistoryEntry] = await call.console.store.read(read)
    if not entries:
        raise ApiProblem(NOT_FOUND, "The rule had no such generation.")
    return entries[0]


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/rules:search",
        Permission.VIEW,
        find_rules,
        "The rules that a query matches, with who has changed each and when.",
        answer=RulePage,
        query=RuleQuery,
    ),
    ApiRoute(
        "GET",
        "/rules/{name}/history/{generation}",
        Permission.VIEW,
        _show_generation,
        "The change that has made a generation of a rule.",
        answer=HistoryEntry,
    ),
)
