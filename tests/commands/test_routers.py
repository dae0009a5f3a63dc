"""C{routers list} and C{routers show}, on answers of a console without a wire."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import msgspec

from tests.commands.running import CommandCase, Ran, run_command
from webhookrx.commands.console_client import ConsoleClient
from webhookrx.commands.routers import ListedConnector, ListedConnectors, ListedRouter, ListedRouters
from webhookrx.console.routers.routes import ShownConnectors
from webhookrx.console.routers.shown import ShownRouter, ShownRouters

WELL = ListedRouter(
    guid="1-2",
    name="fra-1",
    state="approved",
    labels={"site": "fra", "a": "b"},
    form="router",
    version="26.11.10",
    hostname="fra-1",
    ip=("10.0.0.1",),
    os="linux",
    arch="x86_64",
    seen_at=1.0,
    away=False,
    duplicate=False,
    revision=7,
    status="APPLIED",
    error="",
    gate_reasons=(),
    gate_paths=(),
    health="ready",
    connectors=1,
    certificate_end=1.0,
)


class RoutersTests(CommandCase):
    """Both verbs."""

    def setUp(self) -> None:
        """Answer every request from a table."""
        super().setUp()
        self.write("token", "wrxp_secret\n")
        os.chmod("token", 0o600)
        self.answers: dict[str, tuple[int, Any]] = {}

        def exchange(_: ConsoleClient, method: str, target: str, *rest: Any) -> Any:
            status, value = self.answers[f"{method} {target.removeprefix('/api/v1')}"]
            return status, "", msgspec.json.encode(value)

        self.patch(ConsoleClient, "_exchange", exchange)
        self.patch(time, "time", lambda: 4.0)

    def routers(self, *arguments: str) -> Ran:
        """Run a verb."""
        return run_command("routers", *arguments, "--console", "https://console.example.net", "--token-file", "token")

    def test_list(self) -> None:
        """It shows each router on a line, and its status says whether one needs a person."""
        self.answers["GET /routers"] = 200, ListedRouters((WELL,))
        self.assertEqual(
            (
                0,
                (
                    "router  status   revision  gate  connectors  seen     version   labels\n"
                    "fra-1   applied  7         open  1           3 s ago  26.11.10  a=b site=fra\n"
                    "1 router\n"
                ),
                "",
            ),
            self.routers("list"),
        )
        replace = msgspec.structs.replace
        for other, word in (
            (replace(WELL, status="FAILED"), "failed"),
            (replace(WELL, away=True), "away"),
            (replace(WELL, duplicate=True), "duplicate"),
            (replace(WELL, state="pending"), "pending"),
            (replace(WELL, gate_paths=("/k",)), "closed"),
        ):
            self.answers["GET /routers"] = 200, ListedRouters((WELL, other))
            status, out, _ = self.routers("list")
            self.assertEqual(1, status, word)
            self.assertIn(word, out.splitlines()[2])
        self.answers["GET /routers"] = 200, ListedRouters((replace(WELL, state="pending"),))
        self.assertEqual(f"fra-1 waits for consent as {WELL.guid}.", self.routers("list").out.splitlines()[-1])
        self.answers["GET /routers"] = 200, ListedRouters((replace(WELL, state="disabled", away=True),))
        self.assertEqual(0, self.routers("list").status)

    def test_query(self) -> None:
        """A query goes to the console as it is; one that is wrong is a finding."""
        problem = {"code": "invalid", "detail": "No = here.", "status": 422, "title": "Wrong."}
        self.answers["GET /routers?query=label.a+%3D"] = 422, problem
        self.assertEqual((1, "", "webhookrx: The console says: No = here.\n"), self.routers("list", "label.a ="))

    def test_held_back(self) -> None:
        """A console that hands out nothing says why, and the status is 1."""
        self.answers["GET /routers"] = 200, ListedRouters((), "It is old.")
        status, _, err = self.routers("list")
        self.assertEqual((1, "webhookrx: It is old.\n"), (status, err))

    def test_show(self) -> None:
        """It shows what is known of one router, with its connectors and the files that it waits for."""
        connector = ListedConnector("fra-1-a-a", "a", 80, "closed", "Its port is not open.")
        waiting = msgspec.structs.replace(WELL, status="BLOCKED", error="k is missing", gate_paths=("/k",), seen_at=0.0)
        self.answers["GET /routers/fra%2F1"] = 200, waiting
        self.answers["GET /routers/fra%2F1/connectors"] = 200, ListedConnectors((connector,))
        status, out, _ = self.routers("show", "fra/1")
        self.assertEqual(1, status)
        for text in ("blocked", "k is missing", "/k", "never", "has ended", "fra-1-a-a", "Its port is not open."):
            self.assertIn(text, out)
        _, out, _ = self.routers("show", "fra/1", "--json")
        self.assertEqual("fra-1-a-a", json.loads(out)["all_connectors"][0]["name"])

    def test_not_there(self) -> None:
        """A router that the console does not have is a wrong argument."""
        problem = {"code": "not_found", "title": "There is no such thing.", "status": 404}
        self.answers["GET /routers/x"] = 404, problem
        self.assertEqual(2, self.routers("show", "x").status)

    def test_a_newer_console(self) -> None:
        """It takes what the routes of the console give, and more than that."""
        for ours, theirs in (
            (ListedRouter, ShownRouter),
            (ListedRouters, ShownRouters),
            (ListedConnectors, ShownConnectors),
        ):
            self.assertLessEqual(set(ours.__struct_fields__), set(theirs.__struct_fields__))
        self.answers["GET /routers"] = 200, {"routers": [msgspec.to_builtins(WELL) | {"new": 1}], "more": 2}
        self.assertEqual(0, self.routers("list").status)

    def test_nothing_is_obeyed(self) -> None:
        """What a router calls itself does nothing to a terminal."""
        evil = msgspec.structs.replace(WELL, version="\x1b[2J", labels={"a": "\x9b2J"})
        self.answers["GET /routers"] = 200, ListedRouters((evil,))
        out = self.routers("list").out
        self.assertNotIn("\x1b", out)
        self.assertNotIn("\x9b", out)
