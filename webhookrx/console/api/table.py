"""
A table of routes, in which each is found by method and path.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from webhookrx.console.api.problems import BAD_METHOD, NOT_FOUND, ApiProblem

PREFIX: Final = "/api/v1"


class Routed(Protocol):
    """What is found by its method and path, see L{webhookrx.console.api.route.ApiRoute}."""

    @property
    def method(self) -> str:
        """Such as C{GET}."""

    @property
    def path(self) -> str:
        """Below the prefix, with parameters in braces."""


R = TypeVar("R", bound=Routed)


class Matched(NamedTuple, Generic[R]):
    """A route, and the parameters of a path that it takes."""

    route: R
    parameters: dict[str, str]


class RouteTable(Generic[R]):
    """
    Finds routes by method and path. A path is taken as it is written: no dot segments, no doubled or encoded slashes.

    @param prefix: what paths of requests have before those of routes.
    @raise ValueError: two routes are the same, or one can't be as it is.
    """

    def __init__(self, routes: Iterable[R], prefix: str = PREFIX) -> None:
        self.routes = tuple(routes)
        self._prefix = f"{prefix}/".encode()
        self._by_length: dict[int, list[tuple[tuple[_Segment, ...], dict[str, R]]]] = {}
        for route in self.routes:
            self._add(route)
        for shapes in self._by_length.values():
            shapes.sort(key=lambda shape: [bool(segment.name) for segment in shape[0]])

    def _add(self, route: R) -> None:
        shape = tuple(_segment(text) for text in route.path.split("/")[1:])
        if not route.path.startswith("/") or route.method not in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            raise ValueError(f"{route.method} {route.path}")
        shapes = self._by_length.setdefault(len(shape), [])
        methods = next((methods for other, methods in shapes if other == shape), None)
        if methods is None:
            methods = {}
            shapes.append((shape, methods))
        if route.method in methods:
            raise ValueError(f"{route.method} {route.path} is there twice")
        methods[route.method] = route

    def match(self, method: str, path: bytes) -> Matched[R]:
        """
        Return the route of a request. HEAD is GET.

        @param path: raw, without the query.
        @raise ApiProblem: there is none.
        """
        if not path.startswith(self._prefix) or len(path) > 2048:
            raise ApiProblem(NOT_FOUND)
        raw = path[len(self._prefix) :].split(b"/")
        for shape, methods in self._by_length.get(len(raw), ()):
            parameters: dict[str, str] = {}
            if all(segment.takes(text, parameters) for segment, text in zip(shape, raw, strict=True)):
                route = methods.get("GET" if method == "HEAD" else method)
                if route is None:
                    allowed = sorted({*methods, *(("HEAD",) if "GET" in methods else ())})
                    raise ApiProblem(BAD_METHOD, headers=(("Allow", ", ".join(allowed)),))
                return Matched(route, parameters)
        raise ApiProblem(NOT_FOUND)


def fits_path(name: str) -> bool:
    """
    Tell whether a name can be a parameter of a path: browsers and proxies resolve dot segments and slashes, even
    encoded ones (URL standard, section 4.4).
    """
    return name not in (".", "..") and not {"/", "\\"} & set(name) and name.isprintable()


class _Segment(NamedTuple):
    before: bytes
    name: str
    after: bytes

    def takes(self, text: bytes, parameters: dict[str, str]) -> bool:
        """Return whether C{text} is such a segment; its parameter goes to C{parameters}."""
        if not self.name:
            return text == self.before
        if not text.startswith(self.before) or not text.endswith(self.after):
            return False
        inner = text[len(self.before) : len(text) - len(self.after)]
        if not inner or b":" in inner:
            return False
        try:
            value = unquote_to_bytes(inner).decode()
        except UnicodeDecodeError:
            return False
        if not fits_path(value):
            return False
        parameters[self.name] = value
        return True


def _segment(text: str) -> _Segment:
    before, brace, rest = text.partition("{")
    name, _, after = rest.partition("}")
    if brace and not name.isidentifier():
        raise ValueError(text)
    return _Segment(before.encode(), name, after.encode())
