"""
The spools of workers: the directory of each, and draining those that workers of a former, larger group have left.

The first worker has the directory of the spool itself, and each other one has a directory inside it. So a receiver
that becomes a group, or a larger or smaller one, finds its waiting messages again.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.filesystem import InUse
from webhookrx.interfaces import Backlog, IBufferingObserver
from webhookrx.promises import DURABLE
from webhookrx.settings import ALONE, Group
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import LOCK, SpoolDirectory
from webhookrx.spool.drain_log import printable
from webhookrx.spool.faults import error_text
from webhookrx.spool.observer import DEFAULT_SIZE, DROP_OLDEST, LAST_BATCH, REFUSE, SpoolObserver
from webhookrx.store_counts import StoreCounts, TakenCounts

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver, Prepared
    from webhookrx.settings import Observer

SPOOL_OPTIONS: Final = ("age", "full", "min_free", "require", "size")
YOUNGEST: Final = 1.0
"""The shortest C{age}, in seconds."""

_NAME: Final = re.compile(r"worker-([1-9][0-9]{0,5})")
_OURS: Final = re.compile(rf"{LOCK}|[0-9]+\.sqlite(-wal|-shm|-journal)?")

_log = Logger()


def directory_of(path: str, number: int) -> str:
    """Return the directory of a worker."""
    return os.path.join(path, f"worker-{number}") if number else path


def worker_directories(path: str, *, follow_links: bool) -> dict[int, str]:
    """
    Return the existing directories of workers but the first, by their numbers and in their order.

    @param follow_links: accept symbolic links to directories.
    """
    found = {}
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=follow_links):
                found[int(match[1])] = entry.path
    return dict(sorted(found.items()))


def left_to(path: str, group: Group) -> list[str]:
    """Return the directories without a worker in a group that this worker of it drains."""
    return [
        directory
        for number, directory in worker_directories(path, follow_links=True).items()
        if number >= group.size and number % group.size == group.number
    ]


def remove_if_empty(path: str) -> bool:
    """
    Remove a directory without messages and dead letters, and without anything else, such as a damaged file.

    @return: whether it is gone; it stays if it is locked.
    @raise OSError: it can't be read or removed.
    @raise sqlite3.Error: a file in it can't be read.
    """
    directory = SpoolDirectory(path)
    try:
        directory.lock()
    except InUse:
        return False
    try:
        numbers = directory.numbers()
        # More than one: only a drainer finds out how far the older ones have been delivered.
        if len(numbers) > 1 or not all(_OURS.fullmatch(name) for name in os.listdir(path)):
            return False
        for number in numbers:
            if not _is_empty(directory, number):
                return False
        for number in numbers:
            directory.remove(number)
        os.unlink(os.path.join(path, LOCK))
        os.rmdir(path)
    finally:
        directory.unlock()
    return True


def _is_empty(directory: SpoolDirectory, number: int) -> bool:
    file = SpoolFile(directory, number, writable=False)
    try:
        file.check_totals()
        totals = file.read_totals()
    finally:
        file.close()
    return not totals.messages and not totals.dead


@implementer(IBufferingObserver)
class WorkerSpool:
    """
    Stores in the worker's own spool, drains the ones left to it, and removes those once they are empty.

    @param own: the spool of the worker.
    @param left: returns the directories of the others.
    @param make: makes the spool of such a directory, with an observer of its own behind it.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self,
        own: SpoolObserver,
        left: Callable[[], Sequence[str]],
        make: Callable[[str], SpoolObserver],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec = own.spec
        self.promise = own.promise
        self.inner = own.inner
        self.prepare = own.prepare
        self._own = own
        self._left = left
        self._make = make
        self._clock = clock
        self._others: dict[str, SpoolObserver] = {}
        self._former = StoreCounts()  # of others that are closed

    def open(self) -> None:
        """
        Open its own spool, and start draining the others. A failure of these is logged, and the messages stay there.

        @raise webhookrx.errors.ConfigError: its own can't be opened.
        """
        self._own.open()
        self._open_others()

    def store(self, batch: Sequence[Prepared]) -> None:
        """
        Commit a batch.

        @raise webhookrx.errors.NotStored: none of it is stored.
        """
        self._own.store(batch)

    def reopen(self) -> None:
        """Reopen the observers behind before their next batches, and retry directories that could not be drained."""
        for spool in self._all():
            spool.reopen()
        self._open_others()

    def hurry(self) -> None:
        """Stop draining after the current batches."""
        for spool in self._all():
            spool.hurry()

    def finish(self) -> None:
        """Wait for these batches, L{LAST_BATCH} seconds at most for all of them."""
        self.hurry()
        deadline = self._clock() + LAST_BATCH
        for spool in self._all():
            spool.finish(max(0.0, deadline - self._clock()))

    def close(self) -> None:
        """Close all spools, and remove the empty ones but its own."""
        self._own.close()
        others, self._others = self._others, {}
        for path, other in others.items():
            other.close()
            self._former.add(other.take_counts())
            try:
                remove_if_empty(path)
            except Exception as error:
                _report(path, "removed", error)

    def take_counts(self) -> TakenCounts:
        """Return what was counted of the observers behind all of them since the last call."""
        taken = self._former.take()
        for spool in self._all():
            taken += spool.take_counts()
        return taken

    def backlog(self) -> Backlog:
        """Return the backlog of all of them."""
        return Backlog.of_all([spool.backlog() for spool in self._all()])

    def _open_others(self) -> None:
        for path in self._left():
            if path in self._others:
                continue
            try:
                if remove_if_empty(path):
                    continue
                other = self._make(path)
                other.open()
            except Exception as error:
                _report(path, "drained", error)
                continue
            # A new dictionary each time: other threads may be reading the old one.
            self._others = {**self._others, path: other}
            _log.info(
                "Spool {path}, which a worker has left, is drained: {count} wait in it",
                path=path,
                count=other.backlog().messages,
            )

    def _all(self) -> list[SpoolObserver]:
        return [self._own, *self._others.values()]


