"""
The subject C{try}: what a receiver makes of a recorded request, decision by decision and step by step.
"""

from __future__ import annotations

import argparse
from typing import TextIO

from webhookrx.commands.recorded_request import address, moment, recorded_request
from webhookrx.commands.rules_reading import add_router_arguments
from webhookrx.commands.terminal import describe, safe
from webhookrx.commands.try_config import CANT_BE_JUDGED, try_config
from webhookrx.commands.try_rules import try_rules
from webhookrx.errors import WebhookrxError


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject to its parser; it has no verbs."""
    describe(
        parser,
        _run,
        "Show what the sources of a configuration, or the connectors of a rules file, make of a recorded request:\n"
        "each decision and why, the answer, and the messages; of a connector, what each step has changed. Nothing\n"
        "is opened or written, and no secret is shown. The exit status is 0 when the request would be stored, 3\n"
        "when it is a question that is answered, 1 when it would be refused or dropped, 2 when that can't be\n"
        "judged. With --rules it is also 1 when a file can't be read.",
        "webhookrx try request.http --config webhookrx.yaml --peer 192.0.2.7",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="request line, headers, a blank line and the body; or a JSON body alone; - reads standard input",
    )
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--config", metavar="FILE", help="the configuration file")
    given.add_argument("--rules", metavar="FILE", help="the rules file")
    parser.add_argument(
        "--port", type=int, metavar="N", help="the port, if several sources or connectors accept the path"
    )
    parser.add_argument("--path", metavar="PATH", help="the path, instead of that of the request")
    parser.add_argument(
        "--at",
        type=moment,
        metavar="TIME",
        help="the time of receipt, in ISO 8601; default when it was signed, else now",
    )
    parser.add_argument("--peer", type=address, metavar="IP", help="the address that it comes from")
    parser.add_argument("--client-cert", metavar="FILE", help="the client certificate of its connection, in PEM")
    parser.add_argument("--sign", metavar="NAME", help="sign it first, with the secret of that name")
    parser.add_argument(
        "--curl", action="store_true", help="print a curl command that sends it, with its signature, and nothing else"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    config = parser.add_argument_group("with --config")
    config.add_argument("--source", metavar="NAME", help="the source to try, if several accept the path")
    rules = parser.add_argument_group("with --rules")
    add_router_arguments(parser, "with --rules: the name of the router; of the hosts of the file, or any other; needed")
    rules.add_argument("--rule", metavar="NAME", help="the rule to try, if several connectors accept the path")
    rules.add_argument(
        "--senders", metavar="DIR", help="a directory of sender definitions, in addition to the built-in ones"
    )
    rules.add_argument(
        "--allow-slow-patterns",
        action="store_true",
        help="accept paths that RE2 can't run, as a router with this option does",
    )


def _run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    if asked.rules is not None:
        _check_usage(asked, asked.router is None, "--rules needs --router")
        _check_usage(asked, asked.source is not None, "--source goes with --config")
        return try_rules(asked, recorded_request(asked), out, err)
    of_rules = asked.router or asked.rule or asked.senders or asked.allow_slow_patterns
    _check_usage(asked, bool(of_rules), "--router, --rule, --senders and --allow-slow-patterns go with --rules")
    try:
        return try_config(asked, recorded_request(asked), out, err)
    except (WebhookrxError, OSError) as error:
        for line in str(error).splitlines():
            print(f"webhookrx: {safe(line)}", file=err)
        return CANT_BE_JUDGED


def _check_usage(asked: argparse.Namespace, is_wrong: bool, problem: str) -> None:
    if is_wrong:
        asked.parser.error(problem)
