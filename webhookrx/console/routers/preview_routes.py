"""
The routes of previews: what saving a rule would do, and how its files are on the routers that it matches.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import BAD_CALL, ApiFinding, ApiProblem, findings_of
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.rules.routes import json_rule
from webhookrx.management.file_states import FilesPreview
from webhookrx.management.preview import ConnectorChange, MatchingRouter, OtherRouter, RouterClash, RouterGate


class PreviewRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A rule that is not saved: as C{rule} or as C{yaml}.

    @ivar replaces: the name of the saved rule whose place it takes; empty for a new one.
    """

    rule: dict[str, Any] | None = None
    yaml: str | None = None
    replaces: Annotated[str, Meta(max_length=253)] = ""

    @property
    def text(self) -> str:
        """It in YAML."""
        if (self.rule is None) == (self.yaml is None):
            raise ApiProblem(BAD_CALL, "A preview takes either rule or yaml.")
        return json_rule(self.rule) if self.yaml is None else self.yaml


class ShownPreview(msgspec.Struct, frozen=True, kw_only=True):
    """See L{webhookrx.management.preview.RulePreview}."""

    findings: tuple[ApiFinding, ...]
    routers: int
    matched: int
    matching: tuple[MatchingRouter, ...]
    why_not: tuple[OtherRouter, ...]
    clashing: int
    clashes: tuple[RouterClash, ...]
    added: int
    removed: int
    changed: int
    changes: tuple[ConnectorChange, ...]
    paths: tuple[str, ...]
    ask: tuple[str, ...]
    gates: tuple[RouterGate, ...]


async def preview(call: ApiCall) -> ShownPreview:
    """Return what saving a rule would do."""
    previews = call.console.previews
    found = await previews.preview(call.body.text, call.body.replaces)
    return ShownPreview(**msgspec.structs.asdict(found) | {"findings": findings_of(found.findings)})


async def files(call: ApiCall) -> FilesPreview:
    """Return how the files of a rule are on the routers that it matches."""
    previews = call.console.previews
    return await previews.files(call.body.text, call.body.replaces)


# Who may not save has no use for a preview, which costs a thread and commands to routers.
ROUTES: Final = (
    ApiRoute(
        "POST",
        "/rules:preview",
        Permission.EDIT,
        preview,
        "What saving a rule would do: routers, clashes and changes. Nothing is changed.",
        request=PreviewRequest,
        answer=ShownPreview,
        safe=True,
    ),
    ApiRoute(
        "POST",
        "/rules:files",
        Permission.EDIT,
        files,
        "How the files of a rule are on the routers that it matches, which are asked, for five seconds at most.",
        request=PreviewRequest,
        answer=FilesPreview,
        safe=True,
    ),
)
