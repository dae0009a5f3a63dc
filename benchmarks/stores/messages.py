"""
What is stored: batches of messages, each of which has an id that no other has.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.traffic import plain_body
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message

RECEIVED = 1_795_000_000_000_000_000
"""Nanoseconds since the epoch."""

_BODIES = tuple(plain_body(number, random.Random(number)).decode() for number in range(1024))


class Ready(NamedTuple):
    """
    A message as a client alone gets it.

    @ivar line: as observers write it, without a line end.
    """

    id: str
    host: str
    received: int
    line: bytes


def message(number: int) -> Message:
    """Return one of many messages, as a receiver makes them."""
    host = f"192.0.2.{number % 200}"
    values: dict[str, str | int] = {
        "HOST": host,
        "MESSAGE": _BODIES[number % len(_BODIES)],
        "SOURCE": "default",
        "SOURCEIP": host,
        "SOURCEPORT": 35790,
        "TRANSPORT": "http",
        "RAWMSG_SIZE": 311,
        "TAGS": ".source.default",
        "RCPTID": f"01a1f8c9307a-c49c42be-{number:010d}",
    }
    return Message(dict(values), RECEIVED + number * 1_000_000)


def ready(made: Message, line: Callable[[Message], bytes] | None = None) -> Ready:
    """
    Return a message as a client alone gets it.

    @param line: makes another line than files have.
    """
    text = encode_line(made)[:-1] if line is None else line(made)
    return Ready(str(made.values["RCPTID"]), str(made.values["HOST"]), made.received, text)
