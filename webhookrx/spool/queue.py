"""
The waiting messages of a spool, first in, first out, on disk.

One thread appends and another one takes from the head; neither is the reactor's. A fair lock serialises their
transactions, so that SQLite's own lock, which is waited for by sleeping, is only ever held by a command of
C{webhookrx spool}. C{append} waits for one transaction of the other thread at most, or one copying of the log, and each
of these is bounded in bytes. Reading needs no lock.
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
from webhookrx.interfaces import Backlog, Wants
from webhookrx.spool.batches import Batches
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.faults import damage, error_text, is_full
from webhookrx.spool.files import SpoolFiles
from webhookrx.spool.old_file import OldFile
from webhookrx.spool.quota import BatchSize, Quota, SpoolFull
from webhookrx.spool.rows import DeadLetter, Row

_DROP_LINES: Final = 10.0
"""Seconds between two log lines about dropped messages."""

FULL_LAPSES: Final = 10.0
"""Seconds after which a refusal no longer counts, if room could not be checked since."""

_log = Logger()


class SpoolQueue:
    """
    The messages of one directory.

    C{append} is called in one thread; C{next_batch}, C{ack}, C{refresh} and C{vacuum} in another one; L{status} in any.
    All but L{status} may wait for the disk. C{open} is called before all of them and C{close} after, in any thread.

    @param space: measures free space on the disk.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    @param wants: the batches that the observer wants.
    @ivar batches: how large they are.
    """

    def __init__(
        self,
        directory: SpoolDirectory,
        quota: Quota,
        space: DiskSpace,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
        wants: Wants | None = None,
    ) -> None:
        self._quota = quota
        self._path = directory.path
        self._space = space
        self._clock, self._wall_clock = clock, wall_clock
        self.batches = Batches(wants, quota, clock, wall_clock)
        self._files = SpoolFiles(directory, clock, (self.batches.messages, self.batches.bytes))
        self._refused: BatchSize | None = None  # the last batch for which there was no room; None once there is
        self._refused_until = self._next_drop_line = 0.0
        self._dropped = self._unreported_drops = 0

    def open(self) -> None:
        """
        Lock the directory, making it if it is missing, and open its files. The time that takes does not depend on the
        number of waiting messages.

        @raise webhookrx.filesystem.InUse: it is locked by another process, or by another observer of this one.
        @raise OSError: it can't be made or read.
        @raise sqlite3.Error: no file can be created in it.
        """
        self.batches.forget()
        self._files.open()

    def close(self) -> None:
        """Close the files, and unlock the directory."""
        with self._files.lock:
            self._files.close()

    def status(self) -> Backlog:
        """Return the backlog, from memory; C{away} is for the caller to fill in."""
        totals, oldest, old = self._files.totals, self._files.oldest, list(self._files.old)
        moments = [file.oldest for file in old if file.cursor.messages and file.oldest is not None]
        moments += [] if oldest is None else [oldest]
        return Backlog(
            messages=totals.messages + sum(file.cursor.messages for file in old),
            bytes=totals.bytes + sum(file.cursor.bytes for file in old),
            oldest=min(moments, default=None),
            dead=totals.dead + sum(file.dead for file in old),
            dropped=self._dropped,
            away=None,
            full=self._refused is not None and self._clock() < self._refused_until,
            damaged=self._files.damaged,
        )

    # -- appending -----------------------------------------------------------------------------------------------

    def append(self, stored: Sequence[bytes]) -> range:
        """
        Add a batch at the end, and return its numbers once it is committed and synced.

        @param stored: messages as L{webhookrx.message.encoders.encode_stored} makes them.
        @raise webhookrx.errors.NotStored: none of them is stored; the text says why.
        """
        incoming = BatchSize.of(stored)
        with self._files.lock:
            try:
                self._files.detach_missing_files()
                file = self._files.ensure_newest()
                numbers, dropped = self._append(file, stored, incoming)
            except SpoolFull:
                # A batch that does not even fit into an empty spool says nothing about later ones.
                if incoming.size <= self._quota.size:
                    self._note_refused(incoming)
                raise
            except (sqlite3.Error, OSError) as error:
                if is_full(error):
                    self._note_refused(incoming)
                    # As far as there is room, so that removing can use the space of the log.
                    self._files.checkpoint(at_once=True)
                raise NotStored(error_text(error)) from error
            self._refused = None
            self._report_dropped(dropped)
            self._files.checkpoint()
            return numbers

    def _append(self, file: SpoolFile, stored: Sequence[bytes], incoming: BatchSize) -> tuple[range, int]:
        """Add a batch, and return its numbers, and how many messages were dropped for it."""
        with self._files.handling_faults(file):
            short = self._quota.shortage(self._space, file, incoming)
        with self._files.writing(file, durable=True) as transaction:
            dropped = self._quota.make_room(
                transaction, self._files.old_bytes, incoming.size, self._wall_clock(), short=short
            )
            numbers = transaction.append(stored)
            totals, oldest = transaction.totals(), transaction.oldest()
        self._files.totals, self._files.oldest = totals, oldest
        # Once more: what is written is safe only if it can be found again.
        self._files.detach_missing_files()
        if self._files.newest is not file:
            raise NotStored("the file of the spool was removed meanwhile")
        return numbers, dropped

    def _note_refused(self, incoming: BatchSize) -> None:
        self._refused, self._refused_until = incoming, self._clock() + FULL_LAPSES

    def _has_room(self, incoming: BatchSize) -> bool:
        """Tell whether such a batch would be accepted now."""
        files = self._files
        try:
            short = self._quota.shortage(self._space, files.newest, incoming)
        except SpoolFull:
            return False
        return self._quota.has_room(
            files.totals, files.oldest, files.old_bytes, incoming.size, self._wall_clock(), short=short
        )

    def _report_dropped(self, count: int) -> None:
        self._dropped += count
        self._unreported_drops += count
        now = self._clock()
        if self._unreported_drops and now >= self._next_drop_line:
            self._next_drop_line = now + _DROP_LINES
            count, self._unreported_drops = self._unreported_drops, 0
            _log.warn("Spool {path} is full: {count} oldest messages dropped", path=self._path, count=count)

    # -- taking --------------------------------------------------------------------------------------------------

    def next_batch(self) -> list[Row]:
        """
        Return the batch at the head: the one that was offered last, as far as it still waits, else a new one; empty
        when nothing waits, or a new one still gathers.

        @raise sqlite3.Error: it can't be read now.
        @raise OSError: the next file could not be created.
        """
        while True:
            with self._files.lock:
                old, newest = self._files.first_old, self._files.newest
            if old is not None:
                if rows := old.read():
                    return rows
                self._remove_delivered(old)
                continue
            if newest is None:
                return []
            began = self._clock()
            try:
                if self.gathers() and (newest.first() or 0) > self._files.offered:
                    return []
                rows = newest.read(0, self.batches.messages, self.batches.bytes)
                if rows and self.batches.is_acked(rows[0]):
                    # It would be delivered again and again.
                    raise damage("what was removed is still there")
                return self._offered_of(newest, rows)
            except sqlite3.Error as error:
                # As an old file it is read with more tries.
                with self._files.lock:
                    if not self._files.handle_fault(newest, error, began):
                        raise

    def gathers(self) -> float:
        """Return for how many seconds at most the next batch may still gather, see L{Batches}; in any thread."""
        return self.batches.gathers(self._files.totals, self._files.oldest, is_full=self._refused is not None)

    def _offered_of(self, file: SpoolFile, rows: list[Row]) -> list[Row]:
        """Cut rows to the batch that is offered already, or else to a new one, and save where that ends."""
        if not rows:
            return rows
        self.batches.offered()
        if rows[0].id <= self._files.offered:
            return [row for row in rows if row.id <= self._files.offered]
        rows = rows[: self.batches.count_for(self._files.totals.messages)]
        with self._files.lock:
            try:
                with self._files.writing(file, durable=False) as transaction:
                    transaction.offer(rows[-1].id)
                    self._files.totals = transaction.totals()
            except sqlite3.Error as error:
                # A full disk is not worth a pause: only after a restart may the batch be another one.
                if not is_full(error):
                    raise
                self._files.checkpoint(at_once=True)
            if self._files.newest is file:
                self._files.offered = rows[-1].id
        return rows

    def ack(self, done: Sequence[int], dead: Sequence[DeadLetter] = ()) -> None:
        """
        Remove messages of the batch at the head; those of a large one in several calls.

        @param done: the numbers of those that the observer has stored.
        @param dead: those that it has refused for good; they are kept as dead letters.
        @raise sqlite3.Error: they are still there.
        @raise OSError: the same.
        """
        numbers = sorted([*done, *(letter.id for letter in dead)])
        tries = 0
        while True:
            old = self._files.first_old
            if old is not None:
                # Before the lock is taken: behind damage it may search long for readable rows.
                old.read()
            with self._files.lock:
                self._detach_missing_files()
                if self._files.first_old is not old:
                    continue
                tries += 1
                newest = self._files.newest
                try:
                    self._ack(old, numbers, dead)
                    break
                except sqlite3.Error as error:
                    # A newest file that fails here becomes an old one, and the batch is acknowledged there.
                    if old is not None or newest is None:
                        raise
                    if is_full(error):
                        self._ack_without_room(newest, error, tries)
                    elif self._files.newest is newest:
                        raise
        self._checkpoint()

    def _ack_without_room(self, newest: SpoolFile, error: sqlite3.Error, tries: int) -> None:
        """Without room for a removal, copy the log; then make the file an old one, whose cursor is in memory."""
        if tries == 1:
            self._files.checkpoint(at_once=True)
        else:
            self._files.retire(newest, error_text(error))

    def _ack(self, old: OldFile | None, numbers: Sequence[int], dead: Sequence[DeadLetter]) -> None:
        if old is None:
            file = self._files.ensure_newest()
            with self._files.writing(file, durable=bool(dead)) as transaction:
                transaction.add_dead_letters(dead)
                transaction.remove(numbers)
                totals, oldest = transaction.totals(), transaction.oldest()
            self._files.totals, self._files.oldest = totals, oldest
            self.batches.acked(numbers)
        else:
            self._keep_dead(dead)
            old.ack(numbers)
            self._files.save_cursor(old)

    def _keep_dead(self, letters: Sequence[DeadLetter]) -> None:
        """Add dead letters of an old file to the newest one."""
        if letters:
            with self._files.writing(self._files.ensure_newest(), durable=True) as transaction:
                transaction.add_dead_letters(letters)
                self._files.totals = transaction.totals()

    def _checkpoint(self) -> None:
        """Copy the log once that is due, under a lock of its own, so that C{append} need not wait for both."""
        with self._files.lock:
            self._files.checkpoint()

    def _detach_missing_files(self) -> None:
        """Detach them, and go on with readable ones: C{append} reports what is wrong with the directory."""
        with suppress(OSError):
            self._files.detach_missing_files()

    # -- upkeep --------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """
        Read the totals and measure the room again: a command of C{webhookrx spool}, or another program on the disk, may
        have changed them.

        @raise sqlite3.Error: they can't be read.
        """
        with self._files.lock:
            self._detach_missing_files()
            file = self._files.newest
            began = self._clock()
            try:
                self._files.refresh_totals()
                if self._refused is not None:
                    self._check_room(self._refused)
            except sqlite3.Error as error:
                if file is None or not self._files.handle_fault(file, error, began):
                    raise

    def _check_room(self, refused: BatchSize) -> None:
        """End the state C{full} if the refused batch would be accepted now, else return pages only others can use."""
        if self._has_room(refused):
            self._refused = None
            return
        self._note_refused(refused)
        file = self._files.newest
        if file is not None and file.is_tight:
            try:
                file.vacuum(self._clock)
            except sqlite3.OperationalError as error:
                # There is not even room for moving pages.
                if not is_full(error):
                    raise
            self._files.checkpoint()

    def vacuum(self) -> bool:
        """
        While nothing waits, return some space to the file system; tell whether there is more to return.

        @raise sqlite3.Error: it could not be done.
        """
        with self._files.lock:
            file = self._files.newest
            if file is None or self._files.totals.messages:
                return False
            with self._files.handling_faults(file):
                more = file.vacuum(self._clock)
                if file.is_tight and not more:
                    file.truncate_log()
        self._checkpoint()
        return more

    def _remove_delivered(self, old: OldFile) -> None:
        """
        Remove an old file, all of which is delivered, after moving its dead letters to the newest; put it aside if it
        is damaged.

        @raise sqlite3.Error: its dead letters can't be moved now.
        @raise OSError: the same.
        """
        with self._files.lock:
            try:
                # The last file stays until there is a newer one: its number must not be used again.
                self._files.ensure_newest()
            except (sqlite3.Error, OSError):
                if old.dead or old.damaged:
                    raise
                self._files.remove_last(old)
                return
        self._move_dead(old)
        if not old.damaged and old.read():
            # Put back meanwhile, by a command that was at work when the file was retired.
            return
        with self._files.lock:
            self._files.remove(old)
        # Last, when what it held is not needed any more and nothing can be copied into it. And without the lock: the
        # file system may take long to free its space.
        with suppress(sqlite3.Error):
            old.file.close()

    def _move_dead(self, old: OldFile) -> None:
        after = 0
        while letters := old.read_dead(after):
            after = letters[-1].id
            with self._files.lock:
                self._keep_dead(letters)
            self._checkpoint()
