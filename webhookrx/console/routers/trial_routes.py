"""
The routes of trials of rules, and of recorded requests of known senders to try them with.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import BAD_CALL, INVALID, NOT_FOUND, ApiProblem
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.routers.rule_trials import TriedRule
from webhookrx.console.rules.routes import json_rule
from webhookrx.diagnostics import nearest
from webhookrx.intake.head import Head
from webhookrx.senders.http_file import RECORDED, HttpFileError, read_http_file
from webhookrx.settings import KiB
from webhookrx.trials.trial import TrialRequest

_LARGEST: Final = 128 * KiB
_METHOD: Final = "^[A-Z]{1,16}$"
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class TrialBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A rule, as C{rule} or C{yaml}, and a request: C{request} as it was recorded, or C{sample}, or its parts.

    @ivar request: request line, headers, a blank line and the body; or a JSON body alone.
    @ivar sample: the name of a recorded request of C{GET /samples}.
    @ivar path: with its query.
    @ivar any_path: a request to a path that the rule does not take counts as one to the first path of the rule.
    @ivar router: the name of the router; empty for the first that the rule matches.
    """

    rule: dict[str, Any] | None = None
    yaml: str | None = None
    request: Annotated[str, Meta(max_length=_LARGEST)] = ""
    sample: Annotated[str, Meta(max_length=200)] = ""
    method: Annotated[str, Meta(pattern=_METHOD)] = "POST"
    path: Annotated[str, Meta(max_length=8192, pattern="^[!-~]*$")] = ""
    headers: Annotated[dict[str, str], Meta(max_length=100)] = {}
    body: Annotated[str, Meta(max_length=_LARGEST)] = ""
    any_path: bool = False
    router: Annotated[str, Meta(max_length=253)] = ""

    @property
    def text(self) -> str:
        """The rule in YAML."""
        if (self.rule is None) == (self.yaml is None):
            raise ApiProblem(BAD_CALL, "A trial takes either rule or yaml.")
        return json_rule(self.rule) if self.yaml is None else self.yaml


class ShownSamples(msgspec.Struct, frozen=True):
    """The names of recorded requests of known senders."""

    samples: tuple[str, ...]


class ShownSample(msgspec.Struct, frozen=True):
    """A recorded request."""

    name: str
    request: str


@cache
def _samples() -> dict[str, bytes]:
    """Return the recorded requests that are text, by name."""
    directory = files("webhookrx.senders").joinpath("data", "samples")
    found = {}
    for file in directory.iterdir():
        if file.name.endswith(RECORDED):
            content = file.read_bytes()
            # Forms and pages show text.
            if _is_text(content):
                found[file.name.removesuffix(RECORDED)] = content
    return dict(sorted(found.items()))


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _sample(name: str) -> bytes:
    content = _samples().get(name)
    if content is None:
        near = nearest(name, _samples())
        raise ApiProblem(NOT_FOUND, f"There is no recorded request of this name. {near}".rstrip())
    return content


def _request(body: TrialBody) -> TrialRequest:
    """
    Return the request of a trial.

    @raise ApiProblem: it can't be read.
    """
    given = [bool(body.request), bool(body.sample), bool(body.path or body.body or body.headers)]
    if sum(given) != 1:
        raise ApiProblem(BAD_CALL, "A trial takes either request, or sample, or path, headers and body.")
    recorded = body.request.encode() if body.request else _sample(body.sample) if body.sample else _written(body)
    try:
        head, _, content = read_http_file(recorded)
    except HttpFileError as error:
        raise ApiProblem(INVALID, str(error)) from None
    # A recording leaves out how its body came.
    length = [(b"content-length", b"%d" % len(content))] if content or head.method == b"POST" else []
    whole = Head(head.method, head.path, head.query, [*head.headers, *length], head.peer)
    return TrialRequest(whole, content)


def _written(body: TrialBody) -> bytes:
    """Return a request of its parts as a recording."""
    for name, value in body.headers.items():
        if not _HEADER.fullmatch(name) or re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise ApiProblem(INVALID, "The name of a header is a token, and its value is on one line.")
    lines = [
        f"{body.method} {body.path or '/'} HTTP/1.1",
        *(f"{name}: {value}" for name, value in body.headers.items()),
    ]
    return ("\n".join([*lines, "", ""]) + body.body).encode()


async def try_rule(call: ApiCall) -> TriedRule:
    """Return what a rule makes of a request."""
    body: TrialBody = call.body
    trials = call.console.trials
    return await trials.try_rule(body.text, _request(body), router=body.router, any_path=body.any_path)


async def list_samples(call: ApiCall) -> ShownSamples:
    """Return the names of recorded requests."""
    return ShownSamples(tuple(_samples()))


async def show_sample(call: ApiCall) -> ShownSample:
    """Return a recorded request."""
    name = call.path["name"]
    return ShownSample(name, _sample(name).decode())


ROUTES: Final = (
    ApiRoute(
        "POST",
        "/rules:try",
        Permission.EDIT,
        try_rule,
        "What a rule makes of a recorded request, step by step. Nothing is stored.",
        request=TrialBody,
        answer=TriedRule,
        body_limit=512 * KiB,
        safe=True,
    ),
    ApiRoute(
        "GET",
        "/samples",
        Permission.VIEW,
        list_samples,
        "The names of recorded requests of known senders.",
        answer=ShownSamples,
    ),
    ApiRoute(
        "GET",
        "/samples/{name}",
        Permission.VIEW,
        show_sample,
        "A recorded request of a known sender.",
        answer=ShownSample,
    ),
)
