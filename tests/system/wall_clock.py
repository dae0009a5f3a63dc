"""
A wall clock that a test sets while processes run, by libfaketime. Their monotonic clock goes on as it is.
"""

from __future__ import annotations

import os
from glob import glob
from typing import Final

LIBRARIES: Final = glob("/usr/lib/*/faketime/libfaketime.so.1")
"""Empty where libfaketime is not installed."""


class WallClock:
    """
    The wall clock of processes that are started with its environment.

    @param path: of the file from which they know it, which is made.
    @param offset: see L{set}.
    """

    def __init__(self, path: str, offset: str = "+0") -> None:
        self._path = os.path.abspath(path)
        self.set(offset)

    def set(self, offset: str) -> None:
        """Set it to an offset from that of the machine, such as C{-1h}."""
        with open(f"{self._path}.new", "w") as file:
            file.write(offset)
        # In one step: processes read it each time that they ask for the time.
        os.rename(f"{self._path}.new", self._path)

    @property
    def environment(self) -> dict[str, str]:
        """What processes need in their environment."""
        return {
            "LD_PRELOAD": LIBRARIES[0],
            "FAKETIME_TIMESTAMP_FILE": self._path,
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    @property
    def command(self) -> tuple[str, ...]:
        """What stands before a command that is run with it."""
        return ("env", *(f"{name}={value}" for name, value in self.environment.items()))
