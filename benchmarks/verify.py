"""
Whether what was answered is in the file: else a figure means nothing.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

from benchmarks.lines import Lines
from benchmarks.tools import Broken
from benchmarks.traffic import Traffic

SAMPLE_STEP = 509
"""Of so many lines one is looked at in full."""

_LONG = 4096
"""Bytes of a line that is nobody's of L{look_for}."""

_PATIENCE = 5.0
"""Seconds that the last lines may take to come."""


def verify(path: str, traffic: Traffic, answered: int, lines: Lines, settle: float = 0.0, patience: float = 0.0) -> int:
    """
    Check a file of messages, then empty it for the next run.

    Every line must be JSON with an id that no other has, and with a body that was sent; there must be one at least for
    each answer. In a sample, every value must be there, and be what was sent.

    @param lines: what they are to be.
    @param settle: when the file has not grown for so many seconds, the last lines are in it.
    @param patience: for so many seconds, lines that are missing are waited for.
    @return: how many lines there were.
    @raise Broken: something is missing or wrong.
    """
    deadline = time.monotonic() + patience
    written = _lines(path, settle)
    while len(written) < answered and time.monotonic() < deadline:
        # On a busy machine it may not have had its turn, although it has answered.
        time.sleep(0.1)
        written = _lines(path, settle)
    if len(written) < answered:
        raise Broken(f"{answered} messages were answered, and only {len(written)} are in {path}")
    ids = set()
    for number, line in enumerate(written):
        try:
            body, identity = lines.read(line)
            if number % SAMPLE_STEP == 0:
                lines.look_at(json.loads(line))
        except ValueError as error:
            raise Broken(f"line {number + 1} of {path} is not as it should be: {error}: {line[:500]!r}") from error
        ids.add(identity)
        if body not in traffic.bodies:
            raise Broken(f"line {number + 1} of {path} has a body that nobody sent: {line[:500]!r}")
    if len(ids) < len(written):
        raise Broken(f"{len(written) - len(ids)} lines of {path} have an id that another has")
    # Old lines must not be written to the disk while others are measured.
    os.truncate(path, 0)
    return len(written)


def _lines(path: str, settle: float) -> list[bytes]:
    _wait(path, settle)
    with open(path, "rb") as file:
        return file.read().split(b"\n")[:-1]


def look_for(path: str, traffic: Traffic, answered: int, lines: Lines, settle: float = 0.0) -> None:
    """
    Check a file of messages that has those of others as well, then empty it.

    @param settle: as for L{verify}.
    @raise Broken: there are fewer lines with a body of C{traffic} than were answered.
    """
    _wait(path, settle)
    found = 0
    with open(path, "rb") as file:
        for line in file:
            if len(line) < _LONG:
                # What others sent need not be of any form.
                with suppress(ValueError):
                    found += lines.read(line)[0] in traffic.bodies
    if found < answered:
        raise Broken(f"{answered} messages were answered, and only {found} are in {path}")
    os.truncate(path, 0)


def _wait(path: str, settle: float) -> None:
    """Wait until a file is there and does not grow any more."""
    deadline = time.monotonic() + _PATIENCE
    size = -1
    while time.monotonic() < deadline:
        time.sleep(settle)
        before, size = size, os.path.getsize(path) if os.path.exists(path) else -1
        if size == before and size >= 0:
            return
