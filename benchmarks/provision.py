"""
Getting what the benchmarks need: peers from the package index into an environment of their own, programs from Debian.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from benchmarks.tools import ECHO_MODULE, Unavailable, program

REQUIREMENTS = (
    "uvicorn>=0.54", "httptools>=0.9", "uvloop>=0.22", "orjson>=3.13", "tornado>=6.6", "aiohttp>=3.14", "granian>=2.8",
    "matplotlib>=3.11",
)  # fmt: skip
"""The peers, and what draws the plot."""

_PATIENCE = 600
"""Seconds that an installation may take."""


def cache_directory() -> str:
    """Return where installed things stay for the next run."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "webhookrx-benchmarks")


def peers_python(say: Callable[[str], None]) -> str | None:
    """
    Return an interpreter with all that is required, made in the user's cache directory when it is not there yet.

    What can't be installed is told and left out; None when no environment can be made at all.
    """
    directory = os.path.join(cache_directory(), f"peers-{sys.version_info[0]}.{sys.version_info[1]}")
    python = os.path.join(directory, "bin", "python")
    stamp = os.path.join(directory, "installed")
    if _read(stamp) == "\n".join(REQUIREMENTS):
        return python
    say(f"Installing the Python peers into {directory}")
    shutil.rmtree(directory, ignore_errors=True)
    if not _succeeds((sys.executable, "-m", "venv", directory), say):
        return None
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    if _succeeds((*pip, *REQUIREMENTS), say):
        with open(stamp, "w", encoding="utf-8") as file:
            file.write("\n".join(REQUIREMENTS))
    else:
        # One that this machine can't have must not keep out the others.
        for requirement in REQUIREMENTS:
            _succeeds((*pip, requirement), say)
    return python


def debian_packages(say: Callable[[str], None]) -> None:
    """Install the programs that are missing, when this is Debian and we are root; say what stays missing otherwise."""
    missing = [package for package in ("wrk", "nginx", "strace", "valgrind") if not _is_there(package)]
    if not os.path.exists(ECHO_MODULE):
        missing.append("libnginx-mod-http-echo")
    if not missing:
        return
    if os.geteuid() or not shutil.which("apt-get"):
        say(f"Not installed, so some runs are left out: {' '.join(missing)}")
        return
    say(f"Installing {' '.join(missing)}")
    apt = ("apt-get", "-qq", "-o", "Dpkg::Use-Pty=0")
    _succeeds((*apt, "update"), say)
    for package in missing:
        _succeeds((*apt, "install", "-y", "--no-install-recommends", "--no-remove", package), say)


def _is_there(name: str) -> bool:
    try:
        program(name)
    except Unavailable:
        return False
    return True


def _succeeds(command: tuple[str, ...], say: Callable[[str], None]) -> bool:
    """Return whether a command succeeds; if not, the end of what it says is told."""
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"{command[0]} failed: {error}")
        return False
    if ended.returncode:
        say(f"{' '.join(command)} failed: {ended.stdout[-500:].strip()}")
    return not ended.returncode


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()
