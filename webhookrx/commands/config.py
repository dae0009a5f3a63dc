"""
The subject C{config}: its help. The receiver's own options do its work, see L{webhookrx.commands.main}.
"""

from __future__ import annotations

import argparse
from typing import NoReturn, TextIO

from webhookrx.commands.terminal import Verbs


def add_to(subject: argparse.ArgumentParser) -> None:
    """Put the verb on the command line."""
    Verbs(subject).add(
        "check",
        _check_nothing,
        "print what would run and where each setting came from, as twistd webhookrx --check does",
        "webhookrx config check /etc/webhookrx/webhookrx.yaml",
    )


def _check_nothing(asked: argparse.Namespace, out: TextIO, errors: TextIO) -> NoReturn:
    """Exit with an error: an empty variable of a script in place of FILE must not pass as a good configuration."""
    parser: argparse.ArgumentParser = asked.parser
    parser.error("name a FILE, or options to check")
