"""
What the benchmarks work with: programs, interpreters, certificates; and what is missing, in words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cached_property

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

ECHO_MODULE = "/usr/lib/nginx/modules/ngx_http_echo_module.so"
"""Where Debian puts the module that lets nginx read a body without passing it on."""


class Unavailable(Exception):
    """Something can't be run here; the text says why."""


class Broken(Exception):
    """Something went wrong that makes a figure worthless; the text says what."""


@dataclass(frozen=True)
class Cores:
    """On which processor cores what runs."""

    server: int
    load: int

    @classmethod
    def choose(cls) -> Cores:
        """Take the first and the last that this process may run on; the same one when there is no other."""
        allowed = sorted(os.sched_getaffinity(0))
        return cls(allowed[0], allowed[-1])


@dataclass(frozen=True)
class Tools:
    """
    Programs and options.

    @ivar peers_python: the interpreter that the Python peers are installed in; None: there is none.
    @ivar twistd: the C{twistd} to measure; the one beside the running interpreter when None.
    @ivar reactor: passed to C{twistd --reactor}.
    @ivar options: passed to every webhookrx, behind ours.
    """

    peers_python: str | None = None
    twistd: str | None = None
    reactor: str | None = None
    options: tuple[str, ...] = ()
    cores: Cores = field(default_factory=Cores.choose)

    def twistd_command(self, twistd: str | None = None) -> tuple[str, ...]:
        """
        Return the beginning of the command line of a webhookrx, up to its own options.

        @param twistd: another than the one to measure.
        """
        beside = os.path.join(os.path.dirname(sys.executable), "twistd")
        reactor = (f"--reactor={self.reactor}",) if self.reactor else ()
        return (twistd or self.twistd or beside, *reactor, "-n", "--pidfile=", "webhookrx")

    @cached_property
    def receiver_help(self) -> str:
        """What C{twistd webhookrx --help} prints."""
        return subprocess.run((*self.twistd_command(), "--help"), capture_output=True, text=True, check=True).stdout

    def peer(self, module: str) -> str:
        """
        Return the interpreter that has a module of a peer.

        @raise Unavailable: none has it.
        """
        if self.peers_python is None:
            raise Unavailable("the Python peers are not set up")
        if subprocess.run((self.peers_python, "-c", f"import {module}"), capture_output=True).returncode:
            raise Unavailable(f"{module} is not installed for {self.peers_python}")
        return self.peers_python


def program(name: str, *, package: str = "") -> str:
    """
    Return the path of a program.

    @param package: the Debian package that has it, when it is not called the same.
    @raise Unavailable: it is not installed.
    """
    # nginx is in a directory that only root has in its path.
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        raise Unavailable(f"{name} is not installed (Debian package {package or name})")
    return path
