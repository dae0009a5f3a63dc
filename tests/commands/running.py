"""
The command, run in this process on texts instead of a terminal.
"""

from __future__ import annotations

import io
import os
import sys
from textwrap import dedent
from typing import NamedTuple
from unittest.mock import patch

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.commands.main import main


class Ran(NamedTuple):
    """How it went: the exit status, and what was printed."""

    status: int
    out: str
    err: str


def run_command(*arguments: str, stdin: bytes = b"") -> Ran:
    """Run the command with these arguments and that on standard input."""
    out, err = io.StringIO(), io.StringIO()
    read = io.TextIOWrapper(io.BytesIO(stdin))
    with patch.object(sys, "stdin", read), patch.object(sys, "stdout", out), patch.object(sys, "stderr", err):
        try:
            status = main(arguments)
        except SystemExit as end:
            status = int(str(end.code))
    return Ran(status, out.getvalue(), err.getvalue())


class CommandCase(SynchronousTestCase):
    """What runs the command on files of its own."""

    def setUp(self) -> None:
        """Make a directory for them, and work there, so that their names are short."""
        directory = os.path.abspath(self.mktemp())
        os.makedirs(directory)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory)

    def write(self, name: str, text: str | bytes) -> str:
        """Write a file, and return its name. Text is dedented."""
        with open(name, "wb") as file:
            file.write(text if isinstance(text, bytes) else dedent(text).encode())
        return name
