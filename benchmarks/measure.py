"""
What a process and all below it have taken: processor time and memory, from proc(5).
"""

from __future__ import annotations

import os

_TICKS = os.sysconf("SC_CLK_TCK")
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
    """Return the processor time, user and system, that a tree of processes has taken, with children that have ended."""
    ticks = 0
    for process in tree(pid):
        fields = _stat(process)
        ticks += sum(int(fields[number - _AFTER_NAME]) for number in (14, 15, 16, 17))
    return ticks / _TICKS


def own_cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def machine_cpu_seconds() -> float:
    """Return the processor time that all cores were not idle for, proc_stat(5); other virtual machines count too."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft_irq, steal, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + soft_irq + steal) / _TICKS


def resident_kib(pid: int) -> int:
    """Return the resident memory of a tree of processes; pages that they share count in each."""
    total = 0
    for process in tree(pid):
        with open(f"/proc/{process}/status", encoding="utf-8") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
    return total
