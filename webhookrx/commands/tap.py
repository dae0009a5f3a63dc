"""
The subject C{tap}: messages and refusals of a running receiver, while they pass.
"""

from __future__ import annotations

import argparse
from typing import TextIO

from webhookrx.commands.console_client import add_console_arguments
from webhookrx.commands.console_tap import tap_by_console
from webhookrx.commands.control_client import UNREACHABLE, Unreachable, add_control, ask, default_control
from webhookrx.commands.tap_rows import print_row
from webhookrx.commands.terminal import DONE, FAILED, describe, print_json, safe
from webhookrx.errors import ConfigError
from webhookrx.quantities import parse_duration


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject to its parser; it has no verbs."""
    describe(
        parser,
        _run,
        "Show what a running receiver takes or refuses, while it does; nothing is recorded anywhere. Tokens and\n"
        "secrets are masked by the receiver. Each second it says how many messages it has seen. The exit status is 1\n"
        "when the tap can't be started, and 4 when there is no receiver. With --console it shows those of many\n"
        "routers.",
        "webhookrx tap --source github --filter 'webhook.query.team = web' --for 10m",
    )
    add_control(parser)
    add_console_arguments(parser, required=False)
    parser.add_argument(
        "--routers", metavar="QUERY", default="", help="with --console, a query on routers; by default all"
    )
    parser.add_argument("--source", metavar="NAME", default="", help="the source or connector; by default all")
    parser.add_argument(
        "--connector",
        metavar="QUERY",
        default="",
        help='a query on connectors, such as "connector.labels.product = github"',
    )
    parser.add_argument(
        "--point",
        metavar="POINT",
        default="",
        help="input, output, probe:NAME, refused or service; by default input and output side by side",
    )
    parser.add_argument("--filter", metavar="QUERY", default="", help="a query on the message at the point")
    parser.add_argument(
        "--rate", metavar="N", type=float, default=1.0, help="messages a second to show at most, up to 20; by default 1"
    )
    parser.add_argument("--for", dest="lasts", metavar="TIME", default="10m", help="up to 1h; by default 10m")
    parser.add_argument("--json", action="store_true", help="print each row as one line of JSON")


def _run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    try:
        seconds = parse_duration(asked.lasts)
    except ConfigError as error:
        asked.parser.error(f"argument --for: {error}")
    if not (1 <= seconds <= 3600):
        asked.parser.error("argument --for: a tap lasts from 1s to 1h")
    if not (0 < asked.rate <= 20):
        asked.parser.error("argument --rate: a tap shows up to 20 messages a second, and more than 0")
    _check_who_is_asked(asked)
    request = {
        "source": asked.source,
        "connectors": asked.connector,
        "point": asked.point,
        "filter": asked.filter,
        "rate": asked.rate,
        "seconds": seconds,
    }
    if asked.console is not None:
        return tap_by_console(asked, request, out, err)
    status = FAILED
    try:
        for row in ask(asked.control, {"do": "tap", "tap": request}, lasts=True):
            if "error" in row:
                print(f"webhookrx: {safe(str(row['error']))}", file=err)
                return FAILED
            status = DONE
            if asked.json:
                print_json(out, row)
            else:
                print_row(row, out, err)
            out.flush()
    except Unreachable as error:
        print(f"webhookrx: {safe(str(error))}", file=err)
        return UNREACHABLE
    except KeyboardInterrupt:
        return DONE
    return status


def _check_who_is_asked(asked: argparse.Namespace) -> None:
    """Refuse options that would have no effect: a receiver is asked, or a console."""
    if asked.console is None:
        if asked.token_file or asked.ca or asked.routers:
            asked.parser.error("--token-file, --ca and --routers are about a console; --console names it")
    elif asked.control != default_control():
        asked.parser.error("argument --control: the routers of --console are asked, and no receiver of this machine")
    elif asked.token_file is None:
        asked.parser.error("argument --console: it needs --token-file, too")
