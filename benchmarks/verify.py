"""
Whether what was answered is in the file: else a figure means nothing.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

import msgspec

from benchmarks.tools import Broken
from benchmarks.traffic import Traffic

NAMES = {
    "ISODATE", "HOST", "MESSAGE", "SOURCE", "SOURCEIP", "SOURCEPORT", "TRANSPORT", "RAWMSG_SIZE", "TAGS", "RCPTID",
}  # fmt: skip
"""What every line has, whoever wrote it."""

SAMPLE_STEP = 509
"""Of so many lines one is looked at in full."""

_PATIENCE = 5.0
"""Seconds that the last lines may take to come."""


class _Line(msgspec.Struct):
    """What is looked at in every line; the rest must be JSON."""

    MESSAGE: str
    RCPTID: str


_read_line = msgspec.json.Decoder(_Line).decode


def verify(path: str, traffic: Traffic, answered: int, *, flattens: bool, settle: float = 0.0) -> int:
    """
    Check a file of messages, then empty it for the next run.

    Every line must be JSON with an id that no other has, and with a body that was sent; there must be one at least for
    each answer. In a sample, every value must be there, and be what was sent.

    @param settle: when the file has not grown for so many seconds, the last lines are in it.
    @return: how many lines there were.
    @raise Broken: something is missing or wrong.
    """
    _wait(path, settle)
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")[:-1]
    if len(lines) < answered:
        raise Broken(f"{answered} messages were answered, and only {len(lines)} are in {path}")
    ids = set()
    for number, line in enumerate(lines):
        try:
            read = _read_line(line)
            if number % SAMPLE_STEP == 0:
                _look_at(json.loads(line), flattens=flattens)
        except ValueError as error:
            raise Broken(f"line {number + 1} of {path} is not as it should be: {error}: {line[:500]!r}") from error
        ids.add(read.RCPTID)
        if read.MESSAGE not in traffic.bodies:
            raise Broken(f"line {number + 1} of {path} has a body that nobody sent: {line[:500]!r}")
    if len(ids) < len(lines):
        raise Broken(f"{len(lines) - len(ids)} lines of {path} have an id that another has")
    # Old lines must not be written to the disk while others are measured.
    os.truncate(path, 0)
    return len(lines)


def _wait(path: str, settle: float) -> None:
    """Wait until a file is there and does not grow any more."""
    deadline = time.monotonic() + _PATIENCE
    size = -1
    while time.monotonic() < deadline:
        time.sleep(settle)
        before, size = size, os.path.getsize(path) if os.path.exists(path) else -1
        if size == before and size >= 0:
            return


def _look_at(values: dict[str, Any], *, flattens: bool) -> None:
    missing = NAMES - values.keys()
    if "PEERPORT" in values:
        # SOURCEIP is then what the proxy says, and it need not say a port.
        missing -= {"SOURCEPORT"}
    if missing:
        raise ValueError(f"it has no {', '.join(sorted(missing))}")
    if len(values["MESSAGE"].encode()) != values["RAWMSG_SIZE"]:
        raise ValueError("RAWMSG_SIZE is wrong")
    if flattens:
        for name, value in flattened(json.loads(values["MESSAGE"])).items():
            if name not in values or values[name] != value:
                raise ValueError(f"{name} is {values.get(name)!r}, not {value!r}")


def flattened(members: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the members of an object, and those of the objects in it with names joined by a dot."""
    values = {}
    for name, value in members.items():
        if isinstance(value, dict) and value:
            values.update(flattened(value, f"{prefix}{name}."))
        else:
            values[prefix + name] = value
    return values
