"""
What a process and all below it have taken: processor time and memory, from proc(5).
"""

from __future__ import annotations

import os
from contextlib import suppress

_TICKS = os.sysconf("SC_CLK_TCK")
_ESTABLISHED = "01"
_AFTER_NAME = 3
"""Number of the first field behind the name of the process, as proc_pid_stat(5) counts."""


def _stat(pid: int) -> list[str]:
    """Return the fields of C{/proc/PID/stat} from the third on; the name before them may hold anything."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def tree(pid: int) -> list[int]:
    """Return a process and all of its descendants."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                children.setdefault(int(_stat(int(name))[4 - _AFTER_NAME]), []).append(int(name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    found = [pid]
    for parent in found:
        found += children.get(parent, ())
    return found


def cpu_seconds(pid: int) -> float:
    """Return the processor time, user and system, that a tree of processes has taken, with all threads it has now."""
    return sum(map(_nanoseconds, tree(pid))) / 1e9


def _nanoseconds(pid: int) -> int:
    """
    Return the time of a process as the scheduler counts it: proc_pid_stat(5), which every kernel has, counts in
    hundredths of a second, of which a load takes less than a hundred.
    """
    if not os.path.exists("/proc/self/schedstat"):
        fields = _stat(pid)
        return sum(int(fields[number - _AFTER_NAME]) for number in (14, 15)) * 10**9 // _TICKS
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        # A thread may have ended meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total


def own_cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def machine_cpu_seconds() -> float:
    """Return the processor time that all cores were not idle for, proc_stat(5); other virtual machines count too."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft_irq, steal, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + soft_irq + steal) / _TICKS


def connections_of(pid: int, port: int) -> list[int]:
    """Return how many established TCP connections to a local port each of a tree of processes has."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as file:
            sockets |= established(file.read(), port)
    return [len(sockets & _descriptors(process)) for process in tree(pid)]


def established(table: str, port: int) -> set[str]:
    """Return the sockets of established connections to a local port, as links of descriptors name them, proc_net(5)."""
    found = set()
    for line in table.splitlines()[1:]:
        _, local, _, state, _, _, _, _, _, inode, *_ = line.split()
        if state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port:
            found.add(f"socket:[{inode}]")
    return found


def _descriptors(pid: int) -> set[str]:
    found = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        # One that was closed meanwhile is none.
        with suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return found


def resident_kib(pid: int) -> int:
    """Return the resident memory of a tree of processes; pages that they share count in each."""
    total = 0
    for process in tree(pid):
        with open(f"/proc/{process}/status", encoding="utf-8") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
    return total
