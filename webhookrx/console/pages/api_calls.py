"""
Calls of the API by pages, in the same process: the same routes, checks and rights as by HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import msgspec

from webhookrx.console.api.principal import Permission, Principal
from webhookrx.console.api.problems import FORBIDDEN, IF_MATCH_MISSING, NOT_SIGNED_IN, ApiProblem
from webhookrx.console.api.reading import read_body, read_query
from webhookrx.console.api.route import JSON_TYPE, YAML, Answer, ApiCall, ApiRoute
from webhookrx.console.api.table import PREFIX, RouteTable, fits_path

if TYPE_CHECKING:
    from webhookrx.console.console import Console

_NOTHING: Final = Answer(None, 204)


class ApiCalls:
    """
    Calls the API for one person. What a page shows and does is what the API answers to that person and does for them.

    @param console: see L{ApiCall}.
    @param principal: None: nobody, who may call what anyone may.
    @param cookie: the secret of the session that the page was asked for with.
    """

    def __init__(
        self,
        table: RouteTable[ApiRoute],
        console: Console,
        principal: Principal | None,
        address: str = "",
        cookie: str | None = None,
        agent: str = "",
    ) -> None:
        self._table = table
        self._console = console
        self._principal = principal
        self._address = address
        self._cookie = cookie
        self._agent = agent

    async def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        yaml: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
        accepted: str = JSON_TYPE,
    ) -> Answer:
        """
        Call a route.

        @param path: below C{/api/v1}, its parameters encoded by L{in_path}.
        @param body: what JSON can hold.
        @param query: names and values; those that are empty are left out.
        @param if_match: an ETag without quotes.
        @return: its body is what the handler has returned: values of types of the API, not JSON.
        @raise ApiProblem: as a caller by HTTP would get it.
        """
        matched = self._table.match(method, f"{PREFIX}{path}".encode())
        route = matched.route
        if route.permission is not Permission.ANYONE:
            if self._principal is None:
                raise ApiProblem(NOT_SIGNED_IN)
            if not self._principal.may(route.permission):
                raise ApiProblem(FORBIDDEN, f"It needs the right: {route.permission.value}.")
        if if_match is None and (route.needs_if_match or (route.creates and if_none_match != "*")):
            raise ApiProblem(IF_MATCH_MISSING)
        fields = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        content, media_type = b"", ""
        if yaml is not None:
            content, media_type = yaml.encode(), YAML
        elif body is not None:
            content, media_type = msgspec.json.encode(body), JSON_TYPE
        read, text = read_body(content, media_type, route)
        answer = await route.handler(
            ApiCall(
                self._console,
                self._principal,
                matched.parameters,
                read_query(urlencode(fields).encode(), route.query),
                read,
                text,
                if_match,
                if_none_match,
                frozenset([accepted]),
                self._address,
                self._cookie,
                self._agent,
            )
        )
        return answer if isinstance(answer, Answer) else _NOTHING if answer is None else Answer(answer, route.status)


def in_path(text: str) -> str:
    """Return a text as one segment of a path of the API or of a page."""
    return quote(text, safe="")


def typed_in_path(name: str) -> str:
    """Return a typed name as L{in_path} does; C{-} for one that can't be in a path, of which the API says so."""
    return in_path(name) if name and fits_path(name) else "-"
