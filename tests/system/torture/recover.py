"""
What the next start does with what a crash has left, by the same code, in this process.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable
from typing import cast

from tests.specs import parse_observer
from tests.system.receiver import PATIENCE, NotReached
from tests.system.torture.subject import OUTPUT, token_of_line
from webhookrx.interfaces import IBufferingObserver, IMessageObserver
from webhookrx.service import known_observers
from webhookrx.testing import make_message

#: The token of the message that comes after the crash.
LAST = "~0.0.0~"

#: Takes a directory and stores a new message; returns all other tokens that can be read, and whether the new one can.
Recovery = Callable[[str], tuple[set[str], bool]]


def recover_file(directory: str) -> tuple[set[str], bool]:
    """Open the file, and append to it."""
    observer = known_observers.build_observer(parse_observer(f"file:{directory}/{OUTPUT}"), "durable")
    _store_last(observer)
    observer.close()
    return _tokens(directory)


def recover_spool(directory: str) -> tuple[set[str], bool]:
    """Open the spool, add to it, and wait until all that waits there has reached the file behind it."""
    spec = f"spool:{directory}/spool:observer=file:{directory}/{OUTPUT}"
    spool = cast("IBufferingObserver", known_observers.build_observer(parse_observer(spec), "durable"))
    _store_last(spool)
    try:
        _drain(spool)
    finally:
        spool.close()
    return _tokens(directory)


RECOVERIES: dict[str, Recovery] = {"file": recover_file, "spool": recover_spool}


def _store_last(observer: IMessageObserver) -> None:
    observer.open()
    observer.store([observer.prepare(make_message(LAST))])


def _drain(spool: IBufferingObserver) -> None:
    """Wait until nothing waits, closer than C{wait_until} does: this happens ten thousand times."""
    deadline = time.monotonic() + PATIENCE
    while spool.backlog().messages:
        if time.monotonic() > deadline:
            raise NotReached("the spool is not empty")
        time.sleep(0.001)


def _tokens(directory: str) -> tuple[set[str], bool]:
    """Return the tokens in a file and those it was renamed from, without L{LAST}, and whether that was there."""
    tokens = set()
    for path in glob.glob(os.path.join(directory, f"{OUTPUT}*")):
        with open(path, "rb") as file:
            tokens |= {token for line in file.read().split(b"\n")[:-1] if (token := token_of_line(line))}
    return tokens - {LAST}, LAST in tokens
