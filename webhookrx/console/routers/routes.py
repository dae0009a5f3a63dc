"""
The routes of routers and their enrolments.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from webhookrx.console.api.history import author_of
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import BUSY, CONFLICT, INVALID, NOT_FOUND, ApiProblem
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.polls import Unanswered
from webhookrx.console.routers.records import Enrolment, EnrolmentRefused
from webhookrx.console.routers.registry import MOST_ROUTERS, EnrolledRouter
from webhookrx.console.routers.router_files import RouterFiles, files_of
from webhookrx.console.routers.shown import (
    RouterDetails,
    ShownRouters,
    Standing,
    counted_standings,
    last_message_of,
    router_details,
    shown_router,
    standing_of,
)
from webhookrx.console.turns import in_turns
from webhookrx.errors import ConfigError
from webhookrx.management.agent_protocol import ConnectorState, ReloadCommand
from webhookrx.query import Query, QueryError, QueryTooCostly, parse
from webhookrx.regex import RegexTooCostly
from webhookrx.router.rules.rule import check_label, check_name

_RELOAD_TIME: Final = 30.0
_LATER: Final = (("Retry-After", "5"),)

_LabelMap = Annotated[dict[str, str], Meta(max_length=64)]


class RouterQuery(msgspec.Struct, frozen=True):
    """Which routers: a query on them; empty for all."""

    query: Annotated[str, Meta(max_length=8192)] = ""


class RouterListQuery(RouterQuery, frozen=True):
    """
    As L{RouterQuery}.

    @ivar standing: only those that do so; empty for all.
    @ivar offset: how many of these are left out; C{count} of the others are shown, 0 for all.
    """

    standing: Literal["", Standing] = ""
    offset: Annotated[int, Meta(ge=0, le=MOST_ROUTERS)] = 0
    count: Annotated[int, Meta(ge=0, le=MOST_ROUTERS)] = 0


class RouterPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What changes; None: as it is."""

    name: str | None = None
    state: Literal["approved", "disabled"] | None = None
    labels: _LabelMap | None = None


