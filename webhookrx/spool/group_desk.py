"""
The spools of all workers as people see them: one desk for each, in the order of the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from webhookrx.spool.admin import ChangeResult, DirectoryAdmin, NoSpool, SpoolTotals
from webhookrx.spool.worker_directories import directory_of, inside

if TYPE_CHECKING:
    from webhookrx.spool.listing import ListedMessage
    from webhookrx.spool.rows import DeadLetter, Row


class MessageRef(NamedTuple):
    """
    Where a message is.

    @ivar worker: whose spool; 0 for the first one, which has the directory itself.
    @ivar id: its number there.
    """

    worker: int
    id: int

    def __str__(self) -> str:
        return directory_of("", self.worker) + f"/{self.id}" if self.worker else str(self.id)


class SpoolAdmin:
    """
    One directory, and those of further workers inside it.

    @param path: of a spool that is there.
    @param make: makes the desk of one directory.
    @raise Exception: as L{DirectoryAdmin} says, here and from any method.
    """

    def __init__(self, path: str, make: Callable[[str], DirectoryAdmin] = DirectoryAdmin) -> None:
        self._desks: dict[int, DirectoryAdmin] = {}
        self.cautions: dict[str, str] = {}
        try:
            for worker, directory in {0: path, **inside(path, follow_links=False)}.items():
                with suppress(NoSpool):
                    desk = self._desks[worker] = make(directory)
                    if desk.caution:
                        self.cautions[directory] = desk.caution
            if not self._desks:
                raise NoSpool(path)
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> Sequence[int]:
        """The workers that have a spool."""
        return list(self._desks)

    def close(self) -> None:
        """Let go of it."""
        for desk in self._desks.values():
            desk.close()

    def totals(self, worker: int | None = None) -> SpoolTotals:
        """Tell what the spool of a worker holds; None for all of them together."""
        found = [desk.totals() for number, desk in self._desks.items() if worker in (None, number)]
        return SpoolTotals(
            messages=sum(each.messages for each in found),
            bytes=sum(each.bytes for each in found),
            oldest=min((each.oldest for each in found if each.oldest is not None), default=None),
            dead=sum(each.dead for each in found),
            dead_bytes=sum(each.dead_bytes for each in found),
        )

    def waiting(self) -> Iterator[tuple[MessageRef, ListedMessage]]:
        """Return the messages that wait."""
        for worker, desk in self._desks.items():
            yield from ((MessageRef(worker, entry.id), entry) for entry in desk.waiting())

    def dead(self) -> Iterator[tuple[MessageRef, ListedMessage]]:
        """Return the dead letters."""
        for worker, desk in self._desks.items():
            yield from ((MessageRef(worker, entry.id), entry) for entry in desk.dead())

    def find(self, place: MessageRef) -> Row | DeadLetter | None:
        """Return a dead letter or a message that waits; None when there is none at that place."""
        desk = self._desks.get(place.worker)
        return None if desk is None else desk.find(place.id)

    def replay(self, places: Sequence[MessageRef] | None) -> Iterator[tuple[MessageRef, ChangeResult]]:
        """
        Put dead letters back, each at the end of the queue that it is of.

        @param places: None for all that are there now.
        """
        return self._change(places, lambda desk, numbers: desk.replay(numbers))

    def drop(self, places: Sequence[MessageRef] | None, *, waiting: bool) -> Iterator[tuple[MessageRef, ChangeResult]]:
        """
        Drop dead letters, or messages that wait.

        @param places: None for all that are there now.
        """
        return self._change(places, lambda desk, numbers: desk.drop(numbers, waiting=waiting))

    def _change(
        self,
        places: Sequence[MessageRef] | None,
        change: Callable[[DirectoryAdmin, list[int] | None], Iterator[ChangeResult]],
    ) -> Iterator[tuple[MessageRef, ChangeResult]]:
        for place in places or ():
            if place.worker not in self._desks:
                yield place, ChangeResult(place.id, problem="there is no such worker")
        for worker, desk in self._desks.items():
            numbers = None if places is None else [place.id for place in places if place.worker == worker]
            if numbers is None or numbers:
                yield from ((MessageRef(worker, outcome.id), outcome) for outcome in change(desk, numbers))
