"""
The subject routers: the routers of a console, and how each does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TextIO
from urllib.parse import quote

import msgspec

from webhookrx.commands.console_client import (
    BAD_ARGUMENTS,
    ConsoleClient,
    ConsoleError,
    add_console_arguments,
    console_of,
)
from webhookrx.commands.terminal import DONE, FAILED, Run, Verbs, print_json, print_table, safe
from webhookrx.errors import ConfigError
from webhookrx.quantities import counted

_CONSOLE = "--console https://console.example.net --token-file token"


class ListedRouter(msgspec.Struct, frozen=True):
    """A router as the API shows it; what a newer console adds is left out."""

    guid: str
    name: str
    state: str
    labels: dict[str, str]
    form: str
    version: str
    hostname: str
    ip: tuple[str, ...]
    os: str
    arch: str
    seen_at: float
    away: bool
    duplicate: bool
    revision: int
    status: str
    error: str
    gate_reasons: tuple[str, ...]
    gate_paths: tuple[str, ...]
    health: str
    connectors: int
    certificate_end: float

    @property
    def short_status(self) -> str:
        """How it does, in a word or two: what needs a person comes first."""
        if self.state != "approved":
            return self.state
        if self.duplicate:
            return "duplicate"
        return "away" if self.away else self.status.lower()

    @property
    def is_well(self) -> bool:
        """Whether nobody has to look at it."""
        well = self.status in ("APPLIED", "APPLYING", "NONE") and not self.gate_reasons and not self.gate_paths
        return self.state == "disabled" or (self.state == "approved" and well and not self.away and not self.duplicate)


class ListedRouters(msgspec.Struct, frozen=True):
    """
    Routers by name.

    @ivar problem: why nothing is handed out to them; empty when all is well.
    """

    routers: tuple[ListedRouter, ...]
    problem: str = ""


class ListedConnector(msgspec.Struct, frozen=True):
    """A connector of a router, as it has told last."""

    name: str
    rule: str
    port: int
    state: str
    reason: str = ""


class ListedConnectors(msgspec.Struct, frozen=True):
    """All of them."""

    connectors: tuple[ListedConnector, ...]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the subject to its parser."""
    parser.description = "Show the routers of a console, and how each does."
    verbs = Verbs(parser)
    listing = verbs.add(
        "list",
        _asking(_list),
        "list the routers of a console; the status is 1 if one of them needs a person",
        f"webhookrx routers list 'label.site = fra' {_CONSOLE}",
    )
    listing.add_argument(
        "query",
        metavar="QUERY",
        nargs="?",
        default="",
        help="which: a query like the selector of a rule (default: all)",
    )
    show = verbs.add(
        "show",
        _asking(_show),
        "show a router with its connectors; the status is 1 if it needs a person",
        f"webhookrx routers show fra-1 {_CONSOLE}",
    )
    show.add_argument("name", metavar="NAME", help="its name; of one that waits for consent, its GUID")
    for each in (listing, show):
        add_console_arguments(each)
        each.add_argument("--json", action="store_true", help="print JSON, as the API of the console has it")


def _asking(run: Run) -> Run:
    def ask(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
        try:
            return run(asked, out, err)
        except ConfigError as error:
            print(f"webhookrx: {safe(str(error))}", file=err)
            return BAD_ARGUMENTS
        except ConsoleError as error:
            print(f"webhookrx: {safe(str(error))}", file=err)
            return error.status

    return ask


def _list(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    answer = _console(asked, err).request("GET", "/routers", {"query": asked.query} if asked.query else {})
    listed: ListedRouters = answer.decoded(ListedRouters)
    if asked.json:
        print_json(out, msgspec.json.decode(answer.body), indent=2)
    else:
        now = time.time()
        rows = [
            (
                each.name,
                each.short_status,
                str(each.revision),
                "closed" if each.gate_reasons or each.gate_paths else "open",
                str(each.connectors),
                _seen(each, now),
                each.version,
                _labels(each),
            )
            for each in listed.routers
        ]
        heads = ("router", "status", "revision", "gate", "connectors", "seen", "version", "labels")
        print_table(out, [heads, *rows], "")
        print(counted(len(rows), "router"), file=out)
        for each in listed.routers:
            if each.state == "pending":
                # Others may have the name that it asks for: only its GUID tells it apart.
                print(f"{safe(each.name)} waits for consent as {each.guid}.", file=out)
    if listed.problem:
        print(f"webhookrx: {safe(listed.problem)}", file=err)
    return DONE if not listed.problem and all(each.is_well for each in listed.routers) else FAILED


def _show(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    console = _console(asked, err)
    path = f"/routers/{quote(asked.name, safe='')}"
    answer = console.request("GET", path)
    router: ListedRouter = answer.decoded(ListedRouter)
    told = console.request("GET", f"{path}/connectors")
    connectors: ListedConnectors = told.decoded(ListedConnectors)
    if asked.json:
        facts = msgspec.json.decode(answer.body) | {"all_connectors": msgspec.json.decode(told.body)["connectors"]}
        print_json(out, facts, indent=2)
    else:
        print_table(out, list(_facts(router, time.time())), "")
        if connectors.connectors:
            rows = [(each.name, each.rule, str(each.port), each.state, each.reason) for each in connectors.connectors]
            print(file=out)
            print_table(out, [("connector", "rule", "port", "state", ""), *rows], "")
    return DONE if router.is_well else FAILED


def _facts(router: ListedRouter, now: float) -> Iterator[tuple[str, str]]:
    yield "router", router.name
    yield "guid", router.guid
    yield "status", router.short_status
    if router.error:
        yield "error", router.error
    yield "revision", str(router.revision)
    for reason in router.gate_reasons:
        yield "gate closed", reason
    for path in router.gate_paths:
        yield "file", path
    yield "health", router.health or "unknown"
    yield "seen", _seen(router, now)
    yield "form", router.form
    yield "version", router.version
    yield "machine", " ".join(filter(None, (router.hostname, router.os, router.arch, *router.ip)))
    yield "labels", _labels(router)
    if router.certificate_end:
        days = (router.certificate_end - now) / 86_400
        yield "certificate", f"ends in {days:.0f} days" if days > 0 else "has ended"


def _labels(router: ListedRouter) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(router.labels.items()))


def _seen(router: ListedRouter, now: float) -> str:
    if not router.seen_at:
        return "never"
    seconds = max(0, int(now - router.seen_at))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def _console(asked: argparse.Namespace, err: TextIO) -> ConsoleClient:
    console, warning = console_of(asked)
    if warning:
        print(f"webhookrx: {safe(warning)}", file=err)
    return console
