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


class HostFacts(NamedTuple):
    """
    A machine.

    @ivar hostname: its name, without a domain.
    @ivar fqdn: its name with its domain; empty when neither the kernel nor C{/etc/hosts} knows one.
    @ivar ip: its addresses, loopback and link-local ones left out.
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
    """Return the facts of this machine. What can't be found out is empty."""
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
    """Look for a name with a domain among the names that hosts(5) gives to one address beside the short one."""
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
    """Read what the kernel tells: 32 hexadecimal digits and more in each line."""
    for line in lines:
        digits = line.partition(" ")[0]
        if len(digits) == 32:
            yield from _wanted(ipaddress.IPv6Address(bytes.fromhex(digits)))


def _wanted(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Iterator[str]:
    if not (address.is_loopback or address.is_link_local or address.is_unspecified):
        yield str(address)


#: Files that a process has open whatever its settings are, those included that it opens for a moment: to read
#: settings, and for connections that are refused, or whose end is under way. A third of them is usual.
_OF_A_PROCESS = 64

#: Files of an observer; a spool has six, and besides them those of the observer behind it.
_OF_AN_OBSERVER = 8

#: Connections of operators, who are let in when senders have taken all there are.
_OF_OPERATORS = 16

#: Connections below which it is not worth to begin.
_LEAST = 16


def most_open_files() -> int | None:
    """
    Raise the limit on open files of this process, and of those that it starts, as far as it may be raised.

    @return: the limit; None when there is none, or it can't be told, as in a sandbox.
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
            pass  # a sandbox forbids it, or the system knows better than its own hard limit
    return None if soft == resource.RLIM_INFINITY else soft


def fit_connections(settings: Settings, open_files: int | None) -> tuple[Settings, str]:
    """
    Lower the limit on connections to what the limit on open files has room for.

    @param open_files: what L{most_open_files} returns.
    @return: the settings, and a sentence on what was lowered; an empty one when nothing was.
    @raise ConfigError: there is no room for any.
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
    """Return how many files a process needs besides the connections of senders."""
    endpoints = len({listener.inner for source in settings.sources for listener in source.listeners})
    observers = sum(map(_observers, settings.observers))
    operators = _OF_OPERATORS + 1 if settings.admin is not None else 0
    return _OF_A_PROCESS + endpoints + observers * _OF_AN_OBSERVER + operators


def _observers(observer: Observer) -> int:
    return 1 if observer.inner is None else 1 + _observers(observer.inner)


MOST = 256
"""More than that is a slip of the keyboard."""

_AUTO = "auto"


def worker_count(options: OptionReader, cpus: int) -> int:
    """
    Return the value of the option C{workers}. What is wrong is noted.

    @param cpus: how many CPUs this process may use.
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
