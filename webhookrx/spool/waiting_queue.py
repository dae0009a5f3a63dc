"""
The messages that wait, first in, first out, on disk.

One thread appends and another one takes from the head; neither is the reactor's. One lock keeps their transactions
apart, so that SQLite's own, which is waited for by sleeping, is only ever in the way of a person's command. Reading
needs no lock.

Messages are appended to the newest file. Once a write or sync of it has failed it is never written again: what the
page cache holds and the disk does not would be taken for written by a later sync, which says that all is well. The
next batch goes to a new file, and the old one is drained first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Final, NamedTuple

from twisted.logger import Logger

from webhookrx.disk_space import DiskSpace
from webhookrx.errors import NotStored
from webhookrx.spool import spool_file
from webhookrx.spool.faults import Fault, fault_of, text_of
from webhookrx.spool.old_file import OldFile
from webhookrx.spool.room import Room, SpoolFull
from webhookrx.spool.spool_directory import SpoolDirectory
from webhookrx.spool.spool_file import DeadLetter, Row, SpoolFile, State, Transaction, batch_for, damage, size_of

_ROLL_PAUSE: Final = 0.5
"""Seconds between two tries to begin a new file."""

_DROP_LINES: Final = 10.0
"""Seconds between two log lines about messages that were dropped."""

_IDLE_PAGES: Final = 4096
"""More free pages than this are given back while nothing waits, so many at a time."""

_CARRIED: Final = 200
"""Dead letters that are carried to the newest file in one transaction."""

_NOTHING: Final = State(0, 0, 0, 0, 0, 0)

_log = Logger()


class Standing(NamedTuple):
    """
    What waits: fields as in L{webhookrx.interfaces.Backlog}.

    @ivar damaged: files that were put aside since the start.
    """

    messages: int
    bytes: int
    oldest: int | None
    dead: int
    dropped: int
    damaged: int
    full: bool


class WaitingQueue:
    """
    All files of one directory.

    C{append} belongs to one thread; C{next_batch}, C{settle}, C{refresh} and C{tidy} to another one; L{standing} to
    all. All of them but that may wait for the disk.

    @param space: refuses what would leave too little room on the file system.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    """

    def __init__(
        self,
        directory: SpoolDirectory,
        room: Room,
        space: DiskSpace,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._directory = directory
        self._room = room
        self._space = space
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = Lock()
        self._newest: SpoolFile | None = None
        self._old: list[OldFile] = []
        self._state = _NOTHING
        self._oldest: int | None = None
        self._settled: frozenset[int] = frozenset()
        self._full = False
        self._dropped = 0
        self._damaged = 0
        self._next_roll = 0.0
        self._roll_problem = ""
        self._next_drop_line = 0.0
        self._unsaid_drops = 0

    # -- life ----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """
        Take the directory, making it if need be, and open what is in it. How long that takes does not depend on how
        many messages wait.

        @raise webhookrx.spool.spool_directory.InUse: another process has it.
        @raise OSError: it can't be made or read.
        @raise sqlite3.Error: no file can be made in it.
        """
        self._directory.make()
        self._directory.lock()
        try:
            self._directory.remove_new()
            self._open_files(self._directory.numbers())
            if self._newest is None:
                self._begin_file()
            self._look_at(self._newest)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        with self._lock:
            files = [*(old.file for old in self._old), *([] if self._newest is None else [self._newest])]
            self._old, self._newest = [], None
            for file in files:
                with suppress(sqlite3.Error):
                    file.close()
        self._directory.unlock()

    def standing(self) -> Standing:
        """Tell what waits, from memory."""
        state, old = self._state, list(self._old)
        moments = [file.oldest for file in old if file.passed.messages and file.oldest is not None]
        moments += [] if self._oldest is None else [self._oldest]
        return Standing(
            messages=state.messages + sum(file.passed.messages for file in old),
            bytes=state.bytes + sum(file.passed.bytes for file in old),
            oldest=min(moments, default=None),
            dead=state.dead + sum(file.dead for file in old),
            dropped=self._dropped,
            damaged=self._damaged,
            full=self._full,
        )

    # -- appending -----------------------------------------------------------------------------------------------

    def append(self, stored: Sequence[bytes]) -> range:
        """
        Add a batch at the end, and return its numbers once it is committed and synced.

        @param stored: as L{webhookrx.message.stored.encode_stored} makes them.
        @raise webhookrx.errors.NotStored: none of it is; the text says why.
        """
        incoming = size_of(stored)
        with self._lock:
            try:
                file = self._begin_if_needed()
                short = self._is_short(incoming)
                with self._writing(file, durable=True) as transaction:
                    dropped = self._make_room(transaction, incoming, short)
                    numbers = transaction.append(stored)
                    state, oldest = transaction.state(), transaction.oldest()
            except SpoolFull:
                self._full = True
                raise
            except (sqlite3.Error, OSError) as error:
                raise NotStored(text_of(error)) from error
            self._state, self._oldest, self._full = state, oldest, False
            self._note_dropped(dropped)
            self._checkpoint(file)
            return numbers

    def _is_short(self, incoming: int) -> bool:
        """
        Tell whether the file system has reached its floor and only what is dropped makes room.

        @raise SpoolFull: it has, and nothing may be dropped.
        """
        try:
            self._space.check(incoming)
        except OSError as error:
            if not self._room.drop_oldest:
                raise SpoolFull(str(error.strerror)) from error
            return True
        return False

    def _make_room(self, transaction: Transaction, incoming: int, short: bool) -> int:
        elsewhere = sum(old.passed.bytes for old in self._old)
        return self._room.make(transaction, elsewhere, incoming, self._wall_clock(), short=short)

    def _note_dropped(self, count: int) -> None:
        self._dropped += count
        self._unsaid_drops += count
        now = self._clock()
        if self._unsaid_drops and now >= self._next_drop_line:
            self._next_drop_line = now + _DROP_LINES
            count, self._unsaid_drops = self._unsaid_drops, 0
            _log.warn("Spool {path} is full: {count} oldest messages dropped", path=self._directory.path, count=count)

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
                old, newest = self._old[0] if self._old else None, self._newest
            if old is not None:
                if rows := old.read():
                    return rows
                # The last one stays until there is a newer one: its number must not be given out again.
                with self._lock:
                    self._begin_if_needed()
                self._end(old)
                continue
            if newest is None:
                return []
            try:
                rows = newest.read(0)
                if rows and rows[0].id in self._settled:
                    # It would be delivered again and again.
                    raise damage("what was removed is still there")
                return self._offered_of(newest, rows)
            except sqlite3.Error as error:
                # As an old file it is read with more patience.
                with self._lock:
                    if not self._has_failed(newest, error):
                        raise

    def _offered_of(self, file: SpoolFile, rows: list[Row]) -> list[Row]:
        """Cut what was read to the batch that is, or now becomes, the one that is offered."""
        if not rows:
            return rows
        if rows[0].id <= self._state.offered:
            return [row for row in rows if row.id <= self._state.offered]
        rows = rows[: batch_for(self._state.messages)]
        with self._lock, self._writing(file, durable=False) as transaction:
            transaction.offer(rows[-1].id)
            self._state = transaction.state()
        return rows

    def settle(self, done: Sequence[int], dead: Sequence[DeadLetter] = ()) -> None:
        """
        Take messages of the batch at the head away: those that the observer has, and those that it has refused.

        @raise sqlite3.Error: they are still there.
        @raise OSError: the same.
        """
        numbers = sorted([*done, *(letter.id for letter in dead)])
        with self._lock:
            while True:
                old = self._old[0] if self._old else None
                try:
                    self._settle(old, numbers, dead)
                    return
                except sqlite3.Error as error:
                    # A newest file that fails here becomes an old one, and is settled as such.
                    if old is not None or fault_of(error) is Fault.PASSING:
                        raise

    def _settle(self, old: OldFile | None, numbers: Sequence[int], dead: Sequence[DeadLetter]) -> None:
        if old is None:
            file = self._begin_if_needed()
            with self._writing(file, durable=bool(dead)) as transaction:
                transaction.bury(dead)
                transaction.remove(numbers)
                state, oldest = transaction.state(), transaction.oldest()
            self._state, self._oldest, self._settled = state, oldest, frozenset(numbers)
            self._checkpoint(file)
        else:
            if dead:
                with self._writing(self._begin_if_needed(), durable=True) as transaction:
                    transaction.bury(dead)
                    self._state = transaction.state()
            old.settle(numbers)
            self._note_passed(old)
        self._full = False

    def refresh(self) -> None:
        """
        Look at the totals again: a person's command may have changed them.

        @raise sqlite3.Error: they can't be read.
        """
        with self._lock:
            file = self._newest
            try:
                self._look_at(file)
            except sqlite3.Error as error:
                if file is None or not self._has_failed(file, error):
                    raise

    def tidy(self) -> bool:
        """
        While nothing waits, give some room back to the file system; tell whether there is more to give.

        @raise sqlite3.Error: it could not be done.
        """
        with self._lock:
            file = self._newest
            if file is None or self._state.messages:
                return False
            try:
                more = file.give_back(_IDLE_PAGES)
            except sqlite3.Error as error:
                self._has_failed(file, error)
                raise
            self._checkpoint(file)
            return more

    # -- files ---------------------------------------------------------------------------------------------------

    def _open_files(self, numbers: Sequence[int]) -> None:
        """Open the newest file for writing, unless it may not be written any more, and the others for reading."""
        passed: dict[int, spool_file.Passed] | None = None
        for number in reversed(numbers):
            writable = number == numbers[-1] and not self._directory.is_failed(number)
            file = self._open_file(number, writable)
            if file is None:
                continue
            if file.is_writable:
                self._newest = file
            else:
                self._old.insert(0, _old_file(file, (passed or {}).get(number)))
            if passed is None:
                with suppress(sqlite3.Error):
                    passed = file.read_passed()

    def _open_file(self, number: int, writable: bool) -> SpoolFile | None:
        """Open a file, for reading only if that is how it opens; None when it does not."""
        for mode in (True, False) if writable else (False,):
            try:
                return SpoolFile(self._directory, number, writable=mode)
            except sqlite3.Error as error:
                problem = error
            if fault_of(problem) is Fault.PASSING:
                raise problem
            self._directory.mark_failed(number)
        _log.error(
            "Spool file {path} can't be read: {problem}", path=self._directory.path_of(number), problem=text_of(problem)
        )
        if fault_of(problem) is Fault.DAMAGED:
            self._set_aside(number)
        return None

    def _look_at(self, file: SpoolFile | None) -> None:
        if file is not None:
            self._state, self._oldest = file.read_state(), file.oldest()

    def _begin_if_needed(self) -> SpoolFile:
        """
        Return the newest file, after making it if need be.

        @raise sqlite3.Error: it can't be made, or was tried a moment ago.
        @raise OSError: the same.
        """
        if self._newest is not None:
            return self._newest
        now = self._clock()
        if now < self._next_roll:
            raise OSError(f"no new file could be begun: {self._roll_problem}")
        try:
            return self._begin_file()
        except (sqlite3.Error, OSError) as error:
            self._next_roll = now + _ROLL_PAUSE
            self._roll_problem = text_of(error)
            raise

    def _begin_file(self) -> SpoolFile:
        number = self._directory.next_number()
        spool_file.create(self._directory, number)
        try:
            file = SpoolFile(self._directory, number, writable=True)
            try:
                with file.transaction(durable=False) as transaction:
                    for old in self._old:
                        transaction.pass_over(old.file.number, old.passed)
                self._look_at(file)
            except BaseException:
                file.stop_writing()
                file.close()
                raise
        except BaseException:
            self._directory.remove(number)
            raise
        self._newest = file
        return file

    @contextmanager
    def _writing(self, file: SpoolFile, *, durable: bool) -> Iterator[Transaction]:
        """Begin a transaction whose failure decides about its file."""
        try:
            with file.transaction(durable=durable) as transaction:
                yield transaction
        except sqlite3.Error as error:
            self._has_failed(file, error)
            raise

    def _checkpoint(self, file: SpoolFile) -> None:
        try:
            file.checkpoint_if_due()
        except sqlite3.Error as error:
            self._has_failed(file, error)

    def _has_failed(self, file: SpoolFile, error: sqlite3.Error) -> bool:
        """Tell whether an error ends the writing of a file; if so, no more is written to it."""
        fault = fault_of(error)
        if fault is Fault.PASSING and not file.is_stuck:
            return False
        if file is self._newest:
            self._directory.mark_failed(file.number)
            self._newest = None
            with suppress(sqlite3.Error):
                file.stop_writing()
            self._old.append(OldFile(file, self._state, self._oldest, damaged=fault is Fault.DAMAGED))
            self._state, self._oldest = _NOTHING, None
            _log.error(
                "Spool file {path} failed: {problem}; it is only read any more, and a new one is begun",
                path=self._directory.path_of(file.number),
                problem=text_of(error),
            )
        return True

    def _note_passed(self, old: OldFile) -> None:
        """Note how far an old file is done. If it can't be noted, some of it may be delivered twice after a restart."""
        if self._newest is not None:
            with suppress(sqlite3.Error), self._writing(self._newest, durable=False) as transaction:
                transaction.pass_over(old.file.number, old.passed)

    def _end(self, old: OldFile) -> None:
        """
        Remove an old file, all of which is done, after carrying its dead letters over; put it aside if it is damaged.

        @raise sqlite3.Error: its dead letters can't be carried now.
        @raise OSError: the same.
        """
        self._carry_dead(old)
        with self._lock:
            self._old.remove(old)
            number = old.file.number
            if old.damaged:
                left = old.passed.messages
                self._set_aside(number, f"up to {left} messages of it could not be read" if left else "all was read")
            else:
                self._directory.remove(number)
            # Only now: what it held is not needed any more, and nothing can be copied into it.
            with suppress(sqlite3.Error):
                old.file.close()
            if self._newest is not None:
                with suppress(sqlite3.Error), self._writing(self._newest, durable=False) as transaction:
                    transaction.forget(number)

    def _carry_dead(self, old: OldFile) -> None:
        after = 0
        while True:
            try:
                letters = old.file.read_dead(after, _CARRIED)
            except sqlite3.Error:
                old.damaged = True
                return
            if not letters:
                old.dead = 0
                return
            after = letters[-1].id
            with self._lock, self._writing(self._begin_if_needed(), durable=True) as transaction:
                transaction.bury(letters)
                self._state = transaction.state()

    def _set_aside(self, number: int, remark: str = "nothing of it could be read") -> None:
        self._damaged += 1
        path = self._directory.set_aside(number)
        _log.error("A damaged spool file was put aside: {path}; {remark}", path=path, remark=remark)


def _old_file(file: SpoolFile, passed: spool_file.Passed | None) -> OldFile:
    """Go on with a file that an earlier process has left."""
    try:
        return OldFile(file, file.read_state(), file.oldest(), passed)
    except sqlite3.Error:
        # What can be read is found out by reading.
        return OldFile(file, _NOTHING, None, passed, damaged=True)
