"""
A spool as people see it: what waits, what was refused for good, and putting it back or dropping it.

It works beside a running receiver, and without one. Only the newest file is ever changed; those before it are drained
by the receiver, which removes them then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from webhookrx.errors import WebhookrxError
from webhookrx.spool.spool_directory import FileSystem, SpoolDirectory
from webhookrx.spool.spool_file import DeadLetter, Passed, Row, SpoolFile

if TYPE_CHECKING:
    from webhookrx.spool.spool_file import Transaction

_TOGETHER = 100
"""Changes in one transaction: a receiver that runs waits for it."""


class DeskError(WebhookrxError):
    """Something can't be done; the text is one line for people."""


class Totals(NamedTuple):
    """
    What a spool holds.

    @ivar oldest: when the first that waits was received, nanoseconds since the epoch; None when none waits.
    """

    messages: int
    bytes: int
    oldest: int | None
    dead: int
    dead_bytes: int


class Outcome(NamedTuple):
    """
    What became of one message of a command.

    @ivar new_id: its number in the queue now, if it was put back.
    @ivar problem: why it was left alone; empty when it was not.
    """

    id: int
    new_id: int | None = None
    problem: str = ""


class SpoolDesk:
    """
    One directory, which is never made or locked.

    @param path: of a spool that is there.
    @raise DeskError: there is none, or it can't be read.
    @raise sqlite3.Error: a file can't be read.
    """

    def __init__(self, path: str, file_system: FileSystem | None = None) -> None:
        self._directory = SpoolDirectory(path, file_system)
        try:
            numbers = self._directory.numbers()
        except OSError as error:
            raise DeskError(f"{path!r}: {error.strerror}") from error
        if not numbers:
            raise DeskError(f"{path!r} holds no spool")
        self._files = [SpoolFile(self._directory, number, writable=False) for number in numbers]
        self._passed = self._files[-1].read_passed()

    def close(self) -> None:
        """Let go of it."""
        for file in self._files:
            file.close()

    def totals(self) -> Totals:
        """Tell what it holds."""
        states = [file.read_state() for file in self._files]
        left = [
            self._passed_of(file, state.messages, state.bytes) for file, state in zip(self._files, states, strict=True)
        ]
        oldest = next((row.received for row in self.waiting()), None)
        return Totals(
            messages=sum(passed.messages for passed in left),
            bytes=sum(passed.bytes for passed in left),
            oldest=oldest,
            dead=sum(state.dead for state in states),
            dead_bytes=sum(state.dead_bytes for state in states),
        )

    def waiting(self) -> Iterator[Row]:
        """Return the messages that wait, in order."""
        for file in self._files:
            after = self._passed_of(file, 0, 0).id
            # In batches, each a short look: a person who reads on slowly must not make the receiver's log grow.
            while rows := file.read(after):
                yield from rows
                after = rows[-1].id

    def dead(self) -> Iterator[DeadLetter]:
        """Return the dead letters, in the order of their numbers."""
        for file in self._files:
            after = 0
            while letters := file.read_dead(after, _TOGETHER):
                yield from letters
                after = letters[-1].id

    def find(self, number: int) -> Row | DeadLetter | None:
        """Return a dead letter or a message that waits; None when there is none of that number."""
        for file in self._files:
            letters = file.read_dead(number - 1, 1)
            if letters and letters[0].id == number:
                return letters[0]
            row = file.read_one(number)
            if row is not None and number > self._passed_of(file, 0, 0).id:
                return row
        return None

    def replay(self, numbers: Iterable[int] | None) -> Iterator[Outcome]:
        """
        Put dead letters back at the end of the queue.

        @param numbers: None for all.
        """

        def put_back(transaction: Transaction, number: int) -> Outcome:
            letter = transaction.unbury(number)
            if letter is None:
                return self._not_there(number, "dead letter")
            if not letter.is_whole:
                transaction.bury([letter])
                return Outcome(number, problem="it is damaged, and would be refused again")
            return Outcome(number, new_id=transaction.append([letter.data])[0])

        return self._change((letter.id for letter in self.dead()) if numbers is None else numbers, put_back)

    def drop(self, numbers: Iterable[int] | None, *, waiting: bool) -> Iterator[Outcome]:
        """
        Drop dead letters, or messages that wait.

        @param numbers: None for all that are there now.
        """

        def drop(transaction: Transaction, number: int) -> Outcome:
            found = transaction.remove([number]) if waiting else transaction.unbury(number)
            return Outcome(number) if found else self._not_there(number, what)

        what = "message that waits" if waiting else "dead letter"
        if numbers is None:
            numbers = [row.id for row in self.waiting()] if waiting else [letter.id for letter in self.dead()]
        return self._change(numbers, drop)

    def _change(self, numbers: Iterable[int], change: _Change) -> Iterator[Outcome]:
        numbers = iter(numbers)
        while together := list(islice(numbers, _TOGETHER)):
            with self._transaction() as transaction:
                outcomes = [change(transaction, number) for number in together]
            yield from outcomes

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        number = self._files[-1].number
        file = SpoolFile(self._directory, number, writable=True)
        try:
            with file.transaction(durable=True) as transaction:
                # Looked at once nobody else can write: the receiver may have begun another one a moment ago.
                if self._directory.numbers()[-1] != number or self._directory.is_failed(number):
                    raise DeskError(
                        "the newest file of the spool has failed; try again once the receiver has a new one"
                    )
                yield transaction
        finally:
            file.close()

    def _not_there(self, number: int, what: str) -> Outcome:
        if number < self._files[-1].first_number and self.find(number) is not None:
            return Outcome(number, problem="it is in a file that is only read any more; wait until that is drained")
        return Outcome(number, problem=f"there is no {what} of that number")

    def _passed_of(self, file: SpoolFile, messages: int, size: int) -> Passed:
        return self._passed.get(file.number, Passed(0, messages, size))


if TYPE_CHECKING:
    from collections.abc import Callable

    _Change = Callable[[Transaction, int], Outcome]
