"""
This machine: its names and addresses for selectors, its CPUs for workers, its limit on open files for connections.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import platform
import re
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Final, NamedTuple

from webhookrx.config.option_reader import OptionReader
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.settings import Observer, Settings
from webhookrx.version import installed_version

#: ioctl(2): the IPv4 address of an interface, see netdevice(7).
_SIOCGIFADDR: Final = 0x8915
_IF_INET6: Final = "/proc/net/if_inet6"
_HOSTS: Final = "/etc/hosts"

_OF_A_PROCESS: Final = 64
"""Files of a process whatever its settings, with those that it opens for a moment: to read settings, for connections
that are refused, or that are closing. A third of them is usual."""

_OF_AN_OBSERVER: Final = 8
"""Files of an observer; a spool has six, and those of its inner observer."""

_OF_OPERATORS: Final = 16
"""Connections of operators, who are served when senders have all others."""

_LEAST: Final = 16
"""Connections below which a start is refused."""

MOST: Final = 256
"""Workers; more are a slip of the keyboard."""

_AUTO: Final = "auto"


class HostFacts(NamedTuple):
    """
    What selectors of connector rules know of a machine. No name server is asked: that may take long.

    @ivar hostname: without a domain.
    @ivar fqdn: the name with its domain, from the kernel or C{/etc/hosts}; empty without one.
    @ivar ip: its addresses but for loopback and link-local ones.
    @ivar os: such as C{linux}.
    @ivar arch: such as C{x86_64}.
    @ivar version: that of webhookrx.
    """

    hostname: str
    fqdn: str
    ip: tuple[str, ...]
    os: str
    arch: str
    version: str


def this_host(hosts_file: str = _HOSTS) -> HostFacts:
    """Return the facts of this machine; unknown ones are empty."""
    name = os.uname().nodename
    return HostFacts(
        hostname=name.partition(".")[0],
        fqdn=name if "." in name else _fqdn(name, _lines(hosts_file)),
        ip=tuple(dict.fromkeys((*_ipv4(), *_ipv6(_lines(_IF_INET6))))),
        os=platform.system().lower(),
        arch=platform.machine(),
        version=installed_version(),
    )


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readlines()
    except OSError:
        return []


def _fqdn(name: str, hosts: list[str]) -> str:
    """Return the name with a domain that stands beside the short one in hosts(5)."""
    for line in hosts:
        _, *names = line.partition("#")[0].split() or [""]
        if name in names:
            for each in names:
                if each.startswith(f"{name}."):
                    return each
    return ""


def _ipv4() -> Iterator[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for _, interface in socket.if_nameindex():
            request = struct.pack("256s", interface.encode()[:15])
            try:
                answer = fcntl.ioctl(handle, _SIOCGIFADDR, request)
            except OSError:
                continue  # it has no IPv4 address
            yield from _wanted(ipaddress.IPv4Address(answer[20:24]))


def _ipv6(lines: list[str]) -> Iterator[str]:
    """Read lines of the kernel, each of which begins with 32 hexadecimal digits."""
    for line in lines:
        digits = line.partition(" ")[0]
        if len(digits) == 32:
            yield from _wanted(ipaddress.IPv6Address(bytes.fromhex(digits)))


def _wanted(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Iterator[str]:
    if not (address.is_loopback or address.is_link_local or address.is_unspecified):
        yield str(address)


def most_open_files() -> int | None:
    """
    Raise the limit on open files of this process and its children to the hard limit.

    @return: the limit; None for no limit, or an unknown one, as in a sandbox.
    """
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        return None
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass  # a sandbox forbids it, or the system has a lower limit of its own
    return None if soft == resource.RLIM_INFINITY else soft


def fit_connections(settings: Settings, open_files: int | None) -> tuple[Settings, str]:
    """
    Lower the limit on connections to what the limit on open files allows.

    @param open_files: see L{most_open_files}.
    @return: the settings, and a warning; an empty one when nothing was lowered.
    @raise ConfigError: too few are left to start.
    """
    wanted = settings.limits.connections
    if open_files is None:
        return settings, ""
    own = own_files(settings)
    left = open_files - own
    if left >= wanted:
        return settings, ""
    files = f"The process may open {open_files} files, and needs up to {own} itself"
    how = "Raise the hard limit on open files (ulimit -Hn, LimitNOFILE=)"
    if left < _LEAST:
        raise ConfigError(f"{files}, which leaves too few for connections. {how}.")
    lowered = replace(settings, limits=replace(settings.limits, connections=left))
    return lowered, f"{files}: so there can be {left} connections and not {wanted}. {how}, or set connections={left}."


def own_files(settings: Settings) -> int:
    """Return the number of files that a process needs besides connections of senders."""
    endpoints = len({listener.socket for source in settings.sources for listener in source.listeners})
    observers = sum(map(_observers, settings.observers))
    operators = _OF_OPERATORS + 1 if settings.admin is not None else 0
    return _OF_A_PROCESS + endpoints + observers * _OF_AN_OBSERVER + operators


def _observers(observer: Observer) -> int:
    return 1 if observer.inner is None else 1 + _observers(observer.inner)


def worker_count(options: OptionReader, cpus: int) -> int:
    """
    Return the value of the option C{workers}. A mistake is noted.

    @param cpus: CPUs that this process may use.
    """
    count = options.parsed("workers", partial(_parse_count, cpus=cpus))
    count = Settings((), ()).workers if count is None else count
    options.show("workers", f"{count}, for as many CPUs" if options.value("workers") == _AUTO else str(count))
    return count


def _parse_count(text: str, cpus: int) -> int:
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
    Return the number of CPUs that this process may use: the lesser of its affinity and the quota of its control group,
    rounded up.

    @param control_groups: the mount point of the unified hierarchy (cgroups(7)).
    @param own_groups: the file with the groups of this process.
    """
    try:
        cpus = float(len(os.sched_getaffinity(0)))
    except OSError:
        cpus = float(os.cpu_count() or 1)  # a sandbox may forbid the call
    group = ""
    with suppress(OSError), open(own_groups) as file:
        group = next((line[3:].strip() for line in file if line.startswith("0::")), "")
    # The quota of a parent holds, too.
    while True:
        with suppress(OSError, ValueError), open(f"{control_groups}{group}/cpu.max") as file:
            quota, period = file.read().split()
            cpus = min(cpus, int(quota) / int(period))  # "max" is not a number, and no limit
        if not group.strip("/"):
            return max(1, ceil(cpus))
        group = os.path.dirname(group)
