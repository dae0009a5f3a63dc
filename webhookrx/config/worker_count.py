"""
How many processes receive.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import partial
from math import ceil

from webhookrx.config.values import Values
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.settings import Settings

MOST = 256
"""More than that is a slip of the keyboard."""

_AUTO = "auto"


def worker_count(values: Values, cpus: int) -> int:
    """
    Return the value of the option C{workers}. What is wrong is noted.

    @param cpus: how many CPUs this process may use.
    """
    texts = values.texts("workers")
    parse = partial(_parse, cpus=cpus)
    count = values.problems.attempt(values.place("workers"), parse, texts[0].text) if texts else None
    count = Settings((), ()).workers if count is None else count
    values.show("workers", f"{count}, for as many CPUs" if texts and texts[0].text == _AUTO else str(count))
    return count


def _parse(text: str, cpus: int) -> int:
    """
    @raise ConfigError: it is neither a number of processes nor C{auto}.
    """
    if text == _AUTO:
        return min(cpus, MOST)
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= MOST:
        raise ConfigError(f"{quoted(text)} is neither a number from 1 to {MOST} nor {_AUTO}.")
    return int(text)


def usable_cpus(control_groups: str = "/sys/fs/cgroup", own_groups: str = "/proc/self/cgroup") -> int:
    """
    Return how many CPUs this process may use: those that it may run on, or as many as its control group has the time
    of, whichever is less; a part of one counts as one.

    @param control_groups: where the unified hierarchy is mounted (cgroups(7)).
    @param own_groups: the file that says which of its groups we are in.
    """
    try:
        cpus = float(len(os.sched_getaffinity(0)))
    except OSError:
        cpus = float(os.cpu_count() or 1)  # a sandbox may keep even that secret
    group = ""
    with suppress(OSError), open(own_groups) as file:
        group = next((line[3:].strip() for line in file if line.startswith("0::")), "")
    # A group has no more time than those that it is in.
    while True:
        with suppress(OSError, ValueError), open(f"{control_groups}{group}/cpu.max") as file:
            quota, period = file.read().split()
            cpus = min(cpus, int(quota) / int(period))  # "max" is no number, and no limit
        if not group.strip("/"):
            return max(1, ceil(cpus))
        group = os.path.dirname(group)
