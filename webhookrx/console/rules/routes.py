"""
The routes of rules: one at a time, all of them as a file, and their history.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from webhookrx.console.api.etags import etag_number
from webhookrx.console.api.history import (
    HistoryPage,
    HistoryQuery,
    RollbackRequest,
    author_of,
    history_page,
    rollback_author,
)
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import FORBIDDEN, NOT_FOUND, ApiProblem
from webhookrx.console.api.route import YAML, Answer, ApiCall, ApiRoute
from webhookrx.console.rules.revision_routes import revision_number
from webhookrx.console.rules.rulebook import PushRequest
from webhookrx.console.rules.saved import SavedRule
from webhookrx.management.rule_changes import ListedRule, PushOutcome, RuleList
from webhookrx.management.rule_documents import rules_yaml
from webhookrx.typed_yaml import LARGEST

_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class PushQuery(msgspec.Struct, frozen=True):
    """See L{PushRequest}."""

    manager: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    prune: bool = False
    take_over: bool = False
    dry_run: bool = False
    note: Annotated[str, Meta(max_length=500)] = ""


def _may_edit(call: ApiCall) -> None:
    if call.console.settings.read_only_rules:
        raise ApiProblem(FORBIDDEN, "The rules of this console come from pushed files alone.")


def _found(call: ApiCall) -> SavedRule:
    saved = call.console.rulebook.saved.rules.get(call.path["name"])
    if saved is None:
        raise ApiProblem(NOT_FOUND, "There is no rule of this name.")
    return saved


def _text(call: ApiCall) -> str:
    """Return a rule in the body as YAML."""
    if call.yaml is not None:
        return call.yaml
    return json_rule(call.body)


def json_rule(body: object) -> str:
    """Return a rule that came as JSON as YAML."""
    # JSON is a part of YAML but for characters that YAML takes only as escapes, or as the end of a line.
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(body).decode())


def _answer(saved: SavedRule, status: int = 200, *, as_yaml: bool = False) -> Answer:
    etag = f"g{saved.generation}"
    return Answer(saved.text.encode(), status, YAML, etag) if as_yaml else Answer(saved.listed, status, etag=etag)


async def _list(call: ApiCall) -> Answer:
    saved = call.console.rulebook.saved
    listed = RuleList(saved.revision, tuple(rule.listed for rule in saved.rules.values()))
    return Answer(listed, etag=f"r{saved.revision}")


async def _create(call: ApiCall) -> Answer:
    _may_edit(call)
    after, name = await call.console.rulebook.save(
        _text(call), author_of(call), name=None, generation=None, as_written=call.yaml is not None
    )
    return _answer(after.rules[name], 201)


async def _show(call: ApiCall) -> Answer:
    return _answer(_found(call), as_yaml=YAML in call.accepted)


async def _replace(call: ApiCall) -> Answer:
    _may_edit(call)
    generation = etag_number(call, "g")
    after, name = await call.console.rulebook.save(
        _text(call), author_of(call), name=call.path["name"], generation=generation, as_written=call.yaml is not None
    )
    return _answer(after.rules[name])


async def _delete(call: ApiCall) -> None:
    _may_edit(call)
    await call.console.rulebook.delete(call.path["name"], author_of(call), etag_number(call, "g"))


async def _file(call: ApiCall) -> Answer:
    saved = call.console.rulebook.saved
    # Apart from the reactor: that of many rules takes long.
    text = await call.console.store.read(lambda _: rules_yaml(rule.text for rule in saved.rules.values()).encode())
    return Answer(text, content_type=YAML, etag=f"r{saved.revision}")


async def _push(call: ApiCall) -> Answer:
    query: PushQuery = call.query
    request = PushRequest(**msgspec.structs.asdict(query))
    data = (call.yaml or "").encode()
    outcome = await call.console.rulebook.push(data, request, call.caller.name, etag_number(call, "r"))
    return Answer(outcome, etag=f"r{outcome.revision}")


async def _history(call: ApiCall) -> HistoryPage:
    return await history_page(call, "rule", "There was no rule of this name.")


async def _roll_back_rule(call: ApiCall) -> Answer:
    _may_edit(call)
    name, generation = call.path["name"], call.body.generation
    read_at = None if call.if_match is None else etag_number(call, "g")
    author = rollback_author(call, generation)
    after = await call.console.rulebook.roll_back(author, name=name, generation=generation, read_at=read_at)
    return Answer(RuleList(after.revision, tuple(rule.listed for rule in after.rules.values() if rule.name == name)))


async def _roll_back_all(call: ApiCall) -> Answer:
    _may_edit(call)
    number = revision_number(call)
    read_at = None if call.if_match is None else etag_number(call, "r")
    author = rollback_author(call, number)
    after = await call.console.rulebook.roll_back(author, revision=number, read_at=read_at)
    return Answer(
        RuleList(after.revision, tuple(rule.listed for rule in after.rules.values())), etag=f"r{after.revision}"
    )


ROUTES: Final = (
    ApiRoute("GET", "/rules", Permission.VIEW, _list, "All rules.", answer=RuleList),
    ApiRoute(
        "POST",
        "/rules",
        Permission.EDIT,
        _create,
        "Make a rule.",
        request=dict[str, Any],
        answer=ListedRule,
        takes_yaml=True,
        status=201,
    ),
    ApiRoute(
        "GET",
        "/rules/{name}",
        Permission.VIEW,
        _show,
        "One rule, as JSON or YAML.",
        answer=ListedRule,
        also_gives=YAML,
    ),
    ApiRoute(
        "PUT",
        "/rules/{name}",
        Permission.EDIT,
        _replace,
        "Change a rule, or its name.",
        request=dict[str, Any],
        answer=ListedRule,
        takes_yaml=True,
        needs_if_match=True,
    ),
    ApiRoute("DELETE", "/rules/{name}", Permission.EDIT, _delete, "Delete a rule.", status=204, needs_if_match=True),
    ApiRoute(
        "GET",
        "/rules/{name}/history",
        Permission.VIEW,
        _history,
        "The changes of a rule, the newest first.",
        answer=HistoryPage,
        query=HistoryQuery,
    ),
    ApiRoute(
        "POST",
        "/rules/{name}:rollback",
        Permission.EDIT,
        _roll_back_rule,
        "Make a rule what it was at a generation; with `If-Match` only the one that was read.",
        request=RollbackRequest,
        answer=RuleList,
    ),
    ApiRoute("GET", "/rules.yaml", Permission.VIEW, _file, "All rules as a rules file.", answer=str, gives=YAML),
    ApiRoute(
        "PUT",
        "/rules.yaml",
        Permission.EDIT,
        _push,
        "Make the rules what a rules file says, all of them or none.",
        answer=PushOutcome,
        query=PushQuery,
        takes_yaml=True,
        needs_if_match=True,
        body_limit=LARGEST,
    ),
    ApiRoute(
        "POST",
        "/revisions/{number}:rollback",
        Permission.EDIT,
        _roll_back_all,
        "Make all rules what they were at a revision; with `If-Match` only those of a revision that was read.",
        answer=RuleList,
    ),
)
