"""
Earlier versions of webhookrx, out of this repository's history, each installed once into an environment of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache

from benchmarks.provision import cache_directory
from benchmarks.tools import ROOT, Unavailable

COMMITS = {"26.11.3": "d23eea6d5749e567a7cf19d6525990e2202d2b8a"}
"""The last commit of each version, for nothing in the history is tagged."""

_PATIENCE = 600
"""Seconds that an installation may take."""


@cache
def twistd(version: str) -> str:
    """
    Return the C{twistd} of a version, installed when it is not yet.

    @raise Unavailable: this is no clone with its history, or the version can't be installed.
    """
    commit = COMMITS[version]
    name = f"webhookrx-{version}-{commit[:7]}-python-{sys.version_info[0]}.{sys.version_info[1]}"
    directory = os.path.join(cache_directory(), name)
    found = os.path.join(directory, "bin", "twistd")
    stamp = os.path.join(directory, "installed")
    if not os.path.exists(stamp):
        shutil.rmtree(directory, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="webhookrx-release-") as sources:
            _unpack(commit, sources)
            _run(f"{version} can't be installed", sys.executable, "-m", "venv", directory)
            python = os.path.join(directory, "bin", "python")
            pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
            _run(f"{version} can't be installed", *pip, sources)
        with open(stamp, "w", encoding="ascii"):
            pass
    return found


def _unpack(commit: str, directory: str) -> None:
    archive = os.path.join(directory, "archive.tar")
    _run(
        f"the history of this checkout has no commit {commit[:7]}",
        "git", "-C", ROOT, "archive", "--format=tar", f"--output={archive}", commit,
    )  # fmt: skip
    with tarfile.open(archive) as file:
        file.extractall(directory, filter="data")
    os.unlink(archive)


def _run(problem: str, *command: str) -> None:
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=_PATIENCE,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{problem}: {error}") from error
    if ended.returncode:
        raise Unavailable(f"{problem}: {ended.stdout[-300:].strip()}")
