"""
The compiled path, where it was built: functions in C for what usual requests cost most.

Each returns None for what is not usual, and the Python path beside it decides. They are written in C and not in Cython,
so that they build with a compiler and Python's headers alone, and what runs can be read line by line.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final, Protocol, cast

PURE: Final = "WEBHOOKRX_PURE"
"""The environment variable that turns the compiled path off: with any value but C{0} and an empty one."""


class Compiled(Protocol):
    """The functions of C{webhookrx._speedups}."""

    def text_line(self, body: bytes, before: bytes, after: bytes) -> bytes | None:
        """
        Return C{before}, a text as the inside of a string of JSON, and C{after}.

        @return: None if the body is not UTF-8, is longer than 64 KiB, or holds misleading characters
            (L{webhookrx.message.escapes.MISLEADING}).
        """


def _load() -> tuple[Compiled | None, str]:
    if os.environ.get(PURE, "0") not in ("", "0"):
        return None, f"{PURE} is set"
    try:
        module = import_module("webhookrx._speedups")
    except ImportError as error:
        return None, f"it was not built: {error}"
    return cast(Compiled, module), ""


#: The compiled path, if there is one; and why there is none.
compiled, missing = _load()
