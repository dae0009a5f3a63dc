"""
The messages that wait, first in, first out, on disk.

One thread appends and another one takes from the head; neither is the reactor's. One lock keeps their transactions
apart, so that SQLite's own, which is waited for by sleeping, is only ever in the way of a person's command. They have
it by turns: who appends waits for one transaction of the other at most, or one copying of the log, and each of these is
bounded in bytes. Reading needs no lock.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from twisted.logger import Logger

from webhookrx.errors import NotStored
from webhookrx.filesystem import DiskSpace
from webhookrx.interfaces import Backlog
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.fair_lock import FairLock
from webhookrx.spool.faults import error_text, is_full
from webhookrx.spool.file_reader import batch_for
from webhookrx.spool.files import SpoolFiles
from webhookrx.spool.footprint import BatchSize
from webhookrx.spool.giving_back import give_back
from webhookrx.spool.old_file import OldFile
from webhookrx.spool.quota import Quota, SpoolFull
from webhookrx.spool.reserve import DiskReserve
from webhookrx.spool.rows import ROW_OVERHEAD, DeadLetter, Row, damage

_DROP_LINES: Final = 10.0
"""Seconds between two log lines about messages that were dropped."""

FULL_LAPSES: Final = 10.0
"""Seconds after which a refusal says nothing any more, if nobody could look for room since."""

_log = Logger()


class SpoolQueue:
    """
    The messages of one directory.

    C{append} belongs to one thread; C{next_batch}, C{ack}, C{refresh} and C{tidy} to another one; L{status} to
    all. All of them but that may wait for the disk. C{open} comes before all of them and C{close} after, in whichever
    thread.

    @param space: refuses what would leave too little room on the file system.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    """

    def __init__(
        self,
        directory: SpoolDirectory,
        room: Quota,
        space: DiskSpace,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._room = room
        self._path = directory.path
        self._reserve = DiskReserve(space, drop_oldest=room.drop_oldest)
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = FairLock()
        self._files = SpoolFiles(directory, clock)
        self._acked: frozenset[int] = frozenset()
        self._refused: BatchSize | None = None  # the last batch for which there was no room; None once there is
        self._refused_until = 0.0
        self._dropped = 0
        self._next_drop_line = 0.0
        self._unsaid_drops = 0

    # -- life ----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """
        Take the directory, making it if need be, and open what is in it. How long that takes does not depend on how
        many messages wait.

        @raise webhookrx.filesystem.InUse: another process has it, or something else in this one.
        @raise OSError: it can't be made or read.
        @raise sqlite3.Error: no file can be made in it.
        """
        self._acked = frozenset()
        self._files.open()

    def close(self) -> None:
        """Let go of it."""
        with self._lock:
            self._files.close()

    def status(self) -> Backlog:
        """Tell what waits, from memory; it does not know whether the observer is away."""
        state, oldest, old = self._files.totals, self._files.oldest, list(self._files.old)
        moments = [file.oldest for file in old if file.cursor.messages and file.oldest is not None]
        moments += [] if oldest is None else [oldest]
        return Backlog(
            messages=state.messages + sum(file.cursor.messages for file in old),
            bytes=state.bytes + sum(file.cursor.bytes for file in old),
            oldest=min(moments, default=None),
            dead=state.dead + sum(file.dead for file in old),
            dropped=self._dropped,
            away=None,
            full=self._refused is not None and self._clock() < self._refused_until,
            damaged=self._files.damaged,
        )

    # -- appending -----------------------------------------------------------------------------------------------

    def append(self, stored: Sequence[bytes]) -> range:
        """
        Add a batch at the end, and return its numbers once it is committed and synced.

        @param stored: as L{webhookrx.message.encoders.encode_stored} makes them.
        @raise webhookrx.errors.NotStored: none of it is; the text says why.
        """
        incoming = BatchSize.of(stored, ROW_OVERHEAD)
        with self._lock:
            try:
                self._files.detach_missing_files()
                file = self._files.begin_if_needed()
                numbers, dropped = self._append(file, stored, incoming)
            except SpoolFull:
                # One that would not even fit into an empty spool says nothing about those that come after it.
                if incoming.size <= self._room.size:
                    self._note_refused(incoming)
                raise
            except (sqlite3.Error, OSError) as error:
                if is_full(error):
                    self._note_refused(incoming)
                    self._begin_log_anew()
                raise NotStored(error_text(error)) from error
            self._refused = None
            self._note_dropped(dropped)
            self._files.checkpoint(file)
            return numbers

    def _append(self, file: SpoolFile, stored: Sequence[bytes], incoming: BatchSize) -> tuple[range, int]:
        """Add a batch, and return its numbers, and how many messages were dropped for it."""
        with self._files.judging(file):
            short = self._reserve.shortage(file, incoming)
        with self._files.writing(file, durable=True) as transaction:
            dropped = self._room.make(
                transaction, self._files.old_bytes, incoming.size, self._wall_clock(), short=short
            )
            numbers = transaction.append(stored)
            state, oldest = transaction.totals(), transaction.oldest()
        self._files.totals, self._files.oldest = state, oldest
        # Once more: only now what is written is safe, if it is where it can be found again.
        self._files.detach_missing_files()
        if self._files.newest is not file:
            raise NotStored("the file of the spool was removed meanwhile")
        return numbers, dropped

    def _begin_log_anew(self) -> None:
        """Copy the log as far as there is room, so that removing has that of the log."""
        if self._files.newest is not None:
            self._files.checkpoint(self._files.newest, at_once=True)

    def _note_refused(self, incoming: BatchSize) -> None:
        self._refused, self._refused_until = incoming, self._clock() + FULL_LAPSES

    def _would_be_taken(self, incoming: BatchSize) -> bool:
        """Tell whether such a batch would be taken now."""
        files = self._files
        try:
            short = self._reserve.shortage(files.newest, incoming)
        except SpoolFull:
            return False
        return self._room.would_make(
            files.totals, files.oldest, files.old_bytes, incoming.size, self._wall_clock(), short=short
        )

    def _note_dropped(self, count: int) -> None:
        self._dropped += count
        self._unsaid_drops += count
        now = self._clock()
        if self._unsaid_drops and now >= self._next_drop_line:
            self._next_drop_line = now + _DROP_LINES
            count, self._unsaid_drops = self._unsaid_drops, 0
            _log.warn("Spool {path} is full: {count} oldest messages dropped", path=self._path, count=count)

    # -- taking --------------------------------------------------------------------------------------------------

    def next_batch(self) -> list[Row]:
        """
        Return the batch at the head: the same that was offered last, as far as it still waits, else a new one. It is
        empty when nothing waits.

        @raise sqlite3.Error: it can't be read now.
        @raise OSError: the next file could not be begun.
        """
        while True:
            with self._lock:
                old, newest = self._files.first_old, self._files.newest
            if old is not None:
                if rows := old.read():
                    return rows
                self._end(old)
                continue
            if newest is None:
                return []
            began = self._clock()
            try:
                rows = newest.read(0)
                if rows and rows[0].id in self._acked:
                    # It would be delivered again and again.
                    raise damage("what was removed is still there")
                return self._offered_of(newest, rows)
            except sqlite3.Error as error:
                # As an old file it is read with more patience.
                with self._lock:
                    if not self._files.has_failed(newest, error, began):
                        raise

    def _offered_of(self, file: SpoolFile, rows: list[Row]) -> list[Row]:
        """Cut what was read to the batch that is, or now becomes, the one that is offered."""
        if not rows:
            return rows
        if rows[0].id <= self._files.offered:
            return [row for row in rows if row.id <= self._files.offered]
        rows = rows[: batch_for(self._files.totals.messages)]
        with self._lock:
            try:
                with self._files.writing(file, durable=False) as transaction:
                    transaction.offer(rows[-1].id)
                    self._files.totals = transaction.totals()
            except sqlite3.Error as error:
                # It is not worth a pause: only after a restart may the batch be another one.
                if not is_full(error):
                    raise
                self._begin_log_anew()
            if self._files.newest is file:
                self._files.offered = rows[-1].id
        return rows

    def ack(self, done: Sequence[int], dead: Sequence[DeadLetter] = ()) -> None:
        """
        Take messages of the batch at the head away: those that the observer has, and those that it has refused.

        @raise sqlite3.Error: they are still there.
        @raise OSError: the same.
        """
        numbers = sorted([*done, *(letter.id for letter in dead)])
        tries = 0
        while True:
            old = self._files.first_old
            if old is not None:
                # Before the lock is taken: it may look long for what can be read behind damage.
                old.read()
            with self._lock:
                self._detach_missing_files()
                if self._files.first_old is not old:
                    continue
                tries += 1
                newest = self._files.newest
                try:
                    self._ack(old, numbers, dead)
                    break
                except sqlite3.Error as error:
                    # A newest file that fails here becomes an old one, and is settled as such.
                    if old is not None or newest is None:
                        raise
                    if is_full(error):
                        self._make_way(newest, error, tries)
                    elif self._files.newest is newest:
                        raise
        self._copy_log()

    def _make_way(self, newest: SpoolFile, error: sqlite3.Error, tries: int) -> None:
        """
        See that what waits is delivered on, although there is no room to note what is done: in memory, as of an old
        file, if copying the log did not help.
        """
        if tries == 1:
            self._begin_log_anew()
        else:
            self._files.give_up(newest, error_text(error))

    def _ack(self, old: OldFile | None, numbers: Sequence[int], dead: Sequence[DeadLetter]) -> None:
        if old is None:
            file = self._files.begin_if_needed()
            with self._files.writing(file, durable=bool(dead)) as transaction:
                transaction.add_dead_letters(dead)
                transaction.remove(numbers)
                state, oldest = transaction.totals(), transaction.oldest()
            self._files.totals, self._files.oldest, self._acked = state, oldest, frozenset(numbers)
        else:
            if dead:
                with self._files.writing(self._files.begin_if_needed(), durable=True) as transaction:
                    transaction.add_dead_letters(dead)
                    self._files.totals = transaction.totals()
            old.ack(numbers)
            self._files.save_cursor(old)

    def _copy_log(self) -> None:
        """Copy the log once that is due, as a turn of its own: who appends does not wait for what came before, too."""
        with self._lock:
            if self._files.newest is not None:
                self._files.checkpoint(self._files.newest)

    def refresh(self) -> None:
        """
        Look at the totals and at the room again: a person's command, or something else on the file system, may have
        changed them.

        @raise sqlite3.Error: they can't be read.
        """
        with self._lock:
            self._detach_missing_files()
            file = self._files.newest
            began = self._clock()
            try:
                self._files.look()
                if self._refused is not None:
                    self._look_for_room(self._refused)
            except sqlite3.Error as error:
                if file is None or not self._files.has_failed(file, error, began):
                    raise

    def _look_for_room(self, refused: BatchSize) -> None:
        """Look whether what was refused would be taken now, and else give back what only others have a use for."""
        if self._would_be_taken(refused):
            self._refused = None
            return
        self._note_refused(refused)
        file = self._files.newest
        if file is not None and file.is_tight:
            try:
                give_back(file, self._clock)
            except sqlite3.OperationalError as error:
                # There is not even room for the moving of pages.
                if not is_full(error):
                    raise
            self._files.checkpoint(file)

    def _detach_missing_files(self) -> None:
        """Leave it, and go on with what can be read: C{append} says what is wrong with the directory."""
        with suppress(OSError):
            self._files.detach_missing_files()

    def tidy(self) -> bool:
        """
        While nothing waits, give some room back to the file system; tell whether there is more to give.

        @raise sqlite3.Error: it could not be done.
        """
        with self._lock:
            file = self._files.newest
            if file is None or self._files.totals.messages:
                return False
            with self._files.judging(file):
                more = give_back(file, self._clock)
                if file.is_tight and not more:
                    file.give_back_log()
        self._copy_log()
        return more

    def _end(self, old: OldFile) -> None:
        """
        Remove an old file, all of which is done, after carrying its dead letters over; put it aside if it is damaged.

        @raise sqlite3.Error: its dead letters can't be carried now.
        @raise OSError: the same.
        """
        with self._lock:
            try:
                # The last one stays until there is a newer one: its number must not be given out again.
                self._files.begin_if_needed()
            except (sqlite3.Error, OSError):
                if old.dead or old.damaged:
                    raise
                self._files.remove_early(old)
                return
        self._carry_dead(old)
        if not old.damaged and old.read():
            # Put back meanwhile, by a person's command that was in the middle of it when the file was given up.
            return
        with self._lock:
            self._files.remove(old)
        # Only now, when what it held is not needed any more and nothing can be copied into it. And without the lock:
        # the file system may take long to take its room back.
        with suppress(sqlite3.Error):
            old.file.close()

    def _carry_dead(self, old: OldFile) -> None:
        after = 0
        while True:
            letters = old.read_dead(after)
            if not letters:
                return
            after = letters[-1].id
            with self._lock, self._files.writing(self._files.begin_if_needed(), durable=True) as transaction:
                transaction.add_dead_letters(letters)
                self._files.totals = transaction.totals()
            self._copy_log()
