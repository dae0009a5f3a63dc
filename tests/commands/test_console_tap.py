"""C{tap --console}, on answers of a console without a wire."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import msgspec

from tests.commands.running import CommandCase, Ran, run_command
from webhookrx.commands.console_client import ConsoleClient
from webhookrx.commands.console_tap import BegunTap, LeftOutRouter
from webhookrx.console.taps.tap_order import LeftOut, StartedTap, TapOrder

TOKEN = "wrxp_secret"
COUNTS = {"seen": 1200, "matched": 3, "shown": 1, "not_looked_at": 0, "dropped": 0}
ROW = {"row": "message", "router": "fra-1", "at": 1_000_000_000, "id": "m1", "source": "hooks", "output": {"a": 1}}
REFUSED = {
    "row": "refused",
    "router": "ber-1",
    "at": 2_000_000_000,
    "source": "",
    "reason": "not_found",
    "status": 404,
    "method": "GET",
    "path": "/\x1b[2J",
    "peer": "192.0.2.7",
    "detail": "No source.",
}


def counts(**ended: str) -> tuple[str, Any]:
    """Return the counts of two routers, and why the tap has ended at some."""
    routers = [{"router": each, "ended": ended.get(each.replace("-", "_"), "")} for each in ("fra-1", "ber-1")]
    return "counts", {**COUNTS, "routers": routers}


class ConsoleTapTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("token", TOKEN + "\n")
        os.chmod("token", 0o600)
        self.asked: list[tuple[str, str, Any]] = []
        started = StartedTap("t1", 30, ("ber-1", "fra-1"), (LeftOut("ham-1", "away", "It is away."),), 3)
        self.answer: tuple[int, Any] = 201, started
        self.events: bytes = b""

        @contextmanager
        def connected(client: ConsoleClient, wait: float) -> Iterator[Any]:
            yield SimpleNamespace(request=request, getresponse=lambda: answers.pop(0))

        def request(method: str, target: str, body: bytes | None = None, headers: Any = None) -> None:
            self.assertEqual(headers["Authorization"], f"Bearer {TOKEN}")
            self.asked.append((method, target.removeprefix("/api/v1"), body and json.loads(body)))
            if method == "POST":
                status, value = self.answer
                answers.append(_response(status, msgspec.json.encode(value)))
            else:
                answers.append(_response(200, self.events))

        answers: list[Any] = []
        self.patch(ConsoleClient, "_connected", connected)

    def show(self, *events: tuple[str, Any]) -> None:
        """Have the console show these events, among pings."""
        stream = [b": begin\n\n"]
        for name, data in events:
            stream += [b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data)), b": ping\n\n"]
        self.events = b"".join(stream)

    def tap(self, *arguments: str) -> Ran:
        """Run the command."""
        console = ("--console", "https://console.example.net", "--token-file", "token")
        ran = run_command("tap", *console, *arguments)
        self.assertNotIn(TOKEN, ran.out + ran.err)
        return ran

    def test_shown(self) -> None:
        """Rows are on standard output with their routers, and all about the tap on standard error."""
        self.show(("row", ROW), ("row", REFUSED), counts(), counts(ber_1="It stops."), ("end", {"reason": "over"}))
        status, out, err = self.tap()
        self.assertEqual(status, 0)
        self.assertEqual(
            out.splitlines(),
            [
                "00:00:01.000Z fra-1 hooks m1",
                '  output  {"a": 1}',
                "00:00:02.000Z ber-1 refused not_found (404) GET /\\x1b[2J from 192.0.2.7: No source.",
            ],
        )
        told = "seen 1,200 · matched 3 · shown 1 · not looked at 0 · dropped 0"
        self.assertEqual(
            err.splitlines(),
            [
                "ham-1 is left out: It is away.",
                "2 more are left out.",
                "2 routers: tapping ber-1, fra-1 for 30 s",
                told,
                told,
                "The tap has ended at ber-1: It stops.",
                "The tap has ended: Its time is over.",
            ],
        )

    def test_asked(self) -> None:
        """The console is asked for what a receiver would be, and for routers, as it reads that."""
        self.show(("end", {"reason": "ended"}))
        given = (
            "--routers",
            "os = linux",
            "--connector",
            "connector.port = 1",
            "--point",
            "input",
            "--filter",
            "a = b",
        )
        self.tap(*given, "--rate", "2.5", "--for", "90s", "--source", "x")
        (method, path, body), (_, events, _) = self.asked
        self.assertEqual((method, path, events), ("POST", "/taps", "/taps/t1/events"))
        order = msgspec.convert(body, TapOrder)
        self.assertEqual((order.routers, order.connectors, order.source), ("os = linux", "connector.port = 1", "x"))
        self.assertEqual((order.point, order.filter, order.rate, order.lasts), ("input", "a = b", 2.5, 90))

    def test_json(self) -> None:
        """Each row is a line of JSON, as that of a receiver."""
        self.show(("row", ROW), counts(), ("end", {"reason": "rights"}))
        rows = [json.loads(line) for line in self.tap("--json").out.splitlines()]
        self.assertEqual([row["row"] for row in rows], ["start", "message", "counts", "end"])
        self.assertEqual(rows[1], ROW)

    def test_refused(self) -> None:
        """When the tap can't be started, the status is 1, and standard error says why, router by router."""
        left_out = [{"router": "fra-1", "code": "reload_gate_closed", "reason": "Blocked.", "paths": ["/k", "/c"]}]
        problem = {"code": "reload_gate_closed", "status": 409, "title": "Files are missing.", "left_out": left_out}
        self.answer = 409, problem
        said = "webhookrx: The console says: Files are missing.\nfra-1 is left out: Blocked. Missing: /k, /c\n"
        self.assertEqual(self.tap(), (1, "", said))
        for status, code, expected in ((422, "invalid", 1), (429, "too_many", 1), (503, "busy", 1), (403, "no", 2)):
            self.answer = status, {"code": code, "status": status, "title": "No.", "left_out": "?"}
            self.assertEqual(self.tap().status, expected, code)
        self.answer = 500, {}
        self.assertEqual(self.tap().status, 4)

    def test_gone(self) -> None:
        """A console that goes before the end of the tap, or does not speak as one, is no console: the status is 4."""
        self.show(("row", ROW))
        status, _, err = self.tap()
        self.assertEqual(
            (status, err.splitlines()[-1]), (4, "webhookrx: The console has gone before the end of the tap.")
        )
        for data in (b"{", b"[" * 100_000):
            self.events = b"event: row\ndata: %s\n\n" % data
            self.assertEqual(self.tap().status, 4)

    def test_long_numbers(self) -> None:
        """A message with an integer of which none is made is shown like any other."""
        self.show(("row", {**ROW, "output": {"a": msgspec.Raw(b"7" * 5_000)}}), ("end", {"reason": "over"}))
        status, out, _ = self.tap()
        self.assertEqual(status, 0)
        self.assertIn("7" * 100, out)

    def test_arguments(self) -> None:
        """Options of the one are refused with the other, as they would have no effect."""
        for arguments in (
            ("--token-file", "token"),
            ("--ca", "token"),
            ("--routers", "os = linux"),
            ("--console", "https://console.example.net"),
            ("--console", "https://console.example.net", "--token-file", "token", "--control", "x.sock"),
            ("--console", "http://console.example.net", "--token-file", "token"),
        ):
            with self.subTest(arguments=arguments):
                self.assertEqual(run_command("tap", *arguments).status, 2)
        self.assertEqual(self.asked, [])

    def test_same_types(self) -> None:
        """What a console answers is what the command reads."""
        started = StartedTap("t1", 30, ("fra-1",), (LeftOut("ham-1", "away", "It is away.", ("/k",)),), 1)
        begun = msgspec.json.decode(msgspec.json.encode(started), type=BegunTap)
        self.assertEqual((begun.id, begun.seconds, begun.routers, begun.left_out_in_all), ("t1", 30, ["fra-1"], 1))
        self.assertEqual(begun.left_out, [LeftOutRouter("ham-1", "away", "It is away.", ("/k",))])


def _response(status: int, body: bytes) -> Any:
    file = BytesIO(body)
    return SimpleNamespace(status=status, headers={}, read=file.read, readline=file.readline)
