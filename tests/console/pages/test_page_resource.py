"""
Tests for L{webhookrx.console.pages.page_resource}, with the pages of whoever is not signed in yet.
"""

from __future__ import annotations

import hashlib
import os
import re

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.web import http

from tests.console.pages.paging import PageCase
from tests.console.people.test_people import ORIGIN, PASSWORD
from webhookrx.console.pages.form import FORM_TYPE
from webhookrx.console.pages.page import Page, PageRoute
from webhookrx.console.pages.rendering import duration, number, query_string, size, when
from webhookrx.console.pages.routes import PAGES
from webhookrx.console.pages.sign_in import local_path
from webhookrx.console.pages.static_files import DIRECTORY
from webhookrx.console.people.accounts import offer_first_admin
from webhookrx.console.turns import SLICE
from webhookrx.intake.head import Head, Peer


class PageResourceTests(PageCase):
    """Who gets to which page."""

    def test_stranger(self) -> None:
        """Who is not signed in comes to the log-in, and from there to where they wanted to be."""
        response = self.get("/rules?query=a%20b")
        self.assertEqual((303, "/sign-in?next=%2Frules%3Fquery%3Da%2520b"), self.place(response))
        self.assertIn('value="/rules?query=a%20b"', self.get(response.headers["location"]).body.decode())
        self.add("mara")
        form = {"name": "mara", "password": PASSWORD, "next": "/rules?query=a%20b"}
        response = self.post("/sign-in", form)
        self.assertEqual((303, "/rules?query=a%20b"), self.place(response))
        self.assertRegex(
            response.headers["set-cookie"], r"^__Host-wrx=[\w-]{43}; Path=/; Secure; HttpOnly; SameSite=Lax"
        )
        cookie = response.headers["set-cookie"].partition(";")[0]
        self.assertEqual(200, self.get("/rules", cookie=cookie).status)

    def place(self, response: object) -> tuple[int, str]:
        """Return status and place of an answer."""
        return response.status, response.headers["location"]  # type: ignore[attr-defined]

    def test_other_sites(self) -> None:
        """A log-in leads to no other site."""
        for path in ("//evil.example", "/\\evil.example", "https://evil.example", "", "/a\nb", "javascript:x"):
            self.assertEqual("/", local_path(path), path)
        self.assertEqual("/rules/a%2Fb?x=1", local_path("/rules/a%2Fb?x=1"))
        response = self.get("//evil.example")
        self.assertEqual(404, response.status)

    def test_wrong_password(self) -> None:
        """A wrong password is told on the page, without a word which of both is wrong; markup stays text."""
        response = self.post("/sign-in", {"name": '"><script>x</script>', "password": "wrong password"})
        self.assertEqual(401, response.status)
        self.assertIn("Name or password is wrong.", self.shown(response))
        self.assertNotIn("send a token", self.shown(response))
        self.assertNotIn("<script>x", response.body.decode())
        self.assertNotIn("wrong password", response.body.decode())

    def test_sign_out(self) -> None:
        """Signing out ends the session."""
        mine = self.sign_in()
        self.assertEqual(200, self.get("/rules", cookie=mine["cookie"]).status)
        response = self.post("/sign-out", {}, **mine)
        self.assertEqual((303, "/sign-in?said=signed-out"), self.place(response))
        self.assertIn("You are signed out.", self.shown(self.get(response.headers["location"])))
        self.assertEqual(303, self.get("/rules", cookie=mine["cookie"]).status)

    def test_cross_site(self) -> None:
        """A form comes from a page of ours, and shows the session's CSRF token."""
        mine = self.sign_in()
        csrf = mine["x_csrf_token"]
        cookie = {"cookie": mine["cookie"]}
        for status, form, headers in (
            (403, {}, cookie),
            (403, {"csrf": "x" + csrf}, cookie),
            (403, {"csrf": [csrf, csrf]}, cookie),
            (403, {"csrf": csrf}, {**cookie, "origin": "https://evil.example"}),
            (403, {"csrf": csrf}, {**cookie, "origin": "null"}),
            (403, {"csrf": csrf}, {**cookie, "sec_fetch_site": "cross-site"}),
            (403, {}, {**cookie, "x-csrf-token": csrf, "origin": "https://evil.example"}),
            (303, {"csrf": csrf}, {**cookie, "sec_fetch_site": "same-origin"}),
            (303, {}, {**cookie, "x-csrf-token": csrf}),
        ):
            with self.subTest(form=form, headers=headers):
                response = self.post("/theme", {"theme": "dark", "back": "/", **form}, **headers)
                self.assertEqual(status, response.status)
        self.assertEqual(403, self.send("POST", "/sign-in", b"name=a&password=b").status)

    def test_theme(self) -> None:
        """The choice of colours is kept by the browser, and is one of two."""
        response = self.post("/theme", {"theme": "dark", "back": "/sign-in"})
        self.assertEqual((303, "/sign-in"), self.place(response))
        self.assertIn("wrx-theme=dark;", response.headers["set-cookie"])
        self.assertIn('data-theme="dark"', self.get("/sign-in", cookie="wrx-theme=dark").body.decode())
        self.assertNotIn("data-theme", self.get("/sign-in", cookie='wrx-theme="><b>').body.decode())
        self.assertIn("Max-Age=0", self.post("/theme", {"theme": "<b>"}).headers["set-cookie"])

    def test_first_admin(self) -> None:
        """The one-time link makes an admin, who signs in; a wrong secret is told."""
        secret = self.store.writer.write(offer_first_admin)
        self.assertEqual(200, self.get("/first-admin").status)
        form = {"secret": "wrong", "name": "mara", "password": PASSWORD}
        response = self.post("/first-admin", form)
        self.assertEqual(403, response.status)
        self.assertIn("The link is wrong", self.shown(response))
        response = self.post("/first-admin", {**form, "secret": secret})
        self.assertEqual((303, "/sign-in?said=first-admin"), self.place(response))
        self.assertEqual(303, self.post("/sign-in", form).status)

    def test_refused(self) -> None:
        """What no page takes is refused."""
        mine = self.sign_in()
        for status, method, path, body, headers in (
            (404, "GET", "/nothing", None, mine),
            (404, "GET", "/rules/../settings", None, mine),
            (405, "DELETE", "/rules", None, mine),
            (405, "POST", "/", b"", mine),
            (413, "GET", "/", b"x", mine),
            (413, "POST", "/sign-in", b"x" * 5000, mine),
            (415, "POST", "/theme", b"{}", {**mine, "content-type": "application/json"}),
            (421, "GET", "/", None, {**mine, "host": "evil.example"}),
            (400, "POST", "/theme", b"theme=%ff", mine),
            (404, "GET", "/static/0000000000000000/console.css", None, {}),
            (404, "GET", "/static/../page.py", None, {}),
        ):  # fmt: skip
            with self.subTest(method=method, path=path):
                self.assertEqual(status, self.send(method, path, body, **headers).status)

    def test_rights(self) -> None:
        """Every page asks for its right: who is not signed in and who lacks the right see nothing of it."""
        viewer = self.sign_in("vera", "viewer", False)
        for route in PAGES:
            path = re.sub(r"\{\w+\}", "x", route.path)
            with self.subTest(route=f"{route.method} {path}"):
                self.check_right(route, path, viewer)

    def check_right(self, route: PageRoute, path: str, viewer: dict[str, str]) -> None:
        """Check it for one page."""
        needs = route.permission.value
        if needs == "anyone":
            return
        stranger = self.get(path) if route.method == "GET" else self.post(path, {})
        self.assertEqual(303 if route.method == "GET" else 401, stranger.status)
        if needs in ("editor", "admin", "tap"):
            answer = self.get(path, **viewer) if route.method == "GET" else self.post(path, {}, **viewer)
            self.assertEqual(403, answer.status)
            self.assertIn(f"It needs the right: {needs}.", self.shown(answer))

    def test_token(self) -> None:
        """API tokens are for the API: a page is for whoever has signed in."""
        self.add("mara", "admin", True)
        self.assertEqual(303, self.get("/", authorization="Bearer wrxp_" + "t" * 40).status)

    def test_body_of_a_stranger(self) -> None:
        """Who shows no session is refused before the body; one that is not known has no form read."""
        body = b"yaml=" + b"%0A" * 10_000
        head = f"POST /rules:try HTTP/1.1\r\nhost: console.example\r\norigin: {ORIGIN}\r\ncontent-type: {FORM_TYPE}\r\n"
        response = self.wire.ask(f"{head}content-length: {len(body)}\r\n\r\n".encode(), secure=True)
        self.assertEqual(401, response.status)
        response = self.send("POST", "/rules:try", body, origin=ORIGIN, cookie=f"__Host-wrx={'x' * 43}")
        self.assertEqual((401, []), (response.status, self.apart))
        self.assertEqual(403, self.send("POST", "/rules:try", body, **{**self.sign_in(), "x_csrf_token": "x"}).status)
        self.assertEqual(1, len(self.apart))

    def test_forms_are_read_once(self) -> None:
        """C{twisted.web} reads no form of a page: it would at once, whoever has sent it, and however many fields."""
        read: list[object] = []
        self.patch(http, "parse_qs", read.append)
        self.assertEqual(303, self.post("/theme", {"theme": "dark", "back": "/"}).status)
        self.assertEqual([], read)

    def test_large_page(self) -> None:
        """Others go on while a large page is made."""
        clock = RunningClock()
        self.console.reactor = clock
        call = self.root._pages._nobody(Head(b"GET", b"/", None, [], Peer("127.0.0.1", None, True)))
        renderer = self.root._pages._renderer
        page = Page("_try_samples.html", {"samples": [f"<sample {number}>" for number in range(300)]})
        made = Deferred.fromCoroutine(renderer.html_in_turns(page, call, ""))
        self.assertNoResult(made)
        while clock.getDelayedCalls():
            clock.advance(0)
        self.assertEqual(renderer.html(page, call, ""), self.successResultOf(made))

    def test_templates(self) -> None:
        """All can be read when the console starts."""
        self.root._pages.load()

    def test_script(self) -> None:
        """A script that asks for a part of a page is sent to the log-in as a whole."""
        response = self.get("/rules", hx_request="true")
        self.assertEqual((200, "/sign-in?next=%2Frules"), (response.status, response.headers["hx-redirect"]))

    def test_failure(self) -> None:
        """A page that fails says so, and the log says where, without what was sent."""
        mine = self.sign_in()

        async def fail(call: object) -> None:
            raise RuntimeError("secret")

        pages = self.root._pages._pages
        self.patch(type(pages), "match", lambda *_: _matched(fail))
        response = self.get("/rules", **mine)
        self.assertEqual(500, response.status)
        self.assertNotIn("secret", response.body.decode())

    def test_files(self) -> None:
        """Files are kept for good by a path with their hash, and come packed; the one of others is as it was."""
        page = self.get("/sign-in").body.decode()
        paths = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
        self.assertGreaterEqual(len(paths), 4)
        for path in paths:
            plain, packed = self.get(path), self.get(path, accept_encoding="br, gzip")
            self.assertEqual((200, 200), (plain.status, packed.status), path)
            self.assertIn("immutable", plain.headers["cache-control"])
            self.assertEqual("gzip", packed.headers["content-encoding"])
            self.assertLess(len(packed.body), len(plain.body) + 40)
        with open(os.path.join(DIRECTORY, "README.md"), encoding="utf-8") as file:
            vendored = re.findall(r"`([\w.-]+\.js)`.*`([0-9a-f]{64})`", file.read())
        self.assertEqual(["htmx-4.0.1.min.js"], [name for name, _ in vendored])
        for name, digest in vendored:
            with open(os.path.join(DIRECTORY, name), "rb") as content:
                self.assertEqual(digest, hashlib.sha256(content.read()).hexdigest())


