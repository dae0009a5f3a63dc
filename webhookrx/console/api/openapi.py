"""
The description of the API: OpenAPI 3.1 and a table for the docs, both made of the routes and their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import KINDS, PROBLEM_TYPE, ApiFinding
from webhookrx.console.api.reading import COOKIE
from webhookrx.console.api.route import JSON_TYPE, YAML, ApiRoute
from webhookrx.console.api.table import PREFIX
from webhookrx.version import installed_version

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class ProblemDocument(msgspec.Struct, omit_defaults=True):
    """A problem as answers have it (RFC 9457), beside further members of its own."""

    title: str
    status: int
    code: str
    detail: str = ""
    findings: list[ApiFinding] = []


def describe(routes: Iterable[ApiRoute]) -> dict[str, Any]:
    """Return the OpenAPI document of these routes."""
    routes = tuple(routes)
    kinds = [kind for route in routes for kind in (route.request, route.answer, route.query) if kind is not None]
    schemas, components = msgspec.json.schema_components([*kinds, ProblemDocument], ref_template=_REF)
    of_kind = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=False)}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route, of_kind, components)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "webhookrx console", "version": installed_version()},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An API token, wrxp_…"},
                "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
            },
        },
    }
    # Defaults of types are tuples, too, which JSON does not know.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return plain


def _operation(route: ApiRoute, of_kind: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(route.path)
    ]
    if route.query is not None:
        query = components[of_kind[repr(route.query)]["$ref"].rpartition("/")[2]]
        parameters += [
            {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}
            for name, schema in query["properties"].items()
        ]
    conditions = ("If-Match", "If-None-Match") if route.creates else ("If-Match",) if route.needs_if_match else ()
    parameters += [
        {"name": name, "in": "header", "required": not route.creates, "schema": {"type": "string"}}
        for name in conditions
    ]
    answer: dict[str, Any] = {"description": route.summary}
    if route.answer is not None:
        # Of a text that is no JSON, a type of JSON would say something else than that it is a text.
        answer["content"] = {route.gives: {"schema": of_kind[repr(route.answer)]} if route.gives == JSON_TYPE else {}}
        if route.also_gives:
            answer["content"][route.also_gives] = {}
    status = 204 if route.answer is None and route.gives == JSON_TYPE else route.status
    problem = {
        "description": "A problem; as plain JSON where the port refuses what is no request, or too long.",
        "content": {PROBLEM_TYPE: {"schema": {"$ref": _REF.format(name="ProblemDocument")}}, JSON_TYPE: {}},
    }
    unsafe = route.method != "GET"
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-z0-9]+', '_', route.path.lower()).rstrip('_')}",
        "summary": route.summary,
        "description": f"Needs: {route.permission.value}.",
        "responses": {str(status): answer, "default": problem},
        "security": []
        if route.permission is Permission.ANYONE
        else [{"token": []}, {"session": [], **({"csrf": []} if unsafe else {})}],
    }
    if parameters:
        operation["parameters"] = parameters
    if route.request is not None or route.takes_yaml:
        content: dict[str, Any] = {}
        if route.request is not None:
            content[JSON_TYPE] = {"schema": of_kind[repr(route.request)]}
        if route.takes_yaml:
            content[YAML] = {"schema": {"type": "string"}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def route_table(routes: Iterable[ApiRoute]) -> str:
    """Return the table of routes for the docs."""
    lines = ["| call | needs | does |", "|---|---|---|"]
    lines += [f"| `{route.method} {route.path}` | {route.permission.value} | {route.summary} |" for route in routes]
    return "".join(f"{line}\n" for line in lines)


def problem_table() -> str:
    """Return the table of kinds of problems for the docs."""
    lines = ["| status | code | meaning |", "|---|---|---|"]
    lines += [f"| {kind.status} | `{kind.code}` | {kind.title} |" for kind in KINDS]
    return "".join(f"{line}\n" for line in lines)
