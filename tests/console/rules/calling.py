"""The routes of rules, called without a wire, on a store in the thread of the test."""

from __future__ import annotations

import json
import os
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.console.direct_store import DirectStore
from webhookrx.console.activity_routes import ROUTES as ACTIVITY
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.api.reading import read_body
from webhookrx.console.api.route import JSON_TYPE, Answer, ApiCall, ApiRoute
from webhookrx.console.api.table import RouteTable
from webhookrx.console.console import Console
from webhookrx.console.rules.revision_routes import ROUTES as REVISIONS
from webhookrx.console.rules.routes import ROUTES
from webhookrx.console.settings import ConsoleSettings


class Called(msgspec.Struct):
    """What came of a call."""

    status: int
    etag: str = ""
    body: bytes = b""

    @property
    def facts(self) -> Any:
        """The body."""
        return json.loads(self.body)


class RulesCalls:
    """
    Calls the routes of rules.

    @ivar caller: who calls.
    """

    def __init__(self, case: SynchronousTestCase, *, read_only_rules: bool = False) -> None:
        directory = os.path.abspath(case.mktemp())
        os.makedirs(directory)
        path = os.path.join(directory, "console.sqlite")
        self.store = DirectStore(path)
        case.addCleanup(self.store.close)
        settings = ConsoleSettings(path, "https://console.example.net", read_only_rules=read_only_rules)
        self.console = Console(settings, self.store, Clock())
        self._case = case
        self._table = RouteTable((*ROUTES, *REVISIONS, *ACTIVITY))
        self.caller = Principal("mara", "editor", token_id="1")
        self.result(self.console.rulebook.start())

    def add_routes(self, routes: Sequence[ApiRoute]) -> None:
        """Call further routes, too."""
        self._table = RouteTable((*ROUTES, *REVISIONS, *ACTIVITY, *routes))

    def result(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return what comes of something that does not wait."""
        return self._case.successResultOf(Deferred.fromCoroutine(work))

    def __call__(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        yaml: str | None = None,
        if_match: str | None = None,
        headers: Mapping[str, str] = {},
    ) -> Called:
        """
        Call a route.

        @param body: a value that is sent as JSON, or JSON.
        """
        parts = urlsplit(target)
        route, parameters = self._table.match(method, b"/api/v1" + parts.path.encode())
        query = dict(parse_qsl(parts.query))
        call = ApiCall(
            self.console,
            self.caller,
            parameters,
            None if route.query is None else msgspec.convert(query, route.query, strict=False),
            None if route.request is None or yaml is not None else read_body(_json(body), JSON_TYPE, route)[0],
            yaml,
            if_match,
            accepted=frozenset({headers.get("Accept", "")}),
        )

        async def handle() -> Called:
            try:
                answer = await route.handler(call)
            except ApiProblem as problem:
                return Called(problem.kind.status, "", msgspec.json.encode(problem.document()))
            if not isinstance(answer, Answer):
                return Called(route.status, "", msgspec.json.encode(answer))
            content = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
            return Called(answer.status, answer.etag, content)

        called: Called = self.result(handle())
        return called


def _json(body: object) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
