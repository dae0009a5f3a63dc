"""
A spool as people see it: what waits, what was refused for good, and putting it back or dropping it.

It works beside a running receiver, and without one. Only the newest file is ever changed; those before it are drained
by the receiver, which removes them then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from webhookrx.errors import WebhookrxError
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.listing import ListedMessage, Listing
from webhookrx.spool.rows import DeadLetter, ReadCursor, Row
from webhookrx.spool.untrusted_files import UntrustedFileSystem, open_to_others

if TYPE_CHECKING:
    from webhookrx.spool.transaction import Transaction

    _Change = Callable[[Transaction, int], "ChangeResult"]

HIGHEST: Final = 2**63 - 1
"""The highest number that a message can have; SQLite knows none above it."""

_TOGETHER: Final = 100
_BYTES_TOGETHER: Final = 1024**2
_TIME_TOGETHER: Final = 0.05
"""Changes in one transaction, and about so many bytes and seconds: a receiver that runs can store nothing meanwhile."""

_PAUSE: Final = 0.025
"""Seconds between two transactions, or as many as the last one took: a receiver that waits looks again now and then."""


class AdminError(WebhookrxError):
    """Something can't be done; the text is one line for people."""


class NoSpool(AdminError):
    """A directory is not that of a spool."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} holds no spool")


class SpoolTotals(NamedTuple):
    """
    What a spool holds.

    @ivar oldest: when the first that waits was received, nanoseconds since the epoch; None when none waits.
    """

    messages: int
    bytes: int
    oldest: int | None
    dead: int
    dead_bytes: int


class ChangeResult(NamedTuple):
    """
    What became of one message of a command.

    @ivar new_id: its number in the queue now, if it was put back.
    @ivar problem: why it was left alone; empty when it was not.
    """

    id: int
    new_id: int | None = None
    problem: str = ""


class DirectoryAdmin:
    """
    One directory, which is never made or locked.

    @param path: of a spool that is there.
    @param sleep: waits so many seconds.
    @param clock: seconds on the monotonic clock.
    @raise NoSpool: there is none.
    @raise AdminError: it can't be read.
    @raise webhookrx.spool.untrusted_files.NoSpoolFile: somebody else has made what is in it, here and from any method.
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
        self._listings: list[Listing] = []
        try:
            with self._file_system.in_time():
                for number in numbers:
                    self._files.append(SpoolFile(self._directory, number, writable=False))
                    self._listings.append(Listing(self._directory, number))
                self._cursors = self._files[-1].read_cursors()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        for listing in self._listings:
            listing.close()
        for file in self._files:
            file.close()

    def totals(self) -> SpoolTotals:
        """Tell what it holds."""
        with self._file_system.in_time():
            states = [file.read_totals() for file in self._files]
        left = [
            self._cursor_of(file, state.messages, state.bytes) for file, state in zip(self._files, states, strict=True)
        ]
        oldest = next((entry.received for entry in self.waiting()), None)
        return SpoolTotals(
            messages=max(0, sum(passed.messages for passed in left)),
            bytes=max(0, sum(passed.bytes for passed in left)),
            oldest=oldest,
            dead=max(0, sum(state.dead for state in states)),
            dead_bytes=max(0, sum(state.dead_bytes for state in states)),
        )

    def waiting(self, before: int = HIGHEST) -> Iterator[ListedMessage]:
        """
        Return the messages that wait, in order.

        @param before: only those of lower numbers.
        """
        for file, listing in zip(self._files, self._listings, strict=True):
            yield from self._pages(listing.waiting, self._cursor_of(file, 0, 0).id, before)

    def dead(self, before: int = HIGHEST) -> Iterator[ListedMessage]:
        """Return the dead letters, in the order of their numbers. The parameter is that of L{waiting}."""
        for listing in self._listings:
            yield from self._pages(listing.dead, 0, before)

    def _pages(
        self, page: Callable[[int, int], list[ListedMessage]], after: int, before: int
    ) -> Iterator[ListedMessage]:
        # Each is a short look: a person who reads on slowly must not make the receiver's log grow.
        while True:
            with self._file_system.in_time():
                entries = page(after, before)
            if not entries:
                return
            yield from entries
            after = entries[-1].id

    def find(self, number: int) -> Row | DeadLetter | None:
        """Return a dead letter or a message that waits; None when there is none of that number."""
        with self._file_system.in_time():
            for file in self._files:
                letters = file.read_dead(number - 1, 1)
                if letters and letters[0].id == number:
                    return letters[0]
                row = file.read_one(number)
                if row is not None and number > self._cursor_of(file, 0, 0).id:
                    return row
        return None

    def replay(self, numbers: Iterable[int] | None) -> Iterator[ChangeResult]:
        """
        Put dead letters back at the end of the queue.

        @param numbers: None for all that are there now.
        """

        def put_back(transaction: Transaction, number: int) -> ChangeResult:
            letter = transaction.take_dead_letter(number)
            if letter is None:
                return self._not_there(number, "dead letter")
            if not letter.is_whole:
                transaction.add_dead_letters([letter])
                return ChangeResult(number, problem="it is damaged, and would be refused again")
            return ChangeResult(number, new_id=transaction.append([letter.data])[0])

        return self._change(self._numbers(self.dead) if numbers is None else numbers, put_back)

    def drop(self, numbers: Iterable[int] | None, *, waiting: bool) -> Iterator[ChangeResult]:
        """
        Drop dead letters, or messages that wait.

        @param numbers: None for all that are there now.
        """

        def drop(transaction: Transaction, number: int) -> ChangeResult:
            found = transaction.remove([number]) if waiting else transaction.take_dead_letter(number)
            return ChangeResult(number) if found else self._not_there(number, what)

        what = "message that waits" if waiting else "dead letter"
        if numbers is None:
            numbers = self._numbers(self.waiting if waiting else self.dead)
        return self._change(numbers, drop)

    def _numbers(self, entries: Callable[[int], Iterator[ListedMessage]]) -> Iterator[int]:
        """Return the numbers of those that are there now, whatever comes meanwhile: what was put back may be back."""
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
                    outcomes = self._change_some(file, together, change)
                    pause = max(_PAUSE, self._clock() - began)
                    del together[: len(outcomes)]
                    yield from outcomes

    def _change_some(self, file: SpoolFile, numbers: Sequence[int], change: _Change) -> list[ChangeResult]:
        """Change as many as one transaction may, one at least, from the first on."""
        outcomes: list[ChangeResult] = []
        with self._file_system.in_time():
            with file.transaction(durable=True) as transaction:
                # Looked at once nobody else can write: the receiver may have begun another one a moment ago.
                if self._directory.numbers()[-1] != file.number or self._directory.is_failed(file.number):
                    raise AdminError(
                        "the newest file of the spool has failed; try again once the receiver has a new one"
                    )
                began = self._clock()
                for number in numbers:
                    outcomes.append(change(transaction, number))
                    if transaction.written >= _BYTES_TOGETHER or self._clock() - began >= _TIME_TOGETHER:
                        break
            file.checkpoint_if_due()
        return outcomes

    @contextmanager
    def _writing(self) -> Iterator[SpoolFile]:
        with self._file_system.in_time():
            file = SpoolFile(self._directory, self._files[-1].number, writable=True)
        try:
            yield file
        finally:
            file.close()

    def _not_there(self, number: int, what: str) -> ChangeResult:
        if number < self._files[-1].first_number and self.find(number) is not None:
            return ChangeResult(
                number, problem="it is in a file that is only read any more; wait until that is drained"
            )
        return ChangeResult(number, problem=f"there is no {what} of that number")

    def _cursor_of(self, file: SpoolFile, messages: int, size: int) -> ReadCursor:
        return self._cursors.get(file.number, ReadCursor(0, messages, size))
