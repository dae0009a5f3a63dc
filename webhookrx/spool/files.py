"""
The files of a spool: the newest one, which is written, and older ones, which are read-only.

Messages are appended to the newest file. Once a write or sync of it has failed it is never written again: what the
page cache holds and the disk does not would be taken for written by a later sync, which reports success. The next batch
goes to a new file, and the old one is drained first.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Final

from twisted.logger import Logger

from webhookrx.spool.database import USUAL_BATCH, SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.faults import Fault, error_text, fault_of, is_full
from webhookrx.spool.old_file import OldFile
from webhookrx.spool.rows import NO_TOTALS, ReadCursor, Transaction

_CREATE_PAUSE: Final = 0.5
"""Seconds between two tries to create a file."""

LOCKED_TIME: Final = 5.0
"""Seconds that the newest file may be locked. A command of C{webhookrx spool} locks it for a fraction of one."""

_log = Logger()


class FairLock:
    """
    A lock that is granted in the order of requests: a thread that releases a C{threading.Lock} and takes it again at
    once gets it before a waiting thread is awake.
    """

    def __init__(self) -> None:
        self._guard: Final = Lock()
        self._is_held = False
        self._turns: deque[Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return
            turn = Lock()
            turn.acquire()
            self._turns.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._turns:
                # It stays held, by the next thread.
                self._turns.popleft().release()
            else:
                self._is_held = False


class SpoolFiles:
    """
    All files of one directory. Hold C{lock} during calls, but for reading C{newest} and C{old} files.

    @param clock: seconds on the monotonic clock.
    @param most: the most messages and bytes of a batch.
    @ivar lock: serialises transactions.
    @ivar newest: the file that is written; None until one can be created.
    @ivar old: older files, the first one first.
    @ivar totals: those of the newest file, as they were last read.
    @ivar offered: the last number of the batch that was offered from it, also if that could not be saved in it.
    @ivar oldest: when the first waiting message in it was received.
    @ivar damaged: how many files were put aside since the start.
    """

    def __init__(
        self, directory: SpoolDirectory, clock: Callable[[], float], most: tuple[int, int] = USUAL_BATCH
    ) -> None:
        self.lock = FairLock()
        self.newest: SpoolFile | None = None
        self.old: list[OldFile] = []
        self.totals = NO_TOTALS
        self.offered = 0
        self.oldest: int | None = None
        self.damaged = 0
        self._directory = directory
        self._clock = clock
        self._most = most
        self._next_create = 0.0
        self._create_problem = ""
        self._locked_since: float | None = None  # since when the newest file is locked

    # -- opening and closing -------------------------------------------------------------------------------------

    def open(self) -> None:
        """
        Lock the directory, making it if it is missing, and open its files.

        @raise webhookrx.filesystem.InUse: it is locked by another process, or by another observer of this one.
        @raise OSError: it can't be made or read.
        @raise sqlite3.Error: no file can be created in it; a full disk is no error while messages wait.
        """
        self._directory.make()
        self._directory.lock()
        try:
            self._directory.remove_new()
            self._open_files(self._directory.numbers())
            if self.newest is None:
                self._create_unless_full()
            self.refresh_totals()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all files, and unlock the directory."""
        files = [*(old.file for old in self.old), *([] if self.newest is None else [self.newest])]
        self.old, self.newest = [], None
        for file in files:
            with suppress(sqlite3.Error):
                file.close()
        self._directory.unlock()

    def _open_files(self, numbers: Sequence[int]) -> None:
        """Open the newest file for writing, unless it is marked as failed, and the others for reading."""
        cursors: dict[int, ReadCursor] | None = None
        for number in reversed(numbers):
            writable = number == numbers[-1] and not self._directory.is_failed(number)
            file = self._open_file(number, writable)
            if file is None:
                continue
            if file.is_writable:
                self.newest = file
            else:
                self.old.insert(0, _old_file(file, (cursors or {}).get(number), self._most))
            if cursors is None:
                with suppress(sqlite3.Error):
                    cursors = file.read_cursors()

    def _open_file(self, number: int, writable: bool) -> SpoolFile | None:
        """Open a file for writing if C{writable}, else or if that fails for reading; None when neither works."""
        for mode in (True, False) if writable else (False,):
            try:
                return SpoolFile(self._directory, number, writable=mode)
            except sqlite3.Error as error:
                problem = error
            if fault_of(problem) in (Fault.PASSING, Fault.LOCKED):
                raise problem
            self._directory.mark_failed(number)
        path = self._directory.path_of(number)
        _log.error("Spool file {path} can't be read: {problem}", path=path, problem=error_text(problem))
        if fault_of(problem) is Fault.DAMAGED:
            self._put_aside(number)
        return None

    # -- the newest file -----------------------------------------------------------------------------------------

    def refresh_totals(self) -> None:
        """
        Read the totals of the newest file again.

        @raise sqlite3.Error: they can't be read.
        """
        if self.newest is not None:
            self.totals, self.oldest = self.newest.read_totals(), self.newest.oldest()
            self.offered = max(self.offered, self.totals.offered)

    def detach_missing_files(self) -> None:
        """
        Retire the newest file if it was removed or renamed, and restore a removed directory or lock: what is written to
        an unlinked file is gone with this process. What is in it can be read as long as the process runs.

        @raise webhookrx.filesystem.InUse: another process has locked the directory now.
        @raise OSError: the directory can't be made or locked again.
        """
        if self.newest is not None and not self.newest.is_in_place:
            self.retire(self.newest, "it was removed or renamed; what waits in it is lost if this process ends")
        self._directory.restore_lock()

    def ensure_newest(self) -> SpoolFile:
        """
        Return the newest file, after creating it if there is none.

        @raise sqlite3.Error: it can't be created, or the last try was a moment ago.
        @raise OSError: the same.
        """
        if self.newest is not None:
            return self.newest
        if not self._directory.is_locked:
            raise OSError("the spool is closed")
        now = self._clock()
        if now < self._next_create:
            raise OSError(f"no new file could be created: {self._create_problem}")
        try:
            return self._create()
        except (sqlite3.Error, OSError) as error:
            self._next_create = now + _CREATE_PAUSE
            self._create_problem = error_text(error)
            raise

    def _create_unless_full(self) -> None:
        try:
            self._create()
        except (sqlite3.Error, OSError) as error:
            if not self.old or not is_full(error):
                raise
            path = self._directory.path
            _log.error("Spool {path} takes no messages yet: {problem}", path=path, problem=error_text(error))

    def _create(self) -> SpoolFile:
        self._directory.check_links()
        number = self._directory.next_number(max((old.file.number for old in self.old), default=0))
        self._directory.create(number)
        try:
            file = SpoolFile(self._directory, number, writable=True)
            try:
                with file.transaction(durable=False) as transaction:
                    for old in self.old:
                        transaction.save_cursor(old.file.number, old.cursor)
                totals, oldest = file.read_totals(), file.oldest()
            except BaseException:
                file.stop_writing()
                file.close()
                raise
        except BaseException:
            self._directory.remove(number)
            raise
        self.newest, self.totals, self.oldest, self.offered = file, totals, oldest, totals.offered
        self._locked_since = None
        self._directory.remove_marks()
        return file

    @contextmanager
    def writing(self, file: SpoolFile, *, durable: bool) -> Iterator[Transaction]:
        """
        Run a transaction, and L{handle_fault} if it fails.

        @param durable: as for L{SpoolFile.transaction}.
        @raise sqlite3.Error: nothing was written.
        """
        with self.handling_faults(file):
            with file.transaction(durable=durable) as transaction:
                yield transaction
            self._locked_since = None

    @contextmanager
    def handling_faults(self, file: SpoolFile) -> Iterator[None]:
        """
        Pass every error inside to L{handle_fault}, whether of reading, writing or measuring the file.

        @raise sqlite3.Error: the error.
        """
        began = self._clock()
        try:
            yield
        except sqlite3.Error as error:
            self.handle_fault(file, error, began)
            raise

    def handle_fault(self, file: SpoolFile, error: sqlite3.Error, began: float) -> bool:
        """
        Retire a file whose error says that it must not be written again: C{EIO} and damage at once, locks after
        L{LOCKED_TIME}; a full disk never does. Tell whether the file is read-only now.

        @param began: when the failed call began, on the clock: SQLite itself waits long for locks.
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
            self.retire(file, error_text(error), fault)
        return ends

    def retire(self, file: SpoolFile, problem: str, fault: Fault = Fault.FAILED) -> None:
        """Make the newest file an old one: never written or synced again, read to its end."""
        if file is not self.newest:
            return
        self._directory.mark_failed(file.number)
        self.newest = None
        with suppress(sqlite3.Error):
            file.stop_writing()
        totals = self.totals._replace(offered=max(self.totals.offered, self.offered))
        self.old.append(
            OldFile(
                file,
                totals,
                self.oldest,
                damaged=fault is Fault.DAMAGED,
                is_locked=fault is Fault.LOCKED,
                most=self._most,
            )
        )
        self.totals, self.oldest, self.offered = NO_TOTALS, None, 0
        _log.error(
            "Spool file {path} failed: {problem}; it is read-only now, and a new one is created",
            path=self._directory.path_of(file.number),
            problem=problem,
        )

    def checkpoint(self, *, at_once: bool = False) -> None:
        """Copy the log of the newest file once that is due. A failure loses no message, but retires the file."""
        file = self.newest
        if file is not None:
            with suppress(sqlite3.Error), self.handling_faults(file):
                file.checkpoint(at_once=at_once)

    # -- older files ---------------------------------------------------------------------------------------------

    @property
    def first_old(self) -> OldFile | None:
        """The file that is drained now."""
        return self.old[0] if self.old else None

    @property
    def old_bytes(self) -> int:
        """Bytes of messages that wait in older files."""
        return sum(old.cursor.bytes for old in self.old)

    def save_cursor(self, old: OldFile) -> None:
        """Save the cursor of an old file. If that fails, some of it may be delivered twice after a restart."""
        if self.newest is not None:
            with suppress(sqlite3.Error), self.writing(self.newest, durable=False) as transaction:
                transaction.save_cursor(old.file.number, old.cursor)

    def remove_last(self, old: OldFile) -> None:
        """
        Remove a delivered file although there is no newer one: it may occupy the space that a newer one needs.

        @raise OSError: it can't be removed yet.
        """
        if not old.file.has_its_name:
            raise OSError("another file has its name")
        self._directory.remove_last(old.file.number)
        self.old.remove(old)
        with suppress(sqlite3.Error):
            old.file.close()
        self._next_create = 0.0

    def remove(self, old: OldFile) -> None:
        """Remove a delivered file, which stays open; set it aside if it is damaged."""
        self.old.remove(old)
        number = old.file.number
        if not old.file.has_its_name:
            # Whoever put another one there means to keep it.
            _log.error("Another file is in the place of {path}; it is left alone", path=self._directory.path_of(number))
        elif old.damaged:
            left = old.cursor.messages
            self._put_aside(number, f"up to {left} messages of it could not be read" if left else "all was read")
        else:
            self._directory.remove(number)
        if self.newest is not None:
            with suppress(sqlite3.Error), self.writing(self.newest, durable=False) as transaction:
                transaction.delete_cursor(number)

    def _put_aside(self, number: int, remark: str = "nothing of it could be read") -> None:
        self.damaged += 1
        path = self._directory.put_aside(number)
        _log.error("A damaged spool file was put aside: {path}; {remark}", path=path, remark=remark)


def _old_file(file: SpoolFile, cursor: ReadCursor | None, most: tuple[int, int]) -> OldFile:
    """Continue with a file of a former process."""
    try:
        file.check_totals()
        return OldFile(file, file.read_totals(), file.oldest(), cursor, most=most)
    except sqlite3.Error:
        # Without totals; reading shows what is readable.
        return OldFile(file, NO_TOTALS, None, cursor, damaged=True, most=most)
