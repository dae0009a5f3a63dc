"""
The subject C{status}: how a running receiver does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, TextIO

from webhookrx.commands.control_client import UNREACHABLE, Unreachable, add_control, ask
from webhookrx.commands.terminal import DONE, FAILED, describe, print_json, print_table, safe
from webhookrx.quantities import format_duration, format_size


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject to its parser; it has no verbs."""
    describe(
        parser,
        _run,
        "Show how a running receiver does: its sources with rates, last messages and refusals, its observers with\n"
        "what waits for them, its certificates, and whether connectors wait for files. The exit status is 0 when it\n"
        "is ready for messages, 1 when it is not, and 4 when there is no receiver.",
        "webhookrx status --control /run/webhookrx/control.sock",
    )
    add_control(parser)
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")


def _run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    status: dict[str, Any] = {"error": "It has answered nothing."}
    try:
        for row in ask(asked.control, {"do": "status"}):
            status = row
    except Unreachable as error:
        print(f"webhookrx: {safe(str(error))}", file=err)
        return UNREACHABLE
    if "error" in status:
        print(f"webhookrx: {safe(str(status['error']))}", file=err)
        return FAILED
    if asked.json:
        print_json(out, status, indent=2)
    else:
        _print(status, out)
    return FAILED if status["health"] == "not_ready" else DONE


def _print(status: dict[str, Any], out: TextIO) -> None:
    now = status["now"]
    up = _span(now - status["started"])
    print(safe(f"webhookrx {status['version']} is {status['health'].replace('_', ' ')}; up for {up}"), file=out)
    for reason in status["reasons"]:
        print(safe(f"  {reason}"), file=out)
    queue, connections = status["queue"], status["connections"]
    waits = f"{queue['messages']:,} messages ({format_size(queue['bytes'])}) wait"
    print(f"  {connections['now']:,} of {connections['most']:,} connections; {waits}", file=out)
    down = [str(worker["number"]) for worker in status["workers"] if worker["stuck"] or not worker["up"]]
    if len(status["workers"]) > 1:
        print(f"  {len(status['workers'])} workers" + (f", of which down: {', '.join(down)}" if down else ""), file=out)
    print("\nSources", file=out)
    print_table(out, [("source", "messages", "a second", "last message", "refused"), *_sources(status, now)])
    if status["refused_before_a_source"]:
        print(f"  before a source was known: {_reasons(status['refused_before_a_source'])}", file=out)
    print("\nObservers", file=out)
    print_table(out, [("observer", "state", "finished", "refused", "waiting", "kept for later"), *_observers(status)])
    if status["certificates"]:
        print("\nCertificates", file=out)
        print_table(out, [(safe(path), f"ends {_when(end, now)}") for path, end in status["certificates"].items()])
    console = status.get("console")
    if console is not None:
        print(f"\nConsole: {_console(console)}", file=out)
    gate = status["gate"]
    if gate["closed"] or gate["without"]:
        print("\nThe reload gate is " + ("closed:" if gate["closed"] else "open, but:"), file=out)
        for reason in (*gate["reasons"], *gate["without"]):
            print(safe(f"  {reason['text']}"), file=out)

    alarms = status["alarms"]
    if alarms:
        print("\nAlarms", file=out)
        print_table(out, [("alarm", "about", "state", "since", ""), *_alarms(alarms, now)])
    elif alarms is not None:
        print("\nNo alarm fires.", file=out)


def _console(console: dict[str, Any]) -> str:
    """Return how a receiver stands with its console, in one line."""
    words = f"{console['status']}, revision {console['revision']} in use"
    if console["error"]:
        words += f" ({console['error']})"
    if console["refusal"]:
        words += f"; {console['problem']}"
    elif console["away"]:
        why = console["problem"] or "it has not answered yet"
        words += f"; away for {format_duration(max(1.0, round(console['away'])))}: {why}"
    return words


def _alarms(alarms: list[dict[str, Any]], now: float) -> Iterator[tuple[str, ...]]:
    for each in alarms:
        since = f"{_span(now - each['since'])} ago"
        yield safe(each["alarm"]), safe(each["subject"]), each["state"], since, safe(each["text"])


def _sources(status: dict[str, Any], now: float) -> Iterator[tuple[str, ...]]:
    for each in status["sources"]:
        name = each["name"] if each["port"] is None else f"{each['name']} (port {each['port']})"
        rate = "" if each["rate"] is None else f"{each['rate']:.1f}"
        last = "never" if each["last"] is None else f"{_span(now - each['last'])} ago"
        yield safe(name), f"{each['messages']:,}", rate, last, _reasons(each["refused"]) or "0"


def _observers(status: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for each in status["observers"]:
        kept, backlog = "", each["backlog"]
        if backlog is not None:
            age = "" if backlog["oldest_age"] is None else f", for {_span(backlog['oldest_age'])}"
            dead = f", {backlog['dead']:,} dead letters" if backlog["dead"] else ""
            kept = f"{backlog['messages']:,} ({format_size(backlog['bytes'])}{age}){dead}"
        counts = f"{each['messages']:,}", f"{each['refused']:,}", f"{each['waiting']:,}"
        yield safe(each["spec"]), each["state"], *counts, kept


def _reasons(refused: dict[str, int]) -> str:
    total = sum(refused.values())
    most = sorted(refused.items(), key=lambda item: -item[1])
    return f"{total:,}: " + ", ".join(f"{word} {count:,}" for word, count in most) if total else ""


def _when(end: float, now: float) -> str:
    return f"in {_span(end - now)}" if end > now else f"{_span(now - end)} ago"


def _span(seconds: float) -> str:
    """Return a time as people say it, with its largest unit."""
    seconds = max(0.0, seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
