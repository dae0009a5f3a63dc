"""
A console with its pages behind our own channel, all in memory, for tests of pages.
"""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from twisted.internet.defer import maybeDeferred

from tests.console.people.test_people import ORIGIN, PeopleCase
from tests.http.wire import Response, Wire
from webhookrx.console.api.callers import Callers
from webhookrx.console.api.dispatch import CONSOLE_LIMITS, ApiResource
from webhookrx.console.api.table import RouteTable
from webhookrx.console.pages import one_by_one
from webhookrx.console.pages.page_resource import PageResource
from webhookrx.console.pages.routes import PAGES
from webhookrx.console.routes import CONSOLE_ROUTES
from webhookrx.console.web_part import ConsoleResource
from webhookrx.operations.admin_resource import NoMessages

_EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_DRAWN = {"svg", "path", "polyline", "polygon", "line", "rect", "circle", "text", "g", "title"}


class PageCase(PeopleCase):
    """A console with people and pages; nobody is signed in."""

    def setUp(self) -> None:
        """Serve API and pages."""
        super().setUp()
        self.apart: list[Any] = []
        self.patch(one_by_one, "deferToThread", self.in_thread)
        callers = Callers(self.console.people, self.clock.seconds)
        api = RouteTable(CONSOLE_ROUTES)
        self.root = ConsoleResource(
            ApiResource(api, callers, self.console, ORIGIN, self.clock),
            PageResource(RouteTable(PAGES, prefix=""), api, callers, self.console, ORIGIN),
        )
        self.wire = Wire(root=self.root, limits=CONSOLE_LIMITS, consumer=NoMessages())

    def in_thread(self, work: Any, *arguments: Any) -> Any:
        """Do at once what is done apart from the reactor."""
        self.apart.append(work)
        return maybeDeferred(work, *arguments)

    def get(self, path: str, **headers: str) -> Response:
        """Return the answer to a browser that asks for a page; of HTML it is checked that it is well formed."""
        return self.send("GET", path, None, **headers)

    def post(self, path: str, form: dict[str, Any], **headers: str) -> Response:
        """
        Return the answer to a form.

        @param form: a list is a field that is repeated.
        @param headers: those of L{sign_in}; the CSRF token among them is sent as a field.
        """
        fields = dict(form)
        csrf = headers.pop("x_csrf_token", None)
        if csrf is not None:
            fields.setdefault("csrf", csrf)
        return self.send("POST", path, urlencode(fields, doseq=True).encode(), **{"origin": ORIGIN, **headers})

    def send(self, method: str, path: str, body: bytes | None, **headers: str) -> Response:
        """Return the answer to a request."""
        fields = {"host": "console.example", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            fields.setdefault("content-type", "application/x-www-form-urlencoded")
            fields.setdefault("content-length", str(len(body)))
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        response = self.wire.ask(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + (body or b""), secure=True)
        if response.headers.get("content-type", "").startswith("text/html"):
            check_html(response.body.decode())
            self.assertIn("default-src 'none'", response.headers["content-security-policy"])
            self.assertEqual("no-store", response.headers["cache-control"])
            self.assertEqual("same-origin", response.headers["cross-origin-opener-policy"])
        return response

    def sign_in(self, name: str = "mara", role: Any = "admin", tap: bool = True) -> dict[str, str]:
        """Add a person who signs in; return what their browser sends with each request."""
        self.add(name, role, tap)
        return self.session(name)

    def shown(self, response: Response) -> str:
        """Return the text of a page without its markup."""
        return text_of(response.body.decode())


class _Checker(HTMLParser):
    """Checks that elements are closed, ids are unique, and no attribute has a script or a style of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        if tag not in _EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            # Our policy forbids them.
            assert not name.startswith("on") and name != "style", f"<{tag} {name}>"
            if name == "id":
                assert value and value not in self.ids, f"id {value!r} is empty or there twice"
                self.ids.append(value)
        assert tag != "style", "a style of its own"
        assert tag != "script" or any(name == "src" for name, _ in attrs), "a script of its own"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See L{handle_starttag}; only drawings have such tags."""
        assert tag in _EMPTY | _DRAWN, f"<{tag}/>"

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes the newest one."""
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open[-3:]}"
        self.open.pop()


def check_html(text: str) -> None:
    """Check that HTML is well formed, and keeps to our policy."""
    checker = _Checker()
    checker.feed(text)
    checker.close()
    assert not checker.open, checker.open


def text_of(text: str) -> str:
    """Return HTML without its markup."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text))).strip()
