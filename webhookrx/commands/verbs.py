"""
How subjects put their verbs on the command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TextIO

Run = Callable[[argparse.Namespace, TextIO, TextIO], int]
"""What does the work: arguments, output and errors to an exit status."""


class Verbs:
    """The verbs of a subject."""

    def __init__(self, subject: argparse.ArgumentParser) -> None:
        self._verbs = subject.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(self, name: str, run: Run, text: str, example: str = "") -> argparse.ArgumentParser:
        """
        Add a verb.

        @param text: what it does, without a capital and a full stop.
        @param example: a command line, for C{--help}.
        @return: the verb's own parser.
        """
        parser: argparse.ArgumentParser = self._verbs.add_parser(name, help=text)
        describe(parser, run, f"{text[0].upper()}{text[1:]}.", example)
        return parser


def describe(parser: argparse.ArgumentParser, run: Run, description: str, example: str) -> None:
    """Say what a verb does, for C{--help}, and what does it."""
    parser.description = description
    if example:
        # A command line that is broken in two can't be copied.
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = f"example:\n  {example}"
    parser.set_defaults(run=run, parser=parser)