class RunningClock(Clock):
    """A clock that goes on by itself whenever it is looked at."""

    def seconds(self) -> float:
        """Return the time."""
        self.rightNow += SLICE / 2
        return self.rightNow


def _matched(handler: object) -> object:
    from webhookrx.console.api.principal import Permission
    from webhookrx.console.api.table import Matched

    return Matched(PageRoute("GET", "/rules", Permission.VIEW, handler), {})  # type: ignore[arg-type]


class WordsTests(PageCase):
    """Numbers, times and sizes in words."""

    def test_words(self) -> None:
        """They have units."""
        self.assertEqual(
            ["0 s", "59 s", "1 min", "1 h 1 min", "2 d 3 h", "250 ms", "–"],
            [duration(each) for each in (0, 59, 60, 3660, 183_600, 0.25, None)],
        )
        self.assertEqual(
            ["0", "1,234,567", "0.125", "1,235", "–"], [number(each) for each in (0, 1_234_567, 0.125, 1234.6, None)]
        )
        self.assertEqual(["0 B", "1.5 KiB", "2 GiB"], [size(each) for each in (0, 1536, 2**31)])
        self.assertEqual(("?a=1", ""), (query_string(a=1, b=""), query_string(a=None)))
        self.assertEqual(
            '<time datetime="2027-01-15T08:00:00Z" title="2027-01-15 08:00:00 UTC">2027-01-15 08:00 UTC</time>',
            when(1_800_000_000),
        )
        self.assertIn("&lt;b&gt;", when(0, "<b>"))
