"""
What this machine says of itself, for the selectors of connector rules. No name server is asked: that may take long.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import platform
import socket
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

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
