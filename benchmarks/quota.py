"""
A share of processor time for a tree of processes, by a control group: version 2, or the C{cpu} controller of version 1.
"""

from __future__ import annotations

import os
from contextlib import suppress

from benchmarks.tools import Unavailable

_V1 = "/sys/fs/cgroup/cpu"
_V2 = "/sys/fs/cgroup"

PERIOD = 10_000
"""Microseconds: short, so that a process that has used its share does not stop for long."""

LEAST = 1_000
"""Microseconds: the smallest share of a period that the kernel grants. The period of a smaller one is longer."""


class Quota:
    """
    A control group, without bounds at first.

    @raise Unavailable: none can be made here.
    """

    def __init__(self, name: str) -> None:
        self._v2 = os.path.exists(f"{_V2}/cgroup.controllers")
        self._path = os.path.join(_V2 if self._v2 else _V1, f"webhookrx-benchmarks-{os.getpid()}-{name}")
        try:
            os.mkdir(self._path)
        except OSError as error:
            raise Unavailable(f"no control group for processor time can be made: {error}") from error

    def limit(self, cores: float) -> None:
        """
        Let those in it take so many cores' worth of processor time together, and no more.

        @raise Unavailable: that is not to be had here.
        """
        amount = max(round(cores * PERIOD), LEAST)
        period = round(amount / cores)
        if self._v2:
            limits = {"cpu.max": f"{amount} {period}"}
        else:
            limits = {"cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": str(amount)}
        try:
            for file, text in limits.items():
                _write(os.path.join(self._path, file), text)
        except OSError as error:
            raise Unavailable(f"processor time can't be bounded: {error}") from error

    def join(self, pid: int | None = None) -> None:
        """Bring a process in, the calling one if none is given; children that it starts then are in too."""
        _write(os.path.join(self._path, "cgroup.procs"), str(pid or os.getpid()))

    def remove(self) -> None:
        """Take it away, once nobody is in it."""
        with suppress(OSError):
            os.rmdir(self._path)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
