"""
Reading a file of a spool, through a connection that can't write.
"""

from __future__ import annotations

import errno
import sqlite3
from typing import Final

from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.footprint import PAGE
from webhookrx.spool.rows import (
    NUMBERS_PER_FILE,
    ROW_OVERHEAD,
    DeadLetter,
    ReadCursor,
    Row,
    Totals,
    bad_text_is_damage,
    damage,
    dead_letter_of,
    first_number,
    oldest_of,
    totals_of,
    whole_numbers,
)
from webhookrx.spool.schema import LAST_VERSION, VERSION

SMALL_BATCH: Final = 32
BATCH_MESSAGES: Final = 1000
BATCH_BYTES: Final = 1024**2
"""A batch for the observer has so many messages and about so many bytes at most, or is one larger message."""


def batch_for(waiting: int) -> int:
    """
    Return how many messages a new batch has at most.

    A crash between the observer's word and ours delivers a batch again; so it is small while the observer keeps up,
    and grows with what waits.
    """
    return min(max(waiting // 4, SMALL_BATCH), BATCH_MESSAGES)


class FileReader:
    """
    A file that is there, opened for reading.

    @raise sqlite3.Error: it can't be opened.
    @raise OSError: a later version of this program has made it.
    """

    @bad_text_is_damage()
    def __init__(self, directory: SpoolDirectory, number: int) -> None:
        self.number = number
        self.first_number = first_number(number)
        self._directory = directory
        self._path = directory.path_of(number)
        self._reader = directory.file_system.connect(self._path, read_only=True)
        try:
            self._begin_reading()
            self._version = self._read_version()
            self._places = directory.places(number)
        except BaseException:
            self._reader.close()
            raise

    def _begin_reading(self) -> None:
        # Otherwise nothing at all is read of a file that was cut short.
        self._reader.execute("PRAGMA writable_schema=ON")
        # The first look takes the lock that keeps other connections from copying the log when they close.
        self._reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()

    def reopen(self) -> None:
        """
        Open one that is not written any more anew, so that locks go which this process has of it and can't let go of:
        the system takes them back when all of it is closed. One that has lost its name stays as it is.

        @raise sqlite3.Error: it can't be read yet. Call this again before anything else.
        """
        places = self._directory.places(self.number)
        if any(places.get(part) != self._places.get(part) for part in ("", "-wal")):
            return
        # Neither this nor what is closed before it copies the log: the one is not the last, the other may not write.
        self._reader.close()
        self._reader = self._directory.file_system.connect(self._path, read_only=True)
        self._begin_reading()

    def _read_version(self) -> int:
        """
        @raise OSError: a later version of this program has made it.
        """
        version = int(self._reader.execute("PRAGMA user_version").fetchone()[0])
        if VERSION < version <= LAST_VERSION:
            raise OSError(errno.ENOTSUP, f"{self._path} was made by a later version of webhookrx (version {version})")
        return version

    @bad_text_is_damage()
    def read_totals(self) -> Totals:
        """
        Return the totals.

        @raise sqlite3.Error: they can't be read, or can't be right.
        """
        state = totals_of(self._reader)
        if not 0 <= state.next_id - self.first_number <= NUMBERS_PER_FILE:
            raise damage("its next number is not one of its own")
        return state

    @bad_text_is_damage()
    def check_totals(self) -> None:
        """
        See whether the totals can be right.

        @raise sqlite3.Error: they can't, or can't be read.
        """
        state = self.read_totals()
        (pages,) = self._reader.execute("PRAGMA page_count").fetchone()
        (highest,) = self._reader.execute("SELECT max(id) FROM waiting").fetchone()
        if highest is not None and state.next_id <= whole_numbers([highest])[0]:
            raise damage("its next number is taken")
        for count, size in ((state.messages, state.bytes), (state.dead, state.dead_bytes)):
            if not 0 <= ROW_OVERHEAD * count <= size <= (ROW_OVERHEAD * count + pages * PAGE if count else 0):
                raise damage("its totals can't be right")
        if bool(state.messages) != (highest is not None):
            raise damage("its totals can't be right")

    @bad_text_is_damage()
    def read(self, after: int, count: int = BATCH_MESSAGES, size: int = BATCH_BYTES) -> list[Row]:
        """
        Return the messages that wait behind a number, in order: so many, or of so many bytes, at most, but one at
        least. Where the file is damaged, those before the damage.

        @raise sqlite3.Error: not even the first can be read.
        """
        rows: list[Row] = []
        cursor = self._reader.execute("SELECT id, crc, data FROM waiting WHERE id > ? ORDER BY id", (after,))
        try:
            for found in cursor:
                row = Row.of(*found)
                if row.id <= after:
                    raise damage("its messages are not in order")
                after = row.id
                rows.append(row)
                size -= row.size
                if len(rows) >= count or size <= 0:
                    break
        except sqlite3.Error:
            if not rows:
                raise
        finally:
            # A statement that is not done holds on to its moment, and the log could not be begun anew.
            cursor.close()
        return rows

    @bad_text_is_damage()
    def read_one(self, number: int) -> Row | None:
        """
        Return one message that waits; None when it does not.

        @raise sqlite3.Error: it can't be read.
        """
        found = self._reader.execute("SELECT id, crc, data FROM waiting WHERE id = ?", (number,)).fetchone()
        return None if found is None else Row.of(*found)

    @bad_text_is_damage()
    def oldest(self) -> int | None:
        """
        Return when the first message that waits was received.

        @raise sqlite3.Error: it can't be read.
        """
        return oldest_of(self._reader)

    @bad_text_is_damage()
    def read_dead(self, after: int, count: int = BATCH_MESSAGES, size: int = BATCH_BYTES) -> list[DeadLetter]:
        """
        Return the dead letters behind a number, in order: as L{read}.

        @raise sqlite3.Error: not even the first can be read.
        """
        letters: list[DeadLetter] = []
        cursor = self._reader.execute(
            "SELECT id, received, crc, data, reason, spec, died FROM dead WHERE id > ? ORDER BY id", (after,)
        )
        try:
            for found in cursor:
                letter = dead_letter_of(found)
                letters.append(letter)
                size -= len(letter.data) + ROW_OVERHEAD
                if len(letters) >= count or size <= 0:
                    break
        except sqlite3.Error:
            if not letters:
                raise
        finally:
            cursor.close()
        return letters

    @bad_text_is_damage()
    def read_cursors(self) -> dict[int, ReadCursor]:
        """
        Return how far the files before this one are done, by their numbers.

        @raise sqlite3.Error: it can't be read.
        """
        found = self._reader.execute("SELECT file, id, messages, bytes FROM passed").fetchall()
        return {file: ReadCursor._make(whole_numbers(rest)) for file, *rest in found}
