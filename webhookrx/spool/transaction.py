"""
What is written to a file of a spool together, or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from webhookrx.message.encoders import received_of
from webhookrx.spool.footprint import PAGE
from webhookrx.spool.rows import (
    ROW_OVERHEAD,
    DeadLetter,
    ReadCursor,
    Totals,
    checksum,
    dead_letter_of,
    oldest_of,
    size_of,
    totals_of,
)


class Transaction:
    """
    What can be done to a file, all or nothing. Totals follow by themselves.

    @ivar written: bytes of messages that were written or removed, and of pages that were moved.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.written = 0

    def totals(self) -> Totals:
        """Return the totals as they are now, within the transaction."""
        return totals_of(self._db)

    def oldest(self) -> int | None:
        """Return when the first message that waits was received."""
        return oldest_of(self._db)

    def append(self, stored: Sequence[bytes]) -> range:
        """Add messages at the end, and return their numbers."""
        first = self.totals().next_id
        numbers = range(first, first + len(stored))
        self._db.executemany(
            "INSERT INTO waiting VALUES (?, ?, ?, ?)",
            [
                (number, received_of(data), checksum(number, data), data)
                for number, data in zip(numbers, stored, strict=True)
            ],
        )
        self._count(messages=len(stored), size=size_of(stored))
        self._db.execute("UPDATE state SET next_id = ?", (numbers.stop,))
        return numbers

    def remove(self, numbers: Sequence[int]) -> list[int]:
        """Take messages away that wait, and return the numbers of those that did."""
        if not numbers:
            return []
        found = self._db.execute(
            "SELECT id, coalesce(length(data), 0) FROM waiting WHERE id BETWEEN ? AND ?", (min(numbers), max(numbers))
        )
        sizes = dict(found.fetchall())
        gone = [number for number in numbers if number in sizes]
        self._db.executemany("DELETE FROM waiting WHERE id = ?", [(number,) for number in gone])
        self._count(messages=-len(gone), size=-sum(sizes[number] + ROW_OVERHEAD for number in gone))
        return gone

    def drop_oldest(self, size: int, *, before: int = 0, count: int = 10_000) -> tuple[int, int]:
        """
        Drop from the head: at least so many bytes, and those that were received before a moment.

        @param count: so many at most.
        @return: how many were dropped, and their bytes.
        """
        numbers: list[int] = []
        freed = 0
        found = self._db.execute(
            "SELECT id, coalesce(CAST(received AS INTEGER), 0), coalesce(length(data), 0)"
            " FROM waiting ORDER BY id LIMIT ?",
            (count,),
        )
        for number, received, length in found:
            if freed >= size and received >= before:
                break
            numbers.append(number)
            freed += length + ROW_OVERHEAD
        found.close()
        self.remove(numbers)
        return len(numbers), freed

    def offer(self, last: int) -> None:
        """Note the last message of the batch that is offered, for it to be the same after a restart."""
        self._db.execute("UPDATE state SET offered = ?", (last,))

    def add_dead_letters(self, letters: Iterable[DeadLetter]) -> None:
        """Add dead letters; one that is there already stays."""
        for letter in letters:
            cursor = self._db.execute("INSERT OR IGNORE INTO dead VALUES (?, ?, ?, ?, ?, ?, ?)", letter)
            if cursor.rowcount > 0:
                self._count(dead=1, dead_size=len(letter.data) + ROW_OVERHEAD)

    def take_dead_letter(self, number: int) -> DeadLetter | None:
        """Take a dead letter away and return it; None when there is none of that number."""
        found = self._db.execute(
            "SELECT id, received, crc, data, reason, spec, died FROM dead WHERE id = ?", (number,)
        ).fetchone()
        if found is None:
            return None
        letter = dead_letter_of(found)
        self._db.execute("DELETE FROM dead WHERE id = ?", (number,))
        self._count(dead=-1, dead_size=-len(letter.data) - ROW_OVERHEAD)
        return letter

    def drop_oldest_dead(self, size: int) -> tuple[int, int]:
        """Drop dead letters from the first on: at least so many bytes; return how many, and their bytes."""
        dropped = freed = 0
        while freed < size:
            found = self._db.execute("SELECT id FROM dead ORDER BY id LIMIT 1").fetchone()
            letter = None if found is None else self.take_dead_letter(found[0])
            if letter is None:
                break
            dropped += 1
            freed += len(letter.data) + ROW_OVERHEAD
        return dropped, freed

    def give_back_page(self) -> None:
        """Give the room of a page that holds nothing back to the file system; another page may be moved for it."""
        # One at a time, whatever the number in brackets: a statement stops at each row, and this one's have no columns.
        self._db.execute("PRAGMA incremental_vacuum(1)").close()
        self.written += 2 * PAGE

    def save_cursor(self, file: int, passed: ReadCursor) -> None:
        """Note how far a file before this one is done."""
        self._db.execute("INSERT OR REPLACE INTO passed VALUES (?, ?, ?, ?)", (file, *passed))

    def forget(self, file: int) -> None:
        """Forget a file that is not there any more."""
        self._db.execute("DELETE FROM passed WHERE file = ?", (file,))

    def _count(self, *, messages: int = 0, size: int = 0, dead: int = 0, dead_size: int = 0) -> None:
        self.written += abs(size) + abs(dead_size)
        self._db.execute(
            "UPDATE state SET messages = messages + ?, bytes = bytes + ?, dead = dead + ?, dead_bytes = dead_bytes + ?",
            (messages, size, dead, dead_size),
        )
