"""
The routes of the targets of alarms.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from webhookrx.config.alarms import LONGEST_URL
from webhookrx.console.alarms.targets import ConsoleTarget, checked_target
from webhookrx.console.api.history import author_of
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.api.route import ApiCall, ApiRoute


class TargetDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A target to save.

    @ivar url: it may hold a secret.
    @ivar built_in: it is told of the alarms for which nobody has written a rule.
    """

    url: Annotated[str, Meta(max_length=LONGEST_URL)]
    built_in: bool = False

    def __repr__(self) -> str:
        return "<TargetDocument>"


class ShownTarget(msgspec.Struct, frozen=True):
    """
    A target.

    @ivar url: scheme and host alone.
    """

    name: str
    url: str
    built_in: bool


class ShownTargets(msgspec.Struct, frozen=True):
    """All targets, by name."""

    targets: tuple[ShownTarget, ...]


async def show_targets(call: ApiCall) -> ShownTargets:
    """Return all targets."""
    targets = call.console.alarms.telling.targets
    return ShownTargets(tuple(_shown_target(each) for each in targets.values()))


async def save_target(call: ApiCall) -> ShownTarget:
    """Save a target."""
    body: TargetDocument = call.body
    target = checked_target(call.path["name"], body.url, built_in=body.built_in)
    await call.console.alarms.telling.save(author_of(call), target)
    return _shown_target(target)


async def delete_target(call: ApiCall) -> None:
    """Delete a target."""
    if not await call.console.alarms.telling.delete(author_of(call), call.path["name"]):
        raise ApiProblem(NOT_FOUND)


def _shown_target(target: ConsoleTarget) -> ShownTarget:
    return ShownTarget(target.target.name, target.shown_url, target.built_in)


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/alarm-targets",
        Permission.VIEW,
        show_targets,
        "Where changes of alarms are told.",
        answer=ShownTargets,
    ),
    ApiRoute(
        "PUT",
        "/alarm-targets/{name}",
        Permission.ADMINISTER,
        save_target,
        "Make or change a target; its URL is not shown again.",
        request=TargetDocument,
        answer=ShownTarget,
    ),
    ApiRoute(
        "DELETE",
        "/alarm-targets/{name}",
        Permission.ADMINISTER,
        delete_target,
        "Delete a target, with what it was not told yet.",
        status=204,
    ),
)
