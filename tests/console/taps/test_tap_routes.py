"""
Tests for L{webhookrx.console.taps.tap_routes}, as callers reach them: a tap from its start to the end of its stream.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from tests.console.api.test_dispatch import TOKEN, Keeper, request
from tests.console.taps.tapping import TapCase, message
from tests.http.wire import Wire
from webhookrx.console.api.callers import Callers
from webhookrx.console.api.dispatch import CONSOLE_LIMITS, ApiResource
from webhookrx.console.api.table import RouteTable
from webhookrx.console.taps.tap_routes import ROUTES
from webhookrx.operations.admin_resource import NoMessages


class TapRoutesTests(TapCase):
    def setUp(self) -> None:
        super().setUp()
        self.keeper = Keeper()
        self.keeper.tap = True
        root = ApiResource(
            RouteTable(ROUTES),
            Callers(self.keeper, self.clock.seconds),
            self.console,
            "https://console.example",
            self.clock,
        )
        self.wire = Wire(root=root, limits=CONSOLE_LIMITS, consumer=NoMessages())
        self.api = root
        self.fra = self.reported("fra-1")

    def send(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Send a call, and return its sender."""
        sender = self.wire.connect(secure=True)
        sender.send(request(method, path, body, authorization=f"Bearer {TOKEN}"))
        return sender

    def begun(self) -> tuple[str, Any]:
        """Return the id of a tap that is being read, and its reader."""
        sender = self.send("POST", "/taps", b'{"for":"30s","rate":2.5}')
        tap = self.answer(self.fra)
        status, body = _answer(sender)
        self.assertEqual((status, msgspec.json.decode(body)["id"]), (b"201", tap))
        return tap, self.send("GET", f"/taps/{tap}/events")

    def status(self, method: str, path: str, body: bytes | None = None) -> int:
        """Return the status of an answer."""
        (status,) = self.send(method, path, body).statuses()
        return int(status)

    def test_events(self) -> None:
        """Rows, counts and the reason of the end are events, each one line of JSON."""
        tap, reader = self.begun()
        self.shows(self.fra, tap, 1, message(output={"text": "a\nb"}))
        self.pass_time(1)
        self.assertEqual(self.status("DELETE", f"/taps/{tap}"), 204)
        head, _, text = reader.transport.written.partition(b"\r\n\r\n")
        self.assertIn(b"text/event-stream", head.lower())
        events = [(each["event"], json.loads(each["data"])) for each in _events(text)]
        self.assertEqual([event for event, _ in events], ["row", "counts", "counts", "end"])
        self.assertEqual(events[0][1]["output"], {"text": "a\nb"})
        self.assertEqual(events[-1][1], {"reason": "ended"})

    def test_rights_taken(self) -> None:
        """Within two seconds after the permission is taken away nothing more is shown, and the router ends its tap."""
        tap, reader = self.begun()
        self.keeper.tap = False
        for number in range(1, 3):
            self.shows(self.fra, tap, number)
            self.pass_time(1)
        self.assertEqual(self.shows(self.fra, tap, 3, message()), 404)
        self.assertIn(b'{"reason":"rights"}', reader.transport.written)
        self.assertNotIn(b"event: row", reader.transport.written)

    def test_reader_gone(self) -> None:
        """A reader whose connection ends takes the tap along, at once."""
        tap, reader = self.begun()
        reader.transport.abortConnection()
        self.assertEqual(self.shows(self.fra, tap, 1, message()), 404)
        self.assertEqual(self.audit()[-1].details["why"], "gone")

    def test_looked_at_by_head(self) -> None:
        """HEAD neither reads a tap nor ends it."""
        sender = self.send("POST", "/taps", b"{}")
        tap = self.answer(self.fra)
        self.assertEqual(_answer(sender)[0], b"201")
        self.assertEqual(self.status("HEAD", f"/taps/{tap}/events"), 200)
        self.assertEqual(self.shows(self.fra, tap, 1, message()), 204)
        self.assertIn(b"event: row", self.send("GET", f"/taps/{tap}/events").transport.written)

    def test_stopping(self) -> None:
        """When the console ends its streams, the reader is told, and the tap has ended."""
        tap, reader = self.begun()
        self.api.end_streams()
        self.assertIn(b'{"reason":"stopping"}', reader.transport.written)
        self.assertEqual(self.shows(self.fra, tap, 1, message()), 404)

    def test_refused(self) -> None:
        """What is no order is refused with a problem, and nobody is asked."""
        for body, status in ((b'{"rate":0}', 422), (b'{"for":"2h"}', 422), (b'{"routers":"("}', 422), (b"{", 400)):
            self.assertEqual(self.status("POST", "/taps", body), status, body)
        for method, path in (("GET", "/taps/x/events"), ("DELETE", "/taps/x")):
            self.assertEqual(self.status(method, path), 404)
        self.assertEqual(self.commands(self.fra), ())


def _answer(sender: Any) -> tuple[bytes, bytes]:
    head, _, body = sender.transport.written.partition(b"\r\n\r\n")
    return head.split(b" ", 2)[1], body


def _events(chunked: bytes) -> list[dict[str, str]]:
    """Return the events of a stream in chunks (RFC 9112 section 7.1)."""
    text = b""
    while chunked:
        size, _, rest = chunked.partition(b"\r\n")
        text += rest[: int(size, 16)]
        chunked = rest[int(size, 16) + 2 :]
    events = [
        dict(line.split(": ", 1) for line in each.splitlines() if not line.startswith(":"))
        for each in text.decode().split("\n\n")
    ]
    return [each for each in events if each]
