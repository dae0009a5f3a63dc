"""
A spool for people: what waits, what was refused for good, and putting dead letters back or dropping messages.

It works beside a running receiver, and without one. Only the newest file is ever changed; the receiver drains older
ones and removes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from webhookrx.errors import WebhookrxError
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory, open_to_others
from webhookrx.spool.rows import DeadLetter, ListedMessage, ReadCursor, Row
from webhookrx.spool.untrusted_files import UntrustedFileSystem
from webhookrx.spool.workers import directory_of, worker_directories

if TYPE_CHECKING:
    from webhookrx.spool.rows import Transaction

    _Change = Callable[[Transaction, int], "ChangeResult"]

HIGHEST: Final = 2**63 - 1
"""The highest number that a message can have: SQLite's largest."""

_TOGETHER: Final = 100
_BYTES_TOGETHER: Final = 1024**2
_TIME_TOGETHER: Final = 0.05
"""Changes in one transaction, and about so many bytes and seconds: a running receiver can store nothing meanwhile."""

_PAUSE: Final = 0.025
"""The shortest pause between two transactions, in seconds; each is as long as the last transaction took."""


class AdminError(WebhookrxError):
    """Something can't be done; the text is one line for people."""


class NoSpool(AdminError):
    """A directory is not that of a spool."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} holds no spool")


class SpoolTotals(NamedTuple):
    """
    Totals of a spool, or of one directory of it.

    @ivar oldest: when the first waiting message was received, nanoseconds since the epoch; None when none waits.
    """

    messages: int
    bytes: int
    oldest: int | None
    dead: int
    dead_bytes: int


class MessageRef(NamedTuple):
    """
    The name of a message on the command line: C{42}, or C{worker-1/42}.

    @ivar worker: 0 for the first one.
    @ivar id: its number in the spool of that worker.
    """

    worker: int
    id: int

    def __str__(self) -> str:
        return directory_of("", self.worker) + f"/{self.id}" if self.worker else str(self.id)


class ChangeResult(NamedTuple):
    """
    The result of a command for one message.

    @ivar new_id: its number in the queue now, if it was put back.
    @ivar problem: why it was not changed; empty if it was.
    """

    id: int
    new_id: int | None = None
    problem: str = ""


class DirectoryAdmin:
    """
    One directory of a spool, which is never made or locked.

    @param path: of an existing spool.
    @param sleep: waits so many seconds.
    @param clock: seconds on the monotonic clock.
    @ivar caution: a warning about the permissions of the directory; None if they are right.
    @raise NoSpool: it holds no spool.
    @raise AdminError: it can't be read.
    @raise webhookrx.spool.untrusted_files.NoSpoolFile: a file was not made by a spool, here and from any method.
    @raise sqlite3.Error: a file can't be read.
    """

    def __init__(
        self,
        path: str,
        file_system: UntrustedFileSystem | None = None,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file_system = UntrustedFileSystem() if file_system is None else file_system
        self._directory = SpoolDirectory(path, self._file_system)
        self._sleep = sleep
        self._clock = clock
        try:
            self._directory.check_links()
            numbers = self._directory.numbers()
        except OSError as error:
            raise AdminError(f"{path!r}: {error.strerror}") from error
        if not numbers:
            raise NoSpool(path)
        self.caution = open_to_others(path)
        self._files: list[SpoolFile] = []
        try:
            with self._file_system.in_time():
                for number in numbers:
                    self._files.append(SpoolFile(self._directory, number, writable=False))
                self._cursors = self._files[-1].read_cursors()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def totals(self) -> SpoolTotals:
        """Return the totals."""
        with self._file_system.in_time():
            found = [file.read_totals() for file in self._files]
        left = [self._cursor_of(file, each.messages, each.bytes) for file, each in zip(self._files, found, strict=True)]
        oldest = next((entry.received for entry in self.waiting()), None)
        return SpoolTotals(
            messages=max(0, sum(cursor.messages for cursor in left)),
            bytes=max(0, sum(cursor.bytes for cursor in left)),
            oldest=oldest,
            dead=max(0, sum(each.dead for each in found)),
            dead_bytes=max(0, sum(each.dead_bytes for each in found)),
        )

    def waiting(self, before: int = HIGHEST) -> Iterator[ListedMessage]:
        """
        List the waiting messages, in order.

        @param before: only those of lower numbers.
        """
        for file in self._files:
            yield from self._pages(file.list_waiting, self._cursor_of(file).id, before)

    def dead(self, before: int = HIGHEST) -> Iterator[ListedMessage]:
        """List the dead letters, in the order of their numbers. The parameter is that of L{waiting}."""
        for file in self._files:
            yield from self._pages(file.list_dead, 0, before)

    def _pages(
        self, page: Callable[[int, int], list[ListedMessage]], after: int, before: int
    ) -> Iterator[ListedMessage]:
        # Each is a short read: a person who scrolls slowly must not make the receiver's log grow.
        while True:
            with self._file_system.in_time():
                entries = page(after, before)
            if not entries:
                return
            yield from entries
            after = entries[-1].id

    def find(self, number: int) -> Row | DeadLetter | None:
        """Return a dead letter or a waiting message; None when there is no such number."""
        with self._file_system.in_time():
            for file in self._files:
                letters = file.read_dead(number - 1, 1)
                if letters and letters[0].id == number:
                    return letters[0]
                row = file.read_one(number)
                if row is not None and number > self._cursor_of(file).id:
                    return row
        return None

    def replay(self, numbers: Iterable[int] | None) -> Iterator[ChangeResult]:
        """
        Put dead letters back at the end of the queue.

        @param numbers: None for all existing ones.
        """

        def put_back(transaction: Transaction, number: int) -> ChangeResult:
            letter = transaction.take_dead_letter(number)
            if letter is None:
                return self._missing(number, "dead letter")
            if not letter.is_whole:
                transaction.add_dead_letters([letter])
                return ChangeResult(number, problem="it is damaged, and would be refused again")
            return ChangeResult(number, new_id=transaction.append([letter.data])[0])

        return self._change(self._numbers(self.dead) if numbers is None else numbers, put_back)

    def drop(self, numbers: Iterable[int] | None, *, waiting: bool) -> Iterator[ChangeResult]:
        """
        Drop dead letters, or waiting messages.

        @param numbers: None for all existing ones.
        """

        def drop(transaction: Transaction, number: int) -> ChangeResult:
            found = transaction.remove([number]) if waiting else transaction.take_dead_letter(number)
            return ChangeResult(number) if found else self._missing(number, what)

        what = "message that waits" if waiting else "dead letter"
        if numbers is None:
            numbers = self._numbers(self.waiting if waiting else self.dead)
        return self._change(numbers, drop)

    def _numbers(self, entries: Callable[[int], Iterator[ListedMessage]]) -> Iterator[int]:
        """Return the numbers of those that exist now, and of none that comes later: what was put back may be back."""
        with self._file_system.in_time():
            before = self._files[-1].read_totals().next_id
        return (entry.id for entry in entries(before))

    def _change(self, numbers: Iterable[int], change: _Change) -> Iterator[ChangeResult]:
        numbers = iter(numbers)
        pause = 0.0
        with self._writing() as file:
            while together := list(islice(numbers, _TOGETHER)):
                while together:
                    if pause:
                        self._sleep(pause)
                    began = self._clock()
                    results = self._change_some(file, together, change)
                    pause = max(_PAUSE, self._clock() - began)
                    del together[: len(results)]
                    yield from results

    def _change_some(self, file: SpoolFile, numbers: Sequence[int], change: _Change) -> list[ChangeResult]:
        """Change the first messages: as many as one transaction may, at least one."""
        results: list[ChangeResult] = []
        with self._file_system.in_time():
            with file.transaction(durable=True) as transaction:
                # Under the write lock: the receiver may have created another file a moment ago.
                if self._directory.numbers()[-1] != file.number or self._directory.is_failed(file.number):
                    raise AdminError(
                        "the newest file of the spool has failed; try again once the receiver has a new one"
                    )
                began = self._clock()
                for number in numbers:
                    results.append(change(transaction, number))
                    if transaction.written >= _BYTES_TOGETHER or self._clock() - began >= _TIME_TOGETHER:
                        break
            file.checkpoint()
        return results

    @contextmanager
    def _writing(self) -> Iterator[SpoolFile]:
        with self._file_system.in_time():
            file = SpoolFile(self._directory, self._files[-1].number, writable=True)
        try:
            yield file
        finally:
            file.close()

    def _missing(self, number: int, what: str) -> ChangeResult:
        if number < self._files[-1].first_number and self.find(number) is not None:
            return ChangeResult(number, problem="it is in a read-only file; wait until the receiver has drained that")
        return ChangeResult(number, problem=f"there is no {what} of that number")

    def _cursor_of(self, file: SpoolFile, messages: int = 0, size: int = 0) -> ReadCursor:
        return self._cursors.get(file.number, ReadCursor(0, messages, size))


class SpoolAdmin:
    """
    A spool: one directory, and those of further workers inside it, in the order of the workers.

    @param path: of an existing spool.
    @param make: makes the admin of one directory.
    @ivar cautions: warnings about the permissions of directories, by their paths.
    @raise Exception: as L{DirectoryAdmin}, here and from any method.
    """

    def __init__(self, path: str, make: Callable[[str], DirectoryAdmin] = DirectoryAdmin) -> None:
        self._workers: dict[int, DirectoryAdmin] = {}
        self.cautions: dict[str, str] = {}
        try:
            for worker, directory in {0: path, **worker_directories(path, follow_links=False)}.items():
                with suppress(NoSpool):
                    admin = self._workers[worker] = make(directory)
                    if admin.caution:
                        self.cautions[directory] = admin.caution
            if not self._workers:
                raise NoSpool(path)
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> Sequence[int]:
        """The workers that have a spool."""
        return list(self._workers)

    def close(self) -> None:
        """Close all files."""
        for admin in self._workers.values():
            admin.close()

    def totals(self, worker: int | None = None) -> SpoolTotals:
        """Return the totals of a worker; None for those of all together."""
        found = [admin.totals() for number, admin in self._workers.items() if worker in (None, number)]
        return SpoolTotals(
            messages=sum(each.messages for each in found),
            bytes=sum(each.bytes for each in found),
            oldest=min((each.oldest for each in found if each.oldest is not None), default=None),
            dead=sum(each.dead for each in found),
            dead_bytes=sum(each.dead_bytes for each in found),
        )

    def waiting(self) -> Iterator[tuple[MessageRef, ListedMessage]]:
        """List the waiting messages."""
        for worker, admin in self._workers.items():
            yield from ((MessageRef(worker, entry.id), entry) for entry in admin.waiting())

    def dead(self) -> Iterator[tuple[MessageRef, ListedMessage]]:
        """List the dead letters."""
        for worker, admin in self._workers.items():
            yield from ((MessageRef(worker, entry.id), entry) for entry in admin.dead())

    def find(self, ref: MessageRef) -> Row | DeadLetter | None:
        """Return a dead letter or a waiting message; None when there is no such message."""
        admin = self._workers.get(ref.worker)
        return None if admin is None else admin.find(ref.id)

    def replay(self, refs: Sequence[MessageRef] | None) -> Iterator[tuple[MessageRef, ChangeResult]]:
        """
        Put dead letters back, each at the end of the queue of its worker.

        @param refs: None for all existing ones.
        """
        return self._change(refs, lambda admin, numbers: admin.replay(numbers))

    def drop(self, refs: Sequence[MessageRef] | None, *, waiting: bool) -> Iterator[tuple[MessageRef, ChangeResult]]:
        """
        Drop dead letters, or waiting messages.

        @param refs: None for all existing ones.
        """
        return self._change(refs, lambda admin, numbers: admin.drop(numbers, waiting=waiting))

    def _change(
        self,
        refs: Sequence[MessageRef] | None,
        change: Callable[[DirectoryAdmin, list[int] | None], Iterator[ChangeResult]],
    ) -> Iterator[tuple[MessageRef, ChangeResult]]:
        for ref in refs or ():
            if ref.worker not in self._workers:
                yield ref, ChangeResult(ref.id, problem="there is no such worker")
        for worker, admin in self._workers.items():
            numbers = None if refs is None else [ref.id for ref in refs if ref.worker == worker]
            if numbers is None or numbers:
                yield from ((MessageRef(worker, result.id), result) for result in change(admin, numbers))
