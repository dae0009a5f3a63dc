"""
The files of a spool: the one that is written, and those before it, which are only read any more.

Messages are appended to the newest file. Once a write or sync of it has failed it is never written again: what the
page cache holds and the disk does not would be taken for written by a later sync, which says that all is well. The
next batch goes to a new file, and the old one is drained first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from twisted.logger import Logger

from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.faults import Fault, error_text, fault_of, is_full
from webhookrx.spool.old_file import OldFile
from webhookrx.spool.rows import ReadCursor, Totals
from webhookrx.spool.schema import create
from webhookrx.spool.transaction import Transaction

_ROLL_PAUSE: Final = 0.5
"""Seconds between two tries to begin a new file."""

LOCKED_TIME: Final = 5.0
"""Seconds that locks may be in the way of the newest file. A person's command has them for a fraction of one."""

_NO_TOTALS: Final = Totals(0, 0, 0, 0, 0, 0)

_log = Logger()


class SpoolFiles:
    """
    All files of one directory. Whoever calls sees to it that nobody else does meanwhile.

    @param clock: seconds on the monotonic clock.
    @ivar newest: the file that is written; None until one can be begun.
    @ivar old: those before it, the first one first.
    @ivar state: the totals of the newest file, as they were looked at last.
    @ivar offered: the last number of the batch that was offered from it, also if that could not be noted in it.
    @ivar oldest: when the first message in it that waits was received.
    @ivar damaged: how many files were put aside since the start.
    """

    def __init__(self, directory: SpoolDirectory, clock: Callable[[], float]) -> None:
        self.newest: SpoolFile | None = None
        self.old: list[OldFile] = []
        self.totals = _NO_TOTALS
        self.offered = 0
        self.oldest: int | None = None
        self.damaged = 0
        self._directory = directory
        self._clock = clock
        self._next_roll = 0.0
        self._roll_problem = ""
        self._locked_since: float | None = None  # since when locks are in the way of the newest file

    # -- opening and closing -------------------------------------------------------------------------------------

    def open(self) -> None:
        """
        Take the directory, making it if need be, and open what is in it.

        @raise webhookrx.filesystem.InUse: another process has it, or something else in this one.
        @raise OSError: it can't be made or read.
        @raise sqlite3.Error: no file can be made in it; not if there is just no room for one, and something waits.
        """
        self._directory.make()
        self._directory.lock()
        try:
            self._directory.remove_new()
            self._open_files(self._directory.numbers())
            if self.newest is None:
                self._begin_unless_full()
            self.look()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        files = [*(old.file for old in self.old), *([] if self.newest is None else [self.newest])]
        self.old, self.newest = [], None
        for file in files:
            with suppress(sqlite3.Error):
                file.close()
        self._directory.unlock()

    def _open_files(self, numbers: Sequence[int]) -> None:
        """Open the newest file for writing, unless it may not be written any more, and the others for reading."""
        passed: dict[int, ReadCursor] | None = None
        for number in reversed(numbers):
            writable = number == numbers[-1] and not self._directory.is_failed(number)
            file = self._open_file(number, writable)
            if file is None:
                continue
            if file.is_writable:
                self.newest = file
            else:
                self.old.insert(0, _old_file(file, (passed or {}).get(number)))
            if passed is None:
                with suppress(sqlite3.Error):
                    passed = file.read_cursors()

    def _open_file(self, number: int, writable: bool) -> SpoolFile | None:
        """Open a file, for reading only if that is how it opens; None when it does not."""
        for mode in (True, False) if writable else (False,):
            try:
                return SpoolFile(self._directory, number, writable=mode)
            except sqlite3.Error as error:
                problem = error
            if fault_of(problem) in (Fault.PASSING, Fault.LOCKED):
                raise problem
            self._directory.mark_failed(number)
        _log.error(
            "Spool file {path} can't be read: {problem}",
            path=self._directory.path_of(number),
            problem=error_text(problem),
        )
        if fault_of(problem) is Fault.DAMAGED:
            self._set_aside(number)
        return None

    # -- the newest ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """
        Look at its totals again.

        @raise sqlite3.Error: they can't be read.
        """
        if self.newest is not None:
            self.totals, self.oldest = self.newest.read_totals(), self.newest.oldest()
            self.offered = max(self.offered, self.totals.offered)

    def detach_missing_files(self) -> None:
        """
        Go on elsewhere if the directory or the newest file was removed or renamed: what is written there would be gone
        with this process. What is in it can be read as long as that runs.

        @raise webhookrx.filesystem.InUse: another process has the directory now.
        @raise OSError: the directory can't be made or locked again.
        """
        if self.newest is not None and not self.newest.is_in_place:
            self.give_up(self.newest, "it was removed or renamed; what waits in it is lost if this process ends")
        self._directory.see_lock()

    def begin_if_needed(self) -> SpoolFile:
        """
        Return the newest file, after making it if need be.

        @raise sqlite3.Error: it can't be made, or was tried a moment ago.
        @raise OSError: the same.
        """
        if self.newest is not None:
            return self.newest
        if not self._directory.is_locked:
            raise OSError("the spool is closed")
        now = self._clock()
        if now < self._next_roll:
            raise OSError(f"no new file could be begun: {self._roll_problem}")
        try:
            return self._begin()
        except (sqlite3.Error, OSError) as error:
            self._next_roll = now + _ROLL_PAUSE
            self._roll_problem = error_text(error)
            raise

    def _begin_unless_full(self) -> None:
        try:
            self._begin()
        except (sqlite3.Error, OSError) as error:
            if not self.old or not is_full(error):
                raise
            _log.error(
                "Spool {path} takes no messages yet: {problem}", path=self._directory.path, problem=error_text(error)
            )

    def _begin(self) -> SpoolFile:
        self._directory.check_links()
        number = self._directory.next_number(max((old.file.number for old in self.old), default=0))
        create(self._directory, number)
        try:
            file = SpoolFile(self._directory, number, writable=True)
            try:
                with file.transaction(durable=False) as transaction:
                    for old in self.old:
                        transaction.save_cursor(old.file.number, old.cursor)
                state, oldest = file.read_totals(), file.oldest()
            except BaseException:
                file.stop_writing()
                file.close()
                raise
        except BaseException:
            self._directory.remove(number)
            raise
        self.newest, self.totals, self.oldest, self.offered = file, state, oldest, state.offered
        self._locked_since = None
        self._directory.remove_marks()
        return file

    @contextmanager
    def writing(self, file: SpoolFile, *, durable: bool) -> Iterator[Transaction]:
        """
        Begin a transaction whose failure decides about its file.

        @param durable: as for L{SpoolFile.transaction}.
        @raise sqlite3.Error: nothing was written.
        """
        with self.judging(file):
            with file.transaction(durable=durable) as transaction:
                yield transaction
            self._locked_since = None

    @contextmanager
    def judging(self, file: SpoolFile) -> Iterator[None]:
        """
        Let what fails inside decide about a file: whatever is read of it, written to it, or asked.

        @raise sqlite3.Error: what has failed.
        """
        began = self._clock()
        try:
            yield
        except sqlite3.Error as error:
            self.has_failed(file, error, began)
            raise

    def checkpoint(self, file: SpoolFile, *, at_once: bool = False) -> None:
        """Copy its log into it once that is due. Where that fails no message is lost, but the file is given up."""
        with suppress(sqlite3.Error), self.judging(file):
            if at_once:
                file.checkpoint()
            else:
                file.checkpoint_if_due()

    def has_failed(self, file: SpoolFile, error: sqlite3.Error, began: float) -> bool:
        """
        Tell whether an error ends the writing of a file, or that has ended; if so, no more is written to it.

        @param began: when that was begun which has failed, as the clock tells: SQLite waits long for locks by itself.
        """
        if file is not self.newest:
            return True
        fault = fault_of(error)
        if fault is Fault.LOCKED:
            since = self._locked_since = began if self._locked_since is None else self._locked_since
            ends = file.is_stuck or self._clock() - since >= LOCKED_TIME
        else:
            ends = file.is_stuck or fault is not Fault.PASSING
        if ends:
            self.give_up(file, error_text(error), fault)
        return ends

    def give_up(self, file: SpoolFile, problem: str, fault: Fault = Fault.FAILED) -> None:
        """Write no more to the newest file; what is in it is read to its end."""
        if file is not self.newest:
            return
        self._directory.mark_failed(file.number)
        self.newest = None
        with suppress(sqlite3.Error):
            file.stop_writing()
        state = self.totals._replace(offered=max(self.totals.offered, self.offered))
        self.old.append(
            OldFile(file, state, self.oldest, damaged=fault is Fault.DAMAGED, is_locked=fault is Fault.LOCKED)
        )
        self.totals, self.oldest, self.offered = _NO_TOTALS, None, 0
        _log.error(
            "Spool file {path} failed: {problem}; it is only read any more, and a new one is begun",
            path=self._directory.path_of(file.number),
            problem=problem,
        )

    # -- those before it -----------------------------------------------------------------------------------------

    @property
    def first_old(self) -> OldFile | None:
        """The one from which messages are taken now."""
        return self.old[0] if self.old else None

    @property
    def old_bytes(self) -> int:
        """Bytes of messages that wait in them."""
        return sum(old.cursor.bytes for old in self.old)

    def save_cursor(self, old: OldFile) -> None:
        """Note how far an old file is done. If it can't be noted, some of it may be delivered twice after a restart."""
        if self.newest is not None:
            with suppress(sqlite3.Error), self.writing(self.newest, durable=False) as transaction:
                transaction.save_cursor(old.file.number, old.cursor)

    def remove_early(self, old: OldFile) -> None:
        """
        Remove an old file, all of which is done, although there is no newer one: it may have the room for that.

        @raise OSError: it can't be removed yet.
        """
        if not old.file.has_its_name:
            raise OSError("another file has its name")
        self._directory.remove_early(old.file.number)
        self.old.remove(old)
        with suppress(sqlite3.Error):
            old.file.close()
        self._next_roll = 0.0

    def remove(self, old: OldFile) -> None:
        """Remove an old file, all of which is done, and which stays open; put it aside if it is damaged."""
        self.old.remove(old)
        number = old.file.number
        if not old.file.has_its_name:
            # Whoever put another one there means to keep it.
            _log.error("Another file is in the place of {path}; it is left alone", path=self._directory.path_of(number))
        elif old.damaged:
            left = old.cursor.messages
            self._set_aside(number, f"up to {left} messages of it could not be read" if left else "all was read")
        else:
            self._directory.remove(number)
        if self.newest is not None:
            with suppress(sqlite3.Error), self.writing(self.newest, durable=False) as transaction:
                transaction.forget(number)

    def _set_aside(self, number: int, remark: str = "nothing of it could be read") -> None:
        self.damaged += 1
        path = self._directory.set_aside(number)
        _log.error("A damaged spool file was put aside: {path}; {remark}", path=path, remark=remark)


def _old_file(file: SpoolFile, passed: ReadCursor | None) -> OldFile:
    """Go on with a file that an earlier process has left."""
    try:
        file.check_totals()
        return OldFile(file, file.read_totals(), file.oldest(), passed)
    except sqlite3.Error:
        # What can be read is found out by reading.
        return OldFile(file, _NO_TOTALS, None, passed, damaged=True)
