"""
Tests for L{webhookrx.console.api.dispatch} and what reads and streams for it.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Response, Wire
from webhookrx.console.api.callers import (
    KNOWN_FOR,
    MOST_CALLS,
    MOST_OF_ADDRESS,
    MOST_OF_PERSON,
    STREAMS_OF_PERSON,
    Callers,
)
from webhookrx.console.api.dispatch import CONSOLE_LIMITS, MOST_STREAMS, ApiResource
from webhookrx.console.api.principal import Permission, Principal, RoleName
from webhookrx.console.api.problems import CONFLICT, ApiFinding, ApiProblem
from webhookrx.console.api.reading import Shown
from webhookrx.console.api.route import Answer, ApiCall, ApiRoute, EventStream
from webhookrx.console.api.table import RouteTable
from webhookrx.operations.admin_resource import NoMessages

TOKEN = "wrxp_" + "t" * 40
OTHERS = "wrxp_" + "o" * 30
SESSION = "s" * 43
CSRF = "csrf-of-the-session"


class Thing(msgspec.Struct, forbid_unknown_fields=True):
    """A body."""

    name: str
    more: Any = None


class Asked(msgspec.Struct):
    """A query."""

    limit: int = 10


class Keeper:
    """Knows one token and one session."""

    def __init__(self) -> None:
        self.role: RoleName = "editor"
        self.tap = False
        self.knows = True
        self.looks: list[Deferred[None]] | None = None

    async def identify(self, shown: Shown) -> Principal | None:
        """See L{webhookrx.console.api.callers.Doorkeeper}."""
        if self.looks is not None:
            look: Deferred[None] = Deferred()
            self.looks.append(look)
            await look
        if self.knows and shown.token is not None and shown.token.startswith(OTHERS):
            return Principal(shown.token, self.role, self.tap, token_id="t2")
        if self.knows and shown.token == TOKEN:
            return Principal("mara", self.role, self.tap, token_id="t1")
        if self.knows and shown.cookie == SESSION:
            return Principal("mara", self.role, self.tap, session_id="s1", csrf=CSRF)
        return None


def request(method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
    """Return a request to the console."""
    fields = {"host": "console.example", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body is not None:
        fields = {"content-type": "application/json", "content-length": str(len(body)), **fields}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} /api/v1{path} HTTP/1.1\r\n{lines}\r\n".encode() + (body or b"")


class DispatchCase(SynchronousTestCase):
    """A resource behind our own channel."""

    def setUp(self) -> None:
        """Make some routes."""
        self.calls: list[ApiCall] = []
        self.waits: list[Deferred[None]] = []
        self.streams: list[tuple[Any, Any]] = []
        self.ended: list[str] = []
        self.keeper = Keeper()
        routes = [
            ApiRoute("GET", "/open", Permission.ANYONE, self.handle, "Open."),
            ApiRoute("POST", "/open", Permission.ANYONE, self.handle, "Open.", request=Thing),
            ApiRoute("GET", "/things", Permission.VIEW, self.handle, "Things.", query=Asked),
            ApiRoute("POST", "/things", Permission.EDIT, self.handle, "Make.", request=Thing, takes_yaml=True),
            ApiRoute("PUT", "/things/{name}", Permission.EDIT, self.handle, "Put.", request=Thing, needs_if_match=True),
            ApiRoute("PUT", "/others/{name}", Permission.EDIT, self.handle, "Put.", request=Thing, creates=True),
            ApiRoute("DELETE", "/things/{name}", Permission.ADMINISTER, self.handle, "Delete."),
            ApiRoute("GET", "/wait", Permission.VIEW, self.wait, "Wait."),
            ApiRoute("GET", "/broken", Permission.VIEW, self.fail_here, "Break."),
            ApiRoute("GET", "/clash", Permission.VIEW, self.clash, "Clash."),
            ApiRoute("GET", "/events", Permission.TAP, self.events, "Stream."),
        ]
        self.clock = Clock()
        self.resource = ApiResource(
            RouteTable(routes),
            Callers(self.keeper, self.clock.seconds),
            "console",
            "https://console.example",
            self.clock,
        )
        self.wire = Wire(root=self.resource, limits=CONSOLE_LIMITS, consumer=NoMessages())

    async def handle(self, call: ApiCall) -> object:
        """Remember the call."""
        self.calls.append(call)
        return Answer({"did": "it"}, etag="g1")

    async def wait(self, call: ApiCall) -> object:
        """Wait."""
        waiting: Deferred[None] = Deferred()
        self.waits.append(waiting)
        await waiting
        return None

    async def fail_here(self, call: ApiCall) -> object:
        """Break."""
        raise RuntimeError("a secret text")

    async def clash(self, call: ApiCall) -> object:
        """Find a problem."""
        raise ApiProblem(CONFLICT, "So.", [ApiFinding("port-clash", "error", "Two.", ("a", 0))], members={"x": 1})

    async def events(self, call: ApiCall) -> object:
        """Stream."""

        def start(send: Any, end: Any) -> Any:
            self.streams.append((send, end))
            return self.ended.append

        return EventStream(start)

    def ask(self, data: bytes) -> Response:
        """Return the answer."""
        return self.wire.ask(data, secure=True)

    def status(self, *parts: Any, **headers: str) -> int:
        """Return the status of an answer, whose problem has the same."""
        response = self.ask(request(*parts, **headers))
        if response.status >= 400 and parts[0] != "HEAD":
            self.assertEqual("application/problem+json", response.headers["content-type"])
            self.assertEqual(response.status, json.loads(response.body)["status"])
        self.assertEqual("no-store", response.headers["cache-control"])
        self.assertEqual("nosniff", response.headers["x-content-type-options"])
        self.assertIn("default-src 'none'", response.headers["content-security-policy"])
        self.assertNotIn("access-control-allow-origin", response.headers)
        return response.status


class DispatchTests(DispatchCase):
    """Who gets to which handler with what."""

    BEARER = f"Bearer {TOKEN}"
    COOKIE = f"__Host-wrx={SESSION}"

    def test_call(self) -> None:
        """A call has all its parts, and its answer an ETag."""
        response = self.ask(
            request("PUT", "/things/a%20b", b'{"name": "x"}', authorization=self.BEARER, if_match='"g7"')
        )
        self.assertEqual((200, b'{"did":"it"}', '"g1"'), (response.status, response.body, response.headers["etag"]))
        (call,) = self.calls
        self.assertEqual(
            ("console", "mara", {"name": "a b"}, Thing("x"), "g7", "192.0.2.7"),
            (call.console, call.caller.name, call.path, call.body, call.if_match, call.address),
        )
        self.assertNotIn("x", repr(call).replace("mara", ""))

    def test_creates(self) -> None:
        """Where a call may create something it says which of both it is."""
        for status, condition in (
            (428, {}),
            (428, {"if_none_match": '"g1"'}),
            (200, {"if_none_match": "*"}),
            (200, {"if_match": '"g1"'}),
        ):
            found = self.status("PUT", "/others/a", b'{"name":"x"}', authorization=self.BEARER, **condition)
            self.assertEqual(status, found, condition)
        self.assertEqual([("*", None), (None, "g1")], [(call.if_none_match, call.if_match) for call in self.calls])

    def test_yaml(self) -> None:
        """YAML comes as its text, where a route takes it."""
        head = {"authorization": self.BEARER, "content_type": "application/yaml; charset=utf-8"}
        body = b"name: x"
        self.assertEqual(200, self.status("POST", "/things", body, **head, content_length=str(len(body))))
        self.assertEqual(("name: x", None), (self.calls[0].yaml, self.calls[0].body))

    def test_refused(self) -> None:
        """What can't be a call never comes to a handler."""
        token = {"authorization": self.BEARER}
        for expected, parts, headers in (
            (401, ("GET", "/things"), {}),
            (401, ("GET", "/things"), {"authorization": "Bearer wrxp_" + "x" * 40}),
            (401, ("GET", "/things"), {"authorization": "Basic YTpi"}),
            (401, ("GET", "/things"), {"authorization": "Basic YTpi", "cookie": self.COOKIE}),
            (401, ("GET", "/things"), {"cookie": f"{self.COOKIE}; {self.COOKIE}"}),
            (401, ("GET", f"/things?access_token={TOKEN}"), {}),
            (400, ("GET", f"/things?access_token={TOKEN}"), token),
            (400, ("GET", "/things?limit=1&limit=2"), token),
            (400, ("GET", "/things?limit=x"), token),
            (400, ("GET", "/things?limit=%ff"), token),
            (403, ("DELETE", "/things/a"), token),
            (403, ("GET", "/events"), token),
            (404, ("GET", "/nothing"), token),
            (404, ("GET", "/things%2fa"), token),
            (404, ("GET", "//things"), token),
            (404, ("GET", "/x/../things"), token),
            (405, ("OPTIONS", "/things"), {**token, "origin": "https://evil.example"}),
            (405, ("TRACE", "/things"), token),
            (421, ("GET", "/things"), {**token, "host": "evil.example"}),
            (421, ("GET", "/things"), {**token, "host": "console.example:444"}),
            (413, ("GET", "/things", b"{}"), token),
            (413, ("POST", "/things", b'{"name":"' + b"x" * 300_000 + b'"}'), token),
            (400, ("POST", "/things", b'{"name":"x","more":' + b"[" * 100_000 + b"}"), token),
            (400, ("POST", "/things", b"{"), token),
            (400, ("POST", "/things", b""), token),
            (422, ("POST", "/things", b'{"name":1}'), token),
            (422, ("POST", "/things", b'{"name":"x","<b>":1}'), token),
            (428, ("PUT", "/things/a", b'{"name":"x"}'), token),
            (400, ("PUT", "/things/a", b'{"name":"x"}'), {**token, "if_match": 'W/"g1"'}),
            (415, ("POST", "/things", b"name=x"), {**token, "content_type": "application/x-www-form-urlencoded"}),
            (415, ("POST", "/things", b"name=x"), {**token, "content_type": "text/plain"}),
            (415, ("POST", "/things", b"name=x"), {**token, "content_type": "multipart/form-data; boundary=x"}),
        ):  # fmt: skip
            with self.subTest(expected=expected, parts=parts[:2], headers=headers):
                self.assertEqual(expected, self.status(*parts, **headers))
        self.assertEqual([], self.calls)

    def test_cross_site(self) -> None:
        """An unsafe call of a session comes from our own pages, and shows the session's CSRF token."""
        ours = {"cookie": self.COOKIE, "x_csrf_token": CSRF, "origin": "https://console.example"}
        for expected, headers in (
            (200, ours),
            (200, {**ours, "sec_fetch_site": "same-origin"}),
            (403, {**ours, "x_csrf_token": "another"}),
            (403, {**ours, "x_csrf_token": ""}),
            (403, {name: value for name, value in ours.items() if name != "x_csrf_token"}),
            (403, {name: value for name, value in ours.items() if name != "origin"}),
            (403, {**ours, "origin": "null"}),
            (403, {**ours, "origin": "http://console.example"}),
            (403, {**ours, "origin": "https://console.example.evil.example"}),
            (403, {**ours, "sec_fetch_site": "same-site"}),
            (403, {**ours, "sec_fetch_site": "cross-site"}),
            (403, {**ours, "sec_fetch_site": "none"}),
        ):
            with self.subTest(headers=headers):
                self.assertEqual(expected, self.status("POST", "/things", b'{"name":"x"}', **headers))
        self.assertEqual(2, len(self.calls))
        # Without a session, a page of another site can't sign its visitor in.
        self.assertEqual(403, self.status("POST", "/open", b'{"name":"x"}', origin="https://evil.example"))
        self.assertEqual(200, self.status("POST", "/open", b'{"name":"x"}'))

    def test_head(self) -> None:
        """HEAD is GET without a body."""
        response = self.ask(request("HEAD", "/things", authorization=self.BEARER))
        self.assertEqual((200, "12", b""), (response.status, response.headers["content-length"], response.body))

    def test_problem(self) -> None:
        """A problem has its code, its findings and its members."""
        response = self.ask(request("GET", "/clash", authorization=self.BEARER))
        document = json.loads(response.body)
        self.assertEqual((409, "conflict", "So.", 1), (
            response.status, document["code"], document["detail"], document["x"]
        ))  # fmt: skip
        self.assertEqual(
            [{"code": "port-clash", "severity": "error", "sentence": "Two.", "path": ["a", 0]}], document["findings"]
        )

    def test_broken(self) -> None:
        """A handler that raises is a 500 that says nothing of it."""
        response = self.ask(request("GET", "/broken", authorization=self.BEARER))
        self.assertEqual(500, response.status)
        self.assertNotIn(b"secret", response.body)

    def test_many(self) -> None:
        """So many calls at a time, and no more; each that ends makes room."""
        senders = [self.wire.connect(secure=True) for _ in range(MOST_CALLS)]
        for number, sender in enumerate(senders):
            sender.send(request("GET", "/wait", authorization=f"Bearer {OTHERS}{number % 8}"))
        self.assertEqual(503, self.status("GET", "/things", authorization=self.BEARER))
        senders[0].transport.abortConnection()
        for waiting in self.waits:
            waiting.callback(None)
        self.assertEqual([204], senders[1].statuses())
        self.assertEqual(200, self.status("GET", "/things", authorization=self.BEARER))

    def test_many_of_one(self) -> None:
        """One person does not take the places of all."""
        senders = [self.wire.connect(secure=True) for _ in range(MOST_OF_PERSON)]
        for sender in senders:
            sender.send(request("GET", "/wait", authorization=self.BEARER))
        self.assertEqual(503, self.status("GET", "/things", authorization=self.BEARER))
        self.assertEqual(200, self.status("GET", "/things", authorization=f"Bearer {OTHERS}1"))
        senders[0].transport.abortConnection()
        for waiting in self.waits:
            waiting.callback(None)
        self.assertEqual(200, self.status("GET", "/things", authorization=self.BEARER))

    def test_strangers(self) -> None:
        """A flood of wrong tokens from one address stops nobody elsewhere, nor who has called from there before."""
        self.assertEqual(200, self.status("GET", "/things", authorization=self.BEARER))
        self.keeper.looks = looks = []
        for number in range(MOST_OF_ADDRESS):
            sender = self.wire.connect(secure=True)
            sender.send(request("GET", "/things", authorization=f"Bearer wrxp_{number:040}"))
        self.assertEqual(MOST_OF_ADDRESS, len(looks))
        self.assertEqual(503, self.status("GET", "/things", authorization="Bearer wrxp_" + "x" * 40))
        self.assertEqual(503, self.status("POST", "/open", b'{"name":"x"}'))
        self.keeper.looks = None
        self.assertEqual(200, self.status("GET", "/things", authorization=self.BEARER))
        elsewhere = request("GET", "/things", authorization=f"Bearer {OTHERS}1")
        self.assertEqual(200, self.wire.ask(elsewhere, peer="198.51.100.1", secure=True).status)
        self.clock.advance(KNOWN_FOR + 1)
        self.assertEqual(503, self.status("GET", "/things", authorization=self.BEARER))
        for look in looks:
            look.callback(None)
        self.assertEqual(401, self.status("GET", "/things", authorization="Bearer wrxp_" + "x" * 40))

    def test_length(self) -> None:
        """A body of unknown length is refused before any of it is read."""
        for path in ("/open", "/things"):
            head = request(
                "POST", path, transfer_encoding="chunked", content_type="application/json", authorization=self.BEARER
            )
            response = self.ask(head)
            self.assertEqual((411, "length_missing"), (response.status, json.loads(response.body)["code"]))


