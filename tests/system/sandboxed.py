"""
Runs a command as C{etc/systemd/webhookrx.service} would let it run, as far as that can be had without systemd: its
C{SystemCallFilter=} and C{RestrictAddressFamilies=}, with C{NoNewPrivileges=}.

C{python -m tests.system.sandboxed UNIT COMMAND…}; needs libseccomp and C{systemd-analyze}.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator

LIBRARY = "libseccomp.so.2"

_ALLOW = 0x7FFF0000
_DENY = 0x00050000 | errno.EPERM
_EQUAL = 4
#: More than there are address families.
_FAMILIES = 64


class _Comparison(ctypes.Structure):
    """C{struct scmp_arg_cmp} of seccomp.h."""

    _fields_ = [
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    ]


def settings_of(unit: str) -> dict[str, list[str]]:
    """Return the settings of a unit file, each with the values of all its lines."""
    settings: dict[str, list[str]] = {}
    with open(unit) as file:
        for line in file:
            name, equals, value = line.strip().partition("=")
            if equals and not name.startswith("#"):
                settings.setdefault(name, []).append(value)
    return settings


def system_calls(filters: Iterable[str]) -> set[str]:
    """Return what the C{SystemCallFilter=} lines of an allow list let through."""
    allowed: set[str] = set()
    for line in filters:
        names = set(_expand(line.removeprefix("~").split()))
        allowed = allowed - names if line.startswith("~") else allowed | names
    return allowed


def _expand(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if not name.startswith("@"):
            yield name
            continue
        listed = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
        members = (line.strip() for line in listed.stdout.splitlines()[1:])
        yield from _expand(member for member in members if member and not member.startswith("#"))


class _Filter:
    def __init__(self, library: ctypes.CDLL, default: int) -> None:
        self._library = library
        self._context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(default)))

    def add(self, action: int, call: str, *comparisons: _Comparison) -> None:
        number = self._library.seccomp_syscall_resolve_name(call.encode())
        array = (_Comparison * len(comparisons))(*comparisons)
        # Calls that this architecture doesn't have are negative, and refused; there is nothing to filter then.
        if number >= 0:
            self._check(
                self._library.seccomp_rule_add_array(
                    self._context, ctypes.c_uint32(action), number, len(comparisons), array
                )
            )

    def load(self) -> None:
        self._check(self._library.seccomp_load(self._context))

    def _check(self, result: int) -> None:
        if result:
            raise OSError(-result, os.strerror(-result))


def enter(unit: str) -> None:
    """Apply what the unit says to this process, for good."""
    settings = settings_of(unit)
    library = ctypes.CDLL(LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    allowed = system_calls(settings["SystemCallFilter"])
    denied = _Filter(library, _ALLOW)
    families = {int(getattr(socket, name)) for name in settings["RestrictAddressFamilies"][0].split()}
    for family in set(range(_FAMILIES)) - families:
        denied.add(_DENY, "socket", _Comparison(0, _EQUAL, family, 0))
    denied.load()
    only = _Filter(library, _DENY)
    for call in sorted(allowed):
        only.add(_ALLOW, call)
    only.load()


if __name__ == "__main__":
    enter(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
