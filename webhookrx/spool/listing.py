"""
What is known of messages in a file of a spool, without reading the messages: they may be many and large.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhookrx.spool.rows import DeadLetter, Row, bad_text_is_damage, damage

if TYPE_CHECKING:
    import sqlite3

    from webhookrx.spool.directory import SpoolDirectory

TOGETHER: Final = 100
"""Entries that are read in one go."""

_WAITING: Final = "SELECT id, received, length(data) FROM waiting WHERE id > ? AND id < ? ORDER BY id LIMIT ?"
#: As much of a reason, and of the name of an observer, as anybody reads.
_DEAD: Final = """
    SELECT id, received, length(data), substr(reason, 1, 2000), substr(spec, 1, 2000), died
    FROM dead WHERE id > ? AND id < ? ORDER BY id LIMIT ?
"""


class ListedMessage(NamedTuple):
    """
    A message that waits, or a dead letter.

    @ivar received: nanoseconds since the epoch, as C{died}; None when that is damaged.
    @ivar size: bytes of the message.
    @ivar reason: why it was refused for good; None when it waits.
    @ivar spec: the observer that has refused it.
    @ivar died: when that was.
    """

    id: int
    received: int | None
    size: int
    reason: str | None = None
    spec: str = ""
    died: int = 0

    @classmethod
    def of(cls, item: Row | DeadLetter) -> ListedMessage:
        """Return what is known of a message that was read."""
        if isinstance(item, Row):
            return cls(item.id, item.received, len(item.data))
        return cls(item.id, item.received or None, len(item.data), item.reason, item.spec, item.died)


class Listing:
    """
    A file that is there, opened for reading only.

    @raise sqlite3.Error: it can't be opened.
    """

    def __init__(self, directory: SpoolDirectory, number: int) -> None:
        self._db: sqlite3.Connection = directory.file_system.connect(directory.path_of(number), read_only=True)

    def close(self) -> None:
        """Let go of it."""
        self._db.close()

    @bad_text_is_damage()
    def waiting(self, after: int, before: int) -> list[ListedMessage]:
        """
        Return the next messages that wait between two numbers, L{TOGETHER} at most.

        @raise sqlite3.Error: they can't be read.
        """
        return [
            ListedMessage(number, _moment(received), _number(size))
            for number, received, size in self._read(_WAITING, after, before)
        ]

    @bad_text_is_damage()
    def dead(self, after: int, before: int) -> list[ListedMessage]:
        """
        Return the next dead letters between two numbers, L{TOGETHER} at most.

        @raise sqlite3.Error: they can't be read.
        """
        return [
            ListedMessage(number, _moment(received), _number(size), _text(reason), _text(spec), _number(died))
            for number, received, size, reason, spec, died in self._read(_DEAD, after, before)
        ]

    def _read(self, statement: str, after: int, before: int) -> Iterator[tuple[Any, ...]]:
        for found in self._db.execute(statement, (after, before, TOGETHER)).fetchall():
            if not isinstance(found[0], int) or found[0] <= after:
                raise damage("its messages are not in order")
            after = found[0]
            yield found


# Where a file is damaged a value may be of any kind.


def _moment(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