def _report(path: str, done: str, error: Exception) -> None:
    _log.error(
        "Spool {path}, which a worker has left, is not {done}: {problem}",
        path=path,
        done=done,
        problem=printable(error_text(error)),
    )


def build_spool(observer: Observer, make_inner: Callable[[], IMessageObserver], group: Group = ALONE) -> WorkerSpool:
    """
    Make the observer of
    C{spool:DIR[:size=SIZE:age=TIME:full=refuse|drop-oldest:min_free=SIZE:require=durable]:observer=SPEC}.

    @param observer: the parsed spec string; its directory is absolute.
    @param make_inner: makes the observer that its C{observer=} names; called once for each directory.
    @param group: the worker and the size of its group.
    @raise ConfigError: an argument or option is wrong.
    """
    reader = SpecOptions("spool", dict(observer.options))
    reader.check_known((*SPOOL_OPTIONS, "observer"))
    if len(observer.args) != 1 or not observer.args[0]:
        raise ConfigError(f"observer 'spool' takes one directory, spool:DIR:observer=SPEC, but got {observer.text!r}")
    path = observer.args[0]
    make = partial(
        SpoolObserver,
        observer.text,
        size=reader.size("size", DEFAULT_SIZE, at_least=1),
        age=reader.duration("age", None, at_least=YOUNGEST),
        full=reader.choice("full", (REFUSE, DROP_OLDEST), REFUSE),
        min_free=reader.size("min_free", None),
        require=_required(reader),
    )
    own = make(directory_of(path, group.number), make_inner(), within=path if group.number else None)
    own.check()
    return WorkerSpool(own, partial(left_to, path, group), lambda directory: make(directory, make_inner(), within=path))


def _required(reader: SpecOptions) -> str:
    """Return the weakest promise that the observer behind may have."""
    return reader.read("require", "queued", _durable_only)


def _durable_only(text: str) -> str:
    if text != DURABLE:
        raise ValueError(f"it takes {DURABLE}: a message then leaves the spool only when it is durable elsewhere")
    return text
