"""
The directories of workers: the first one has that of the spool itself, and each other one has one inside.

So a receiver that becomes a group, or a larger or smaller one, finds again what waits.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhookrx.settings import Group

_NAME: Final = re.compile(r"worker-([1-9][0-9]{0,5})")


def directory_of(path: str, number: int) -> str:
    """Return the directory of a worker."""
    return os.path.join(path, f"worker-{number}") if number else path


def inside(path: str, *, follow_links: bool) -> dict[int, str]:
    """
    Return the directories of workers that are there besides the first one's, by their numbers and in their order.

    @param follow_links: take what is linked to for one, too.
    """
    found = {}
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=follow_links):
                found[int(match[1])] = entry.path
    return dict(sorted(found.items()))


def left_to(path: str, group: Group) -> list[str]:
    """Return those that nobody of a group has, and that this worker of it sees to."""
    return [
        directory
        for number, directory in inside(path, follow_links=True).items()
        if number >= group.size and number % group.size == group.number
    ]
