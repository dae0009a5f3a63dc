"""
A read-only file of a spool: it had an I/O error, is damaged, or a newer one exists.

Its read cursor is kept in memory and saved in the newest file; it is removed once all of it is delivered.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from webhookrx.spool.database import USUAL_BATCH
from webhookrx.spool.faults import Fault, fault_of
from webhookrx.spool.rows import ReadCursor

if TYPE_CHECKING:
    from webhookrx.spool.database import SpoolFile
    from webhookrx.spool.rows import DeadLetter, Row, Totals

_READ_TRIES: Final = 60
"""
Failed reads in a row after which unreadable data counts as damaged; the drainer pauses between them, so that is half a
minute. A disk that says C{EIO} for a moment is C{SQLITE_CORRUPT} to SQLite, as one that has lost a page.
"""

_LONGEST_GAP: Final = 100_000
"""Message numbers in a row that may be unreadable; searching that many takes seconds."""


class OldFile:
    """
    Reads a file from its cursor on, past damage if necessary.

    @param file: open; nobody writes to it.
    @param totals: its totals, as far as they are known.
    @param cursor: how far it has been delivered; None when that is unknown.
    @param most: the most messages and bytes of a batch.
    @param is_locked: locks of this process may prevent reading it.
    @ivar oldest: when its first message was received.
    @ivar dead: how many dead letters it has.
    @ivar damaged: some of it could not be read.
    """

    def __init__(
        self,
        file: SpoolFile,
        totals: Totals,
        oldest: int | None,
        cursor: ReadCursor | None = None,
        *,
        damaged: bool = False,
        is_locked: bool = False,
        most: tuple[int, int] = USUAL_BATCH,
    ) -> None:
        self.file = file
        self.oldest = oldest
        self.dead = totals.dead
        self.damaged = damaged
        self._is_locked = is_locked
        self._most = most
        self._offered = totals.offered
        # Without totals, every number may exist.
        self._end = totals.next_id or sys.maxsize
        self._position, self._messages, self._bytes = cursor or (0, totals.messages, totals.bytes)
        self._batch: list[Row] = []
        self._batch_end = 0  # the last number of the batch as it was read
        self._failures = 0
        self._is_damage_known = False

    @property
    def cursor(self) -> ReadCursor:
        """How far it has been delivered."""
        return ReadCursor(self._position, self._messages, self._bytes)

    def read(self) -> list[Row]:
        """
        Return the next batch, and the same again until it is acknowledged; nothing at the end of the file.

        @raise sqlite3.Error: it can't be read now, but perhaps later.
        """
        if not self._batch:
            self._unlock()
            try:
                rows = self.file.read(self._position, *self._most)
                if rows:
                    # Not at the end: reading there succeeds again and again while dead letters can't be read.
                    self._failures = 0
            except sqlite3.Error as error:
                if self._may_pass(error):
                    raise
                self.damaged = True
                rows = self._read_past_damage()
            if rows and rows[0].id <= self._offered:
                rows = [row for row in rows if row.id <= self._offered]
            self._batch = rows
            if rows:
                self._batch_end = rows[-1].id
                self.oldest = rows[0].received or self.oldest
        return self._batch

    def read_dead(self, after: int) -> list[DeadLetter]:
        """
        Return dead letters after a number; nothing at their end, or where they can't be read.

        @raise sqlite3.Error: they can't be read now, but perhaps later.
        """
        self._unlock()
        try:
            letters = self.file.read_dead(after)
        except sqlite3.Error as error:
            if self._may_pass(error):
                raise
            self.damaged = True
            return []
        if not letters:
            self.dead = 0
        return letters

    def ack(self, done: Sequence[int]) -> None:
        """
        Move the cursor past these messages of the batch.

        @raise sqlite3.Error: the batch can't be read.
        """
        gone = set(done)
        left: list[Row] = []
        rows = self.read()
        for place, row in enumerate(rows):
            if not gone:
                left += rows[place:]
                break
            if row.id in gone:
                gone.discard(row.id)
                self._messages = max(0, self._messages - 1)
                self._bytes = max(0, self._bytes - row.size)
                self._position = row.id if not left else self._position
            else:
                left.append(row)
        if self._batch and not left:
            self._position = self._batch_end
        self._batch = left

    def _may_pass(self, error: sqlite3.Error) -> bool:
        """Note a failed read, and tell whether another try may succeed."""
        fault = fault_of(error)
        if fault is Fault.LOCKED:
            self._is_locked = True
            return True
        if fault is Fault.DAMAGED and self._is_damage_known:
            return False
        self._failures += 1
        if self._failures < _READ_TRIES:
            return True
        self._failures = 0
        # From now on a missing page costs no more tries.
        self._is_damage_known = True
        return False

    def _unlock(self) -> None:
        """
        Release all locks of this process on the file, if any may be in the way.

        @raise sqlite3.Error: it can't be opened again now.
        """
        if self._is_locked:
            self.file.reopen_reader()
            self._is_locked = False

    def _read_past_damage(self) -> list[Row]:
        """Return the next message that can be read, wherever the tree of messages can be entered again."""
        first = max(self._position, self.file.first_number - 1)
        for after in range(first, min(self._end, first + _LONGEST_GAP)):
            try:
                return self.file.read(after, count=1)
            except sqlite3.Error:
                continue
        return []
