"""
Counting system calls with strace.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from types import TracebackType

from benchmarks.measure import tree
from benchmarks.tools import Unavailable, program

_PATIENCE = 10.0
"""Seconds that strace may take to begin or to end."""


class Count:
    """
    Counts the calls of a tree of processes, with all threads, while a C{with} statement lasts.

    @ivar total: how many there were, after it.
    @raise Unavailable: strace is not there, or may not look at the process.
    """

    total = 0

    def __init__(self, pid: int) -> None:
        self._processes = tree(pid)

    def __enter__(self) -> Count:
        strace = program("strace")
        self._report = tempfile.NamedTemporaryFile(prefix="webhookrx-strace-", mode="r+")
        self._process = subprocess.Popen(
            (strace, "-f", "-c", "-o", self._report.name, *(f"--attach={pid}" for pid in self._processes)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=_PATIENCE)
        with self._report as report:
            self.total = read_total(report.read())

    def _wait(self) -> None:
        """Wait until strace holds every thread."""
        deadline = time.monotonic() + _PATIENCE
        while not all(map(_is_traced, self._processes)):
            if self._process.poll() is not None:
                _, said = self._process.communicate()
                self._report.close()
                raise Unavailable(f"strace may not look at a process here: {said.strip()}")
            if time.monotonic() > deadline:
                self._process.kill()
                raise Unavailable("strace does not begin")
            time.sleep(0.02)


def _is_traced(pid: int) -> bool:
    """Return whether all threads of a process are looked at."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as file:
            if not re.search(r"^TracerPid:\s+[1-9]", file.read(), re.MULTILINE):
                return False
    return True


def read_total(report: str) -> int:
    """
    Return the number of calls in a summary of C{strace -c}.

    @raise ValueError: there is no such number.
    """
    found = re.search(r"^\s*100\.00\s+\S+\s+\d+\s+(\d+)\s+(?:\d+\s+)?total\s*$", report, re.MULTILINE)
    if found is None:
        raise ValueError(f"not a summary of strace: {report!r}")
    return int(found[1])
