"""
The subject C{enrol}: makes this machine a router of a console by hand, or ends that.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any, Final, TextIO, TypeVar

from webhookrx.commands.terminal import DONE, FAILED, describe, safe
from webhookrx.config.console_files import forget_console, read_console_files
from webhookrx.config.files import default_state_dir, public_warning, read_file
from webhookrx.config.machine import this_host
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError, WebhookrxError
from webhookrx.management.agent_protocol import RouterFacts
from webhookrx.management.enrolment_token import EnrolmentToken, read_token
from webhookrx.router.rules.rule import check_label

UNREACHABLE: Final = 4

_T = TypeVar("_T")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject to its parser; it has no verbs."""
    describe(
        parser,
        _run,
        "Make this machine a router of a console, by a one-time token; or forget the console. The files belong to the\n"
        "owner of their directory, also when root runs this. What was interrupted may be run again with the same\n"
        "token. The exit status is 1 when the console refuses, and 4 when it can't be reached.",
        "webhookrx enrol --console https://console.example.com:9443 --token-file FILE \\\n"
        "      --console-dir /var/lib/webhookrx/console",
    )
    parser.add_argument("--console", metavar="URL", help="the console's port for routers, as https://HOST:PORT")
    parser.add_argument("--token-file", metavar="FILE", help="a file with the enrolment token, and no more")
    parser.add_argument(
        "--console-dir",
        metavar="DIR",
        help="where the receiver keeps what is of its console; by default console in $STATE_DIRECTORY",
    )
    parser.add_argument("--name", metavar="NAME", default="", help="of the router; by default that of the host")
    parser.add_argument(
        "--label",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a label of the router until its receiver tells its own; may be repeated",
    )
    parser.add_argument(
        "--forget",
        action="store_true",
        help="remove identity and bundles; a receiver that runs goes on with what it has until its restart",
    )


def _run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    given = asked.console_dir or os.path.join(default_state_dir(os.environ) or "", "console")
    if given == "console":
        asked.parser.error("--console-dir is needed, or $STATE_DIRECTORY")
    directory = os.path.abspath(given)
    if asked.forget:
        if asked.console or asked.token_file or asked.label or asked.name:
            asked.parser.error("--forget goes with --console-dir alone")
        return _forget(directory, out)
    if not asked.console or not asked.token_file:
        asked.parser.error("--console and --token-file are needed, or --forget")
    labels = _labels(asked)
    # Before its user changes: a credential may be for root alone.
    data, mode = read_file(asked.token_file)
    try:
        token = read_token(data.decode("ascii", "replace"))
    except ValueError as error:
        raise ConfigError(f"{quoted(asked.token_file)}: {error}") from None
    warning = public_warning(asked.token_file, mode)
    if warning:
        print(f"warning: {safe(warning)}", file=err)
    _become_owner(directory)
    identity = read_console_files(directory).identity
    if identity is not None:
        print(
            f"webhookrx: This is the router {safe(identity.name)} of {safe(identity.console)} already; "
            "webhookrx enrol --forget ends that.",
            file=err,
        )
        return FAILED
    host = this_host()
    facts = RouterFacts(**{**host._asdict(), "ip": host.ip[:64]}, labels=labels)
    return _join(directory, asked.console.rstrip("/"), token, facts, asked.name, out, err)


def _forget(directory: str, out: TextIO) -> int:
    if not os.path.isdir(directory):
        raise ConfigError(f"{quoted(directory)} is not a directory.")
    _become_owner(directory)
    forget_console(directory)
    print("Forgotten. The console has the router until it is deleted there.", file=out)
    return DONE


def _labels(asked: argparse.Namespace) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in asked.label:
        key, equals, value = text.partition("=")
        try:
            if not equals or key in labels:
                raise ConfigError("write KEY=VALUE, each key once")
            check_label(key, value)
        except ConfigError as error:
            asked.parser.error(f"argument --label: {quoted(text)}: {error}")
        labels[key] = value
    return labels


def _become_owner(directory: str) -> None:
    """
    From now on be the user whose files these are, so that none of them is root's, and no link in a directory of theirs
    leads root elsewhere.

    @raise ConfigError: there is no such directory, nor one above it.
    """
    above = directory if os.path.isdir(directory) else os.path.dirname(directory)
    try:
        owner = os.stat(above)
    except OSError:
        raise ConfigError(f"{quoted(above)} is missing; the user that webhookrx runs as has to own it.") from None
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.setgroups([owner.st_gid])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


def _join(
    directory: str, url: str, token: EnrolmentToken, facts: RouterFacts, name: str, out: TextIO, err: TextIO
) -> int:
    # It imports Twisted, which no other way here needs.
    from twisted.internet.defer import Deferred
    from twisted.internet.task import react

    from webhookrx.agent.enrolment import ConsoleAway
    from webhookrx.agent.joining import join_console

    statuses: list[int] = []

    async def on_disk(call: Callable[..., _T], *arguments: object) -> _T:
        return call(*arguments)

    async def join(reactor: Any) -> None:
        try:
            enrolled = await join_console(reactor, on_disk, directory, url, token, facts, name)
        except (WebhookrxError, OSError) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            print(f"webhookrx: {safe(text)}", file=err)
            if isinstance(error, ConsoleAway):
                print("webhookrx: Run this again with the same token.", file=err)
            statuses.append(UNREACHABLE if isinstance(error, ConsoleAway) else FAILED)
            return
        statuses.append(DONE)
        print(f"Enrolled as {safe(enrolled.identity.name)}, {enrolled.identity.guid}.", file=out)
        if enrolled.is_pending:
            print("It gets rules once somebody has approved it at the console.", file=out)

    try:
        react(lambda reactor: Deferred.fromCoroutine(join(reactor)))
    except SystemExit as end:
        if end.code:
            raise
    return statuses[0] if statuses else FAILED
