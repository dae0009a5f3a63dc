"""
What commands ask a running receiver by its control socket.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Iterator
from typing import Any, Final

from webhookrx.diagnostics import quoted
from webhookrx.errors import WebhookrxError

UNREACHABLE: Final = 4
"""The exit status when there is no receiver."""

_USUAL: Final = "/run/webhookrx/control.sock"
_TIME_TO_ANSWER: Final = 10.0
"""Seconds."""


class Unreachable(WebhookrxError):
    """No receiver answers at a control socket; the text says which, and why."""


def add_control(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the control socket."""
    parser.add_argument(
        "--control",
        metavar="PATH",
        default=default_control(),
        help=f"the control socket of the receiver; by default control.sock in $RUNTIME_DIRECTORY, else {_USUAL}",
    )


def default_control() -> str:
    """Return where the control socket is, if nobody says."""
    directory = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return f"{directory}/control.sock" if directory else _USUAL


def ask(path: str, question: dict[str, Any], *, lasts: bool = False) -> Iterator[dict[str, Any]]:
    """
    Ask a receiver, and return each line that it answers with.

    @param lasts: lines come until the receiver ends them; else one comes soon.
    @raise Unreachable: there is no receiver, it does not answer, or it ends in the middle of a line.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_TIME_TO_ANSWER)
    with connection:
        try:
            connection.connect(path)
            connection.sendall(json.dumps(question).encode() + b"\n")
            with connection.makefile("rb") as lines:
                for line in lines:
                    yield json.loads(line)
                    if lasts:
                        connection.settimeout(None)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "it does not answer"
            hint = ""
            if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
                hint = " A receiver has one with --control PATH, and under systemd with RuntimeDirectory=."
            raise Unreachable(f"No receiver at {quoted(path)}: {why}.{hint}") from None