class StreamTests(DispatchCase):
    """Answers that go on."""

    def open(self, token: str = TOKEN) -> Any:
        """Open a stream."""
        self.keeper.tap = True
        sender = self.wire.connect(secure=True)
        sender.send(request("GET", "/events", authorization=f"Bearer {token}"))
        return sender

    def test_events(self) -> None:
        """Events come as they are sent, and pings between them."""
        sender = self.open()
        send, end = self.streams[0]
        self.assertTrue(send("message", {"text": "a\nb"}))
        self.clock.pump([1] * 15)
        end("done")
        written = sender.transport.written
        self.assertIn(b'event: message\ndata: {"text":"a\\nb"}\n\n', written)
        self.assertIn(b": ping\n\n", written)
        self.assertIn(b'event: end\ndata: {"reason":"done"}\n\n', written)
        self.assertEqual(["done"], self.ended)
        self.assertFalse(send("message", {}))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_rights(self) -> None:
        """It ends within two seconds once the right is taken away, or the caller is not known any more."""
        for attribute in ("tap", "knows"):
            sender = self.open()
            setattr(self.keeper, attribute, False)
            self.clock.pump([1, 1])
            self.assertIn(b'{"reason":"rights"}', sender.transport.written)
            self.keeper.knows = True
        self.assertEqual(["rights", "rights"], self.ended)

    def test_gone(self) -> None:
        """A caller that goes ends it."""
        self.open().transport.abortConnection()
        self.assertEqual(["gone"], self.ended)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_slow(self) -> None:
        """What a caller does not take is not kept."""
        sender = self.open()
        sender.transport.stop_taking()
        send, _ = self.streams[0]
        sent = sum(send("message", "x" * 1000) for _ in range(1000))
        self.assertLess(sent, 80)

    def test_many(self) -> None:
        """So many streams, and no more, until one ends."""
        senders = [self.open(f"{OTHERS}{number % 8}") for number in range(MOST_STREAMS)]
        self.assertEqual(503, self.status("GET", "/events", authorization=f"Bearer {TOKEN}"))
        self.resource.end_streams()
        self.assertEqual(["stopping"] * MOST_STREAMS, self.ended)
        self.assertEqual(MOST_STREAMS, len(senders))
        self.open()
        self.assertEqual(MOST_STREAMS + 1, len(self.streams))

    def test_many_of_one(self) -> None:
        """One person does not have all streams."""
        senders = [self.open() for _ in range(STREAMS_OF_PERSON)]
        self.assertEqual(503, self.status("GET", "/events", authorization=f"Bearer {TOKEN}"))
        self.assertEqual([200], self.open(f"{OTHERS}1").statuses())
        senders[0].transport.abortConnection()
        self.assertEqual([200], self.open().statuses())
