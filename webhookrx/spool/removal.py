"""
Removing the directory of a spool that nobody needs any more.
"""

from __future__ import annotations

import os
import re
from typing import Final

from webhookrx.filesystem import InUse
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import LOCK, SpoolDirectory

_OURS: Final = re.compile(rf"{LOCK}|[0-9]+\.sqlite(-wal|-shm|-journal)?")


def remove_if_empty(path: str) -> bool:
    """
    Remove a directory if neither messages nor dead letters are in it, and nothing else, such as a damaged file.

    @return: whether it is gone; not if somebody has it.
    @raise OSError: it can't be read or removed.
    @raise sqlite3.Error: a file in it can't be read.
    """
    directory = SpoolDirectory(path)
    try:
        directory.lock()
    except InUse:
        return False
    try:
        numbers = directory.numbers()
        # More than one: what is in the older ones, and how far they are done, is for a drainer to find out.
        if len(numbers) > 1 or not all(_OURS.fullmatch(name) for name in os.listdir(path)):
            return False
        for number in numbers:
            if not _is_empty(directory, number):
                return False
        for number in numbers:
            directory.remove(number)
        os.unlink(os.path.join(path, LOCK))
        os.rmdir(path)
    finally:
        directory.unlock()
    return True


def _is_empty(directory: SpoolDirectory, number: int) -> bool:
    file = SpoolFile(directory, number, writable=False)
    try:
        file.check_totals()
        state = file.read_totals()
    finally:
        file.close()
    return not state.messages and not state.dead
