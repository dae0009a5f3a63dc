"""
The routes of routers and their enrolments.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import BUSY, CONFLICT, INVALID, NOT_FOUND, ApiProblem
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.polls import Unanswered
from webhookrx.console.routers.records import Enrolment, EnrolmentRefused
from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.console.routers.turns import in_turns
from webhookrx.console.store.history import Author
from webhookrx.errors import ConfigError
from webhookrx.management.agent_protocol import ConnectorState, ReloadCommand
from webhookrx.query import QueryError, QueryTooCostly, parse
from webhookrx.router.rules.rule import check_label, check_name

_RELOAD_TIME: Final = 30.0
_LATER: Final = (("Retry-After", "5"),)

_LabelMap = Annotated[dict[str, str], Meta(max_length=64)]


class RouterQuery(msgspec.Struct, frozen=True):
    """Which routers: a query on them; empty for all."""

    query: Annotated[str, Meta(max_length=8192)] = ""


class ShownRouter(msgspec.Struct, frozen=True):
    """
    A router.

    @ivar labels: all of them; C{own_labels} are those that the router has itself.
    @ivar seen_at: seconds since the epoch; 0 for never.
    @ivar status: of its newest bundle, with C{error}.
    @ivar duplicate: two processes use its certificate.
    @ivar certificate_end: when the last of its certificates ends, seconds since the epoch.
    """

    guid: str
    name: str
    state: str
    labels: dict[str, str]
    own_labels: dict[str, str]
    form: str
    version: str
    hostname: str
    fqdn: str
    ip: tuple[str, ...]
    os: str
    arch: str
    seen_at: float
    online: bool
    away: bool
    duplicate: bool
    revision: int
    status: str
    error: str
    gate_reasons: tuple[str, ...]
    gate_paths: tuple[str, ...]
    health: str
    connectors: int
    certificate_end: float


class ShownRouters(msgspec.Struct, frozen=True):
    """
    Routers, by name.

    @ivar problem: why nothing is handed out to them; empty when all is well.
    """

    routers: tuple[ShownRouter, ...]
    problem: str = ""


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
    """

    enrolment: Enrolment
    token: str

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
    try:
        query = parse(call.query.query)
        async for each in in_turns(call.console.reactor, tuple(_fleet(call).registry)):
            if query.matches(each.record):
                yield each
    except (QueryError, QueryTooCostly) as error:
        raise ApiProblem(INVALID, str(error)) from None


async def list_routers(call: ApiCall) -> ShownRouters:
    """Return the routers that a query matches."""
    fleet = _fleet(call)
    shown = [_shown(fleet, each) async for each in matching_routers(call)]
    shown.sort(key=lambda each: (each.name, each.guid))
    return ShownRouters(tuple(shown), fleet.problem)


async def show_router(call: ApiCall) -> ShownRouter:
    """Return a router."""
    return _shown(_fleet(call), _router(call))


async def change_router(call: ApiCall) -> ShownRouter:
    """Change the name, labels or state of a router."""
    fleet, router, patch = _fleet(call), _router(call), call.body
    try:
        if patch.name is not None:
            check_name(patch.name)
        _check_labels(patch.labels or {})
        await fleet.change(_author(call), router, name=patch.name, state=patch.state, labels=patch.labels)
    except ConfigError as error:
        raise ApiProblem(INVALID, str(error)) from None
    except EnrolmentRefused as refused:
        raise ApiProblem(CONFLICT, str(refused)) from None
    return _shown(fleet, router)


async def delete_router(call: ApiCall) -> None:
    """Forget a router. What it has counted stays."""
    router = _router(call)
    await _fleet(call).delete(_author(call), router)
    call.console.counts.forget(router.guid)


async def show_connectors(call: ApiCall) -> ShownConnectors:
    """Return the connectors of a router."""
    return ShownConnectors(_router(call).connectors)


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
            _author(call), body.approve, body.uses, float(body.seconds), body.labels
        )
    except ConfigError as error:
        raise ApiProblem(INVALID, str(error)) from None
    except EnrolmentRefused as refused:
        raise ApiProblem(CONFLICT, str(refused)) from None
    return MadeEnrolment(enrolment, token.text)


async def delete_enrolment(call: ApiCall) -> None:
    """Delete an enrolment."""
    if not await _fleet(call).enrolments.delete(_author(call), call.path["id"]):
        raise ApiProblem(NOT_FOUND)


def _fleet(call: ApiCall) -> FleetOfRouters:
    fleet: FleetOfRouters | None = call.console.fleet
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


def _author(call: ApiCall) -> Author:
    return Author(call.caller.name, call.caller.via)


def _check_labels(labels: dict[str, str]) -> None:
    for key, value in labels.items():
        check_label(key, value)


def _shown(fleet: FleetOfRouters, router: EnrolledRouter) -> ShownRouter:
    facts, applied, now = router.facts, router.applied, fleet.clock()
    return ShownRouter(
        guid=router.guid,
        name=router.name,
        state=router.state,
        labels=router.all_labels,
        own_labels=facts.labels,
        form=facts.form,
        version=facts.version,
        hostname=facts.hostname,
        fqdn=facts.fqdn,
        ip=facts.ip,
        os=facts.os,
        arch=facts.arch,
        seen_at=router.seen_at,
        online=fleet.polls.is_online(router.guid),
        away=router.is_away(now),
        duplicate=router.is_duplicate(now),
        revision=applied.revision,
        status=applied.status,
        error=applied.error,
        gate_reasons=router.gate.reasons,
        gate_paths=router.gate.paths,
        health=router.health,
        connectors=len(router.connectors),
        certificate_end=max(router.certificates.values(), default=0.0),
    )


def _route(method: str, path: str, permission: Permission, handler: Any, summary: str, **more: Any) -> ApiRoute:
    return ApiRoute(method, path, permission, handler, summary, **more)


_VIEW, _EDIT, _ADMIN = Permission.VIEW, Permission.EDIT, Permission.ADMINISTER

ROUTES: Final[tuple[ApiRoute, ...]] = (
    _route("GET", "/routers", _VIEW, list_routers, "List routers.", query=RouterQuery, answer=ShownRouters),
    _route("GET", "/routers/{name}", _VIEW, show_router, "Show a router.", answer=ShownRouter),
    _route(
        "PATCH",
        "/routers/{name}",
        _ADMIN,
        change_router,
        "Change the name, labels or state of a router.",
        request=RouterPatch,
        answer=ShownRouter,
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
