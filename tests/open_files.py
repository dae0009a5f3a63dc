"""
The files that this process has open, told apart, so that a test sees which have come to stay.
"""

from __future__ import annotations

import contextlib
import os


def open_files() -> set[tuple[str, str]]:
    """
    Return number and target of each file that is open. What a test leaves open is in it afterwards and was not before;
    how many there are says less: garbage of other tests may be closed in between.
    """
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the directory itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found
