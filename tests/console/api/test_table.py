"""
Tests for L{webhookrx.console.api.table}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.api.table import RouteTable
from webhookrx.console.routes import CONSOLE_ROUTES


async def nothing(call: ApiCall) -> None:
    """Answer 204."""


def route(method: str, path: str) -> ApiRoute:
    """Return a route that does nothing."""
    return ApiRoute(method, path, Permission.VIEW, nothing, "Nothing.")


TABLE = RouteTable(
    [
        route("GET", "/rules"),
        route("GET", "/rules/{name}"),
        route("PUT", "/rules/{name}"),
        route("GET", "/rules/all"),
        route("POST", "/rules/{name}:rollback"),
        route("POST", "/rules:preview"),
        route("GET", "/rules/{name}/history"),
    ]
)


class RouteTableTests(SynchronousTestCase):
    """Which route a path is of."""

    def test_found(self) -> None:
        """A path leads to the route whose shape it has, a fixed one first, with its parameters decoded."""
        for method, path, expected, parameters in (
            ("GET", b"/rules", "/rules", {}),
            ("HEAD", b"/rules", "/rules", {}),
            ("GET", b"/rules/a", "/rules/{name}", {"name": "a"}),
            ("GET", b"/rules/all", "/rules/all", {}),
            ("PUT", b"/rules/a%20b%3Ac", "/rules/{name}", {"name": "a b:c"}),
            ("POST", b"/rules/a:rollback", "/rules/{name}:rollback", {"name": "a"}),
            ("POST", b"/rules:preview", "/rules:preview", {}),
            ("GET", b"/rules/a/history", "/rules/{name}/history", {"name": "a"}),
        ):
            with self.subTest(path=path):
                matched = TABLE.match(method, b"/api/v1" + path)
                self.assertEqual((expected, parameters), (matched.route.path, matched.parameters))

    def test_not_found(self) -> None:
        """Dot segments, doubled, trailing and encoded slashes, and what is no text, are no way to a route."""
        for path in (
            b"", b"/", b"/rule", b"/rules/", b"//rules", b"/rules//a", b"/rules/.", b"/rules/..", b"/rules/%2e%2E",
            b"/rules/%2e", b"/rules/a%2fhistory", b"/rules/a%2Fb", b"/rules/a%5cb", b"/rules/a%00", b"/rules/%0a",
            b"/rules/%ff", b"/%72ules", b"/../v1/rules", b"/./rules", b"/rules;a", b"/rules/a:other:rollback",
            b"/rules/" + b"a" * 3000,
        ):  # fmt: skip
            with self.subTest(path=path):
                problem = self.assertRaises(ApiProblem, TABLE.match, "GET", b"/api/v1" + path)
                self.assertEqual(404, problem.kind.status)
        for path in (b"/api/v2/rules", b"/API/v1/rules", b"//api/v1/rules", b"/api/v1x/rules", b"/%61pi/v1/rules"):
            with self.subTest(path=path):
                self.assertEqual(404, self.assertRaises(ApiProblem, TABLE.match, "GET", path).kind.status)

    def test_method(self) -> None:
        """A path that is there says which methods it takes; OPTIONS and TRACE are not among them."""
        for method, path, allowed in (
            ("OPTIONS", b"/rules", "GET, HEAD"),
            ("TRACE", b"/rules/a", "GET, HEAD, PUT"),
            ("HEAD", b"/rules:preview", "POST"),
            ("get", b"/rules", "GET, HEAD"),
        ):
            with self.subTest(method=method, path=path):
                problem = self.assertRaises(ApiProblem, TABLE.match, method, b"/api/v1" + path)
                self.assertEqual((405, (("Allow", allowed),)), (problem.kind.status, problem.headers))

    def test_twice(self) -> None:
        """Two routes of one method and path, a path without its slash and an unknown method are mistakes."""
        for routes in (
            [route("GET", "/a"), route("GET", "/a")],
            [route("GET", "a")],
            [route("BREW", "/a")],
            [route("GET", "/{}")],
        ):
            self.assertRaises(ValueError, RouteTable, routes)

    def test_all(self) -> None:
        """The routes of all parts fit together, and each has a sentence."""
        RouteTable(CONSOLE_ROUTES)
        for each in CONSOLE_ROUTES:
            self.assertTrue(each.summary.endswith("."), each.path)
