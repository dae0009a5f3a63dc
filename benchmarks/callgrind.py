"""
Counting instructions with callgrind, a tool of valgrind: of a server that runs under it from its start on, but is only
watched while it is counted, so that starting it does not take long.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.lab import Running
from benchmarks.servers import Server
from benchmarks.tools import Tools, Unavailable, program

_REPORT = "callgrind.out"
_PATIENCE = 60.0
"""Seconds that callgrind may take to obey."""


@dataclass(frozen=True, kw_only=True)
class UnderCallgrind(Server):
    """
    Another server, as callgrind runs it.

    @ivar watched: the other one.
    """

    watched: Server

    @property
    def is_webhookrx(self) -> bool:
        """Whether the other one is."""
        return self.watched.is_webhookrx

    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """Return the command of the other one behind that of valgrind."""
        return (
            program("valgrind"), "--tool=callgrind", "--instr-atstart=no",
            f"--callgrind-out-file={os.path.join(directory, _REPORT)}", *self.watched.command(tools, directory, port),
        )  # fmt: skip

    def environment(self, output: str) -> dict[str, str]:
        """Have the same hashes in every run, for they decide how long a look into a dictionary takes."""
        return {**self.watched.environment(output), "PYTHONHASHSEED": "0"}


class Count:
    """
    The instructions of a process that callgrind runs, in user space.

    @ivar total: how many there were since L{begin}, once L{end} was called.
    """

    def __init__(self, running: Running) -> None:
        self._pid = running.pid
        self._report = os.path.join(os.path.dirname(running.output), f"{_REPORT}.1")
        self.total = 0

    def tell(self, *words: str) -> None:
        """
        Have callgrind do something.

        @raise Unavailable: it does not obey.
        """
        command = (program("vgdb", package="valgrind"), f"--pid={self._pid}", *words)
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=True)
        except subprocess.SubprocessError as error:
            raise Unavailable(f"callgrind does not obey: {error}") from error

    def begin(self) -> None:
        """Count from here on."""
        self.tell("zero")

    def end(self) -> None:
        """Count up to here."""
        self.tell("dump")
        with open(self._report, encoding="utf-8", errors="replace") as file:
            self.total = read_summary(file.read())


@contextmanager
def instructions(running: Running) -> Iterator[Count]:
    """
    Watch a server; whoever asked for it says when to count.

    @raise Unavailable: callgrind does not obey.
    """
    count = Count(running)
    count.tell("instrumentation", "on")
    yield count
    count.end()


def read_summary(report: str) -> int:
    """
    Return the number of instructions in a report of callgrind.

    @raise Unavailable: there is none.
    """
    found = re.search(r"^summary: (\d+)", report, re.MULTILINE)
    if found is None:
        raise Unavailable(f"not a report of callgrind: {report[:200]!r}")
    return int(found[1])
