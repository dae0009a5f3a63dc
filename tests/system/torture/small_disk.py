"""
A small file system that is really filled.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.torture.proof import Skipped


@contextmanager
def small_file_system(path: str, mib: int = 8, kind: str = "tmpfs") -> Iterator[None]:
    """
    Mount a file system of so many mebibytes.

    @param kind: C{"tmpfs"}, or that of a file that is mounted, such as C{"ext4"}.
    @raise Skipped: we may not.
    """
    if os.geteuid() != 0:
        raise Skipped("only root mounts file systems")
    os.mkdir(path)
    if kind == "tmpfs":
        _run("mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", path)
    else:
        image = f"{path}.{kind}"
        with open(image, "wb") as file:
            file.truncate(mib * 1024**2)
        _run(f"mkfs.{kind}", "-q", image)
        _run("mount", "-o", "loop", image, path)
    try:
        yield
    finally:
        # Lazily: the program under proof may still have a file there when something has gone wrong.
        subprocess.run(["umount", "-l", path], check=True)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Skipped(f"no file system can be made here: {error}") from None
    if done.returncode:
        raise Skipped(f"no file system can be mounted here: {done.stderr.strip()}")
