"""
Tests for L{webhookrx.console.routes}: every route, and everyone who may call it or may not.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from openapi_spec_validator import validate
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.console.api.test_dispatch import CSRF, SESSION, TOKEN, Keeper, request
from tests.http.wire import Wire
from webhookrx.console.api.callers import Callers
from webhookrx.console.api.dispatch import CONSOLE_LIMITS, ApiResource
from webhookrx.console.api.openapi import describe, route_table
from webhookrx.console.api.principal import ROLES, Permission
from webhookrx.console.api.problems import CONFLICT, ApiProblem
from webhookrx.console.api.route import ApiCall
from webhookrx.console.api.table import RouteTable
from webhookrx.console.routes import CONSOLE_ROUTES
from webhookrx.operations.admin_resource import NoMessages

PASSES = {400, 409, 413, 415, 422, 428}
"""Refused for another reason than the caller's rights: parts of the request are missing here."""


async def reached(call: ApiCall) -> Any:
    """Say that it was reached."""
    raise ApiProblem(CONFLICT)


class RoutesTests(SynchronousTestCase):
    """All of them."""

    def setUp(self) -> None:
        """Serve them, each without what it does."""
        self.keeper = Keeper()
        table = RouteTable([msgspec.structs.replace(route, handler=reached) for route in CONSOLE_ROUTES])
        clock = Clock()
        root = ApiResource(table, Callers(self.keeper, clock.seconds), None, "https://console.example", clock)
        self.wire = Wire(root=root, limits=CONSOLE_LIMITS, consumer=NoMessages())

    def status(self, route: Any, **headers: str) -> int:
        """Call a route."""
        path = re.sub(r"\{\w+\}", "x", route.path)
        body = b"{}" if route.request is not None else None
        sender = self.wire.connect(secure=True)
        sender.send(request(route.method, path, body, **headers))
        (status,) = sender.statuses()
        sender.transport.abortConnection()
        return status

    def test_rights(self) -> None:
        """Every route answers every role, with and without C{tap}, by token and by session, as its permission says."""
        ours = {"cookie": f"__Host-wrx={SESSION}", "x_csrf_token": CSRF, "origin": "https://console.example"}
        for route in CONSOLE_ROUTES:
            nobody = self.status(route)
            if route.permission is Permission.ANYONE:
                self.assertIn(nobody, PASSES)
            else:
                self.assertEqual(401, nobody, route.path)
            for role in ROLES:
                for tap in (False, True):
                    self.keeper.role, self.keeper.tap = role, tap
                    if route.permission is Permission.TAP:
                        may = tap
                    elif route.permission in (Permission.ANYONE, Permission.SIGNED_IN):
                        may = True
                    else:
                        may = ROLES.index(role) >= ROLES.index(route.permission.value)
                    for shown in ({"authorization": f"Bearer {TOKEN}"}, ours):
                        with self.subTest(route=f"{route.method} {route.path}", role=role, tap=tap):
                            status = self.status(route, **shown)
                            if may:
                                self.assertIn(status, PASSES)
                            else:
                                self.assertEqual(403, status)

    def test_cross_site(self) -> None:
        """No unsafe route does anything for a session without its CSRF token, or from elsewhere."""
        cookie = {"cookie": f"__Host-wrx={SESSION}"}
        self.keeper.role, self.keeper.tap = "admin", True
        for route in CONSOLE_ROUTES:
            if route.method != "GET":
                for headers in (
                    {"origin": "https://console.example"},
                    {"origin": "https://evil.example", "x_csrf_token": CSRF},
                    {"sec_fetch_site": "cross-site", "x_csrf_token": CSRF},
                    {"x_csrf_token": CSRF},
                ):
                    # A log-in has no session yet whose token it could show.
                    if route.permission is Permission.ANYONE and headers.get("origin") == "https://console.example":
                        continue
                    with self.subTest(route=route.path, headers=headers):
                        self.assertEqual(403, self.status(route, **cookie, **headers))

    def test_description(self) -> None:
        """The description is valid OpenAPI 3.1, and has every route once."""
        document = describe(CONSOLE_ROUTES)
        validate(document)
        described = [(method, path) for path, methods in document["paths"].items() for method in methods]
        self.assertEqual(
            sorted((route.method.lower(), f"/api/v1{route.path}") for route in CONSOLE_ROUTES), sorted(described)
        )
        names = [method["operationId"] for methods in document["paths"].values() for method in methods.values()]
        self.assertEqual(len(names), len(set(names)))

    def test_sentences(self) -> None:
        """Each route has a sentence, and a row in the docs."""
        table = route_table(CONSOLE_ROUTES)
        for route in CONSOLE_ROUTES:
            self.assertTrue(route.summary.endswith("."), route.path)
            self.assertIn(f"| `{route.method} {route.path}` |", table)