class NewEnrolment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    An enrolment to make.

    @ivar seconds: for how long its token is good.
    """

    approve: Literal["auto", "manual"] = "manual"
    uses: Annotated[int, Meta(ge=1, le=1000)] = 1
    seconds: Annotated[int, Meta(ge=60, le=7 * 86_400)] = 3600
    labels: _LabelMap = {}


class MadeEnrolment(msgspec.Struct, frozen=True):
    """
    An enrolment with its token, which is shown this once.

    @ivar console: what the router takes as C{--console}; empty where the console can't know it.
    """

    enrolment: Enrolment
    token: str
    console: str

    def __repr__(self) -> str:
        return f"<MadeEnrolment {self.enrolment.id}>"


class ShownEnrolments(msgspec.Struct, frozen=True):
    """The enrolments that can be used."""

    enrolments: tuple[Enrolment, ...]


class ShownConnectors(msgspec.Struct, frozen=True):
    """The connectors of a router, as it has told last."""

    connectors: tuple[ConnectorState, ...]


async def matching_routers(call: ApiCall) -> AsyncIterator[EnrolledRouter]:
    """
    Yield the routers that the query of a call matches.

    @raise ApiProblem: it is no query, or takes too much work.
    """
    text = call.query.query
    try:
        query = parse(text)
        async for each, is_wanted in decided_routers(call.console.reactor, query, tuple(_fleet(call).registry)):
            if is_wanted:
                yield each
    except (QueryError, QueryTooCostly, RegexTooCostly) as error:
        raise ApiProblem(INVALID, str(error)) from None


async def decided_routers(
    reactor: Any, query: Query, routers: Sequence[EnrolledRouter]
) -> AsyncIterator[tuple[EnrolledRouter, bool]]:
    """
    Yield routers, and whether a query matches each.

    @raise QueryTooCostly: it takes too much work.
    @raise RegexTooCostly: the same, for one of its regular expressions.
    """
    async for each in in_turns(reactor, routers):
        yield each, not query.text or query.matches(each.record)


async def list_routers(call: ApiCall) -> ShownRouters:
    """Return the routers that a query matches."""
    fleet, counts, asked = _fleet(call), call.console.counts, call.query
    now = fleet.clock()
    found = [(each, standing_of(each, now)) async for each in matching_routers(call)]
    wanted = [each for each, standing in found if asked.standing in ("", standing)]
    wanted.sort(key=lambda each: (each.name, each.guid))
    page = wanted[asked.offset : asked.offset + asked.count if asked.count else None]
    return ShownRouters(
        tuple([shown_router(fleet, counts, each) async for each in in_turns(call.console.reactor, page)]),
        fleet.problem,
        len(found),
        counted_standings(standing for _, standing in found),
        max((last_message_of(counts, each) for each, _ in found), default=0.0),
    )


async def show_router(call: ApiCall) -> RouterDetails:
    """Return a router."""
    return router_details(_fleet(call), call.console.counts, _router(call))


async def change_router(call: ApiCall) -> RouterDetails:
    """Change the name, labels or state of a router."""
    fleet, router, patch = _fleet(call), _router(call), call.body
    try:
        if patch.name is not None:
            check_name(patch.name)
        _check_labels(patch.labels or {})
        await fleet.change(author_of(call), router, name=patch.name, state=patch.state, labels=patch.labels)
    except ConfigError as error:
        raise ApiProblem(INVALID, str(error)) from None
    except EnrolmentRefused as refused:
        raise ApiProblem(CONFLICT, str(refused)) from None
    return router_details(fleet, call.console.counts, router)


async def delete_router(call: ApiCall) -> None:
    """Forget a router. What it has counted stays."""
    router = _router(call)
    await _fleet(call).delete(author_of(call), router)
    call.console.counts.forget(router.guid)


async def show_connectors(call: ApiCall) -> ShownConnectors:
    """Return the connectors of a router."""
    return ShownConnectors(_router(call).connectors)


async def ask_files(call: ApiCall) -> RouterFiles:
    """Ask a router how the files of its rules are."""
    return await files_of(_fleet(call), call.console.rulebook.saved.rules, _router(call))


async def reload_router(call: ApiCall) -> None:
    """Have a router reload, and say what has become of it."""
    router = _router(call)
    try:
        answer = await _fleet(call).polls.command(router.guid, lambda id: ReloadCommand(id=id), _RELOAD_TIME)
    except Unanswered as error:
        raise ApiProblem(BUSY, str(error), headers=_LATER) from None
    if answer.problem:
        raise ApiProblem(CONFLICT, answer.problem, members={"paths": answer.paths})


async def list_enrolments(call: ApiCall) -> ShownEnrolments:
    """Return the enrolments that can be used."""
    return ShownEnrolments(_fleet(call).enrolments.usable)


async def make_enrolment(call: ApiCall) -> MadeEnrolment:
    """Make an enrolment."""
    body: NewEnrolment = call.body
    try:
        _check_labels(body.labels)
        enrolment, token = await _fleet(call).enrolments.add(
            author_of(call), body.approve, body.uses, float(body.seconds), body.labels
        )
    except ConfigError as error:
        raise ApiProblem(INVALID, str(error)) from None
    except EnrolmentRefused as refused:
        raise ApiProblem(CONFLICT, str(refused)) from None
    return MadeEnrolment(enrolment, token.text, call.console.settings.routers_url)


async def delete_enrolment(call: ApiCall) -> None:
    """Delete an enrolment."""
    if not await _fleet(call).enrolments.delete(author_of(call), call.path["id"]):
        raise ApiProblem(NOT_FOUND)


def _fleet(call: ApiCall) -> FleetOfRouters:
    fleet = call.console.fleet
    if fleet is None:
        raise ApiProblem(BUSY, "The console has not read its routers yet.", headers=_LATER)
    return fleet


def _router(call: ApiCall) -> EnrolledRouter:
    """Return the router of a path by its name; one that waits, and has none yet, by its guid."""
    registry, name = _fleet(call).registry, call.path["name"]
    router = registry.by_name(name) or registry.by_guid(name)
    if router is None:
        raise ApiProblem(NOT_FOUND)
    return router


def _check_labels(labels: dict[str, str]) -> None:
    for key, value in labels.items():
        check_label(key, value)


def _route(method: str, path: str, permission: Permission, handler: Any, summary: str, **more: Any) -> ApiRoute:
    return ApiRoute(method, path, permission, handler, summary, **more)


_VIEW, _EDIT, _ADMIN = Permission.VIEW, Permission.EDIT, Permission.ADMINISTER

ROUTES: Final[tuple[ApiRoute, ...]] = (
    _route("GET", "/routers", _VIEW, list_routers, "List routers.", query=RouterListQuery, answer=ShownRouters),
    _route("GET", "/routers/{name}", _VIEW, show_router, "Show a router.", answer=RouterDetails),
    _route(
        "PATCH",
        "/routers/{name}",
        _ADMIN,
        change_router,
        "Change the name, labels or state of a router.",
        request=RouterPatch,
        answer=RouterDetails,
    ),
    _route("DELETE", "/routers/{name}", _ADMIN, delete_router, "Forget a router and its certificates.", status=204),
    _route(
        "GET",
        "/routers/{name}/connectors",
        _VIEW,
        show_connectors,
        "List the connectors of a router.",
        answer=ShownConnectors,
    ),
    _route(
        "POST",
        "/routers/{name}:files",
        _EDIT,
        ask_files,
        "How the files of the rules of a router are there; it is asked, for five seconds at most.",
        answer=RouterFiles,
        safe=True,
    ),
    _route("POST", "/routers/{name}:reload", _EDIT, reload_router, "Have a router reload.", status=204),
    _route("GET", "/enrolments", _ADMIN, list_enrolments, "List the enrolments.", answer=ShownEnrolments),
    _route(
        "POST",
        "/enrolments",
        _ADMIN,
        make_enrolment,
        "Make an enrolment; its token is shown this once.",
        request=NewEnrolment,
        answer=MadeEnrolment,
        status=201,
    ),
    _route("DELETE", "/enrolments/{id}", _ADMIN, delete_enrolment, "Delete an enrolment.", status=204),
)
