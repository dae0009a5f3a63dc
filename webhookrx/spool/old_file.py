"""
A file of a spool that is only read any more: it had an I/O error, is damaged, or another one came after it.

How far it is done is kept in memory, and noted in the newest file; it is removed once all of it is.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from webhookrx.spool.faults import Fault, fault_of
from webhookrx.spool.rows import ReadCursor

if TYPE_CHECKING:
    from webhookrx.spool.database import SpoolFile
    from webhookrx.spool.rows import DeadLetter, Row, Totals

_PATIENCE: Final = 60
"""
So many reads may fail in a row before what can't be read counts as damaged; the drainer pauses between them, so that is
half a minute. A disk that says C{EIO} for a moment is C{SQLITE_CORRUPT} to SQLite, as one that has lost a page.
"""

_LOOKED_FOR: Final = 100_000
"""So many messages in a row may be unreadable; it takes seconds to look for that many."""


class OldFile:
    """
    Reads a file from where it is done so far, past damage if need be.

    @param file: open; nobody writes to it.
    @param state: its totals, as far as they are known.
    @param passed: how far it is done; None when nothing is known of that.
    @param is_locked: locks of this process may be in the way of reading it.
    @ivar oldest: when its first message was received.
    @ivar dead: how many dead letters are in it.
    @ivar damaged: some of it could not be read.
    """

    def __init__(
        self,
        file: SpoolFile,
        state: Totals,
        oldest: int | None,
        passed: ReadCursor | None = None,
        *,
        damaged: bool = False,
        is_locked: bool = False,
    ) -> None:
        self.file = file
        self.oldest = oldest
        self.dead = state.dead
        self.damaged = damaged
        self._is_locked = is_locked
        self._offered = state.offered
        # Where nothing is known of the state, every number may be there.
        self._end = state.next_id or sys.maxsize
        self._position, self._messages, self._bytes = passed or (0, state.messages, state.bytes)
        self._batch: list[Row] = []
        self._batch_end = 0  # the last number of the batch as it was read
        self._failures = 0
        self._is_damage_known = False

    @property
    def cursor(self) -> ReadCursor:
        """How far it is done."""
        return ReadCursor(self._position, self._messages, self._bytes)

    def read(self) -> list[Row]:
        """
        Return what is next, and the same again until it is settled; nothing at its end.

        @raise sqlite3.Error: it can't be read now, but perhaps later.
        """
        if not self._batch:
            self._unlock()
            try:
                rows = self.file.read(self._position)
                if rows:
                    # At its end this goes well again and again while dead letters can't be read.
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
        Return dead letters behind a number; none at their end, or where they can't be read.

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

    def _may_pass(self, error: sqlite3.Error) -> bool:
        """Note that it could not be read, and tell whether another try may go well."""
        fault = fault_of(error)
        if fault is Fault.LOCKED:
            self._is_locked = True
            return True
        if fault is Fault.DAMAGED and self._is_damage_known:
            return False
        self._failures += 1
        if self._failures < _PATIENCE:
            return True
        self._failures = 0
        # The rest of it is not waited for again wherever a page is missing.
        self._is_damage_known = True
        return False

    def _unlock(self) -> None:
        """
        Let go of all locks that this process has of it, if any were in the way.

        @raise sqlite3.Error: it can't be opened again now.
        """
        if self._is_locked:
            self.file.reopen()
            self._is_locked = False

    def ack(self, done: Sequence[int]) -> None:
        """
        Note that these messages of the batch at its head are done.

        @raise sqlite3.Error: they can't be found.
        """
        gone = set(done)
        left: list[Row] = []
        for row in self.read():
            if row.id in gone:
                self._messages = max(0, self._messages - 1)
                self._bytes = max(0, self._bytes - row.size)
                self._position = row.id if not left else self._position
            else:
                left.append(row)
        if self._batch and not left:
            self._position = self._batch_end
        self._batch = left

    def _read_past_damage(self) -> list[Row]:
        """Return the next message that can be read, wherever the tree of messages can be entered again."""
        first = max(self._position, self.file.first_number - 1)
        for after in range(first, min(self._end, first + _LOOKED_FOR)):
            try:
                return self.file.read(after, count=1)
            except sqlite3.Error:
                continue
        return []
