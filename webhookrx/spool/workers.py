"""
The spool of one worker, and those that workers of an earlier, larger group have left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.interfaces import Backlog, IBufferingObserver
from webhookrx.settings import ALONE, Group
from webhookrx.spool.drain_log import shown
from webhookrx.spool.faults import error_text
from webhookrx.spool.observer import DEFAULT_SIZE, DROP_OLDEST, LAST_BATCH, REFUSE, SpoolObserver
from webhookrx.spool.removal import remove_if_empty
from webhookrx.spool.worker_directories import directory_of, left_to

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver, Prepared
    from webhookrx.settings import Observer

SPOOL_OPTIONS: Final = ("age", "full", "min_free", "size")
YOUNGEST: Final = 1.0
"""Seconds that messages must be allowed to wait at least."""

_log = Logger()


@implementer(IBufferingObserver)
class WorkerSpool:
    """
    Stores in its own spool. The others are drained, and removed once nothing is in them any more.

    @param own: the worker's.
    @param left: tells the directories of the others.
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
        self.prepare = own.prepare
        self._own = own
        self._left = left
        self._make = make
        self._clock = clock
        self._others: dict[str, SpoolObserver] = {}

    def open(self) -> None:
        """
        Open its own, and begin to drain the others. What can't be drained is told in the log, and stays where it is.

        @raise webhookrx.errors.ConfigError: its own can't be opened.
        """
        self._own.open()
        self._open_others()

    def store(self, batch: Sequence[Prepared]) -> None:
        """
        Commit a batch.

        @raise webhookrx.errors.NotStored: none of it is safe.
        """
        self._own.store(batch)

    def reopen(self) -> None:
        """Let the observers behind open anew, before their next batches, and try again what could not be drained."""
        for spool in self._all():
            spool.reopen()
        self._open_others()

    def hurry(self) -> None:
        """Drain no more after the batches that the observers behind have now."""
        for spool in self._all():
            spool.hurry()

    def finish(self) -> None:
        """Wait for these batches, L{LAST_BATCH} seconds at most for all of them."""
        self.hurry()
        deadline = self._clock() + LAST_BATCH
        for spool in self._all():
            spool.finish(max(0.0, deadline - self._clock()))

    def close(self) -> None:
        """Let go of all of it, and remove what is empty."""
        self._own.close()
        others, self._others = self._others, {}
        for path, other in others.items():
            other.close()
            try:
                remove_if_empty(path)
            except Exception as error:
                _say_not(path, "removed", error)

    def backlog(self) -> Backlog:
        """Tell what waits in all of them."""
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
                _say_not(path, "drained", error)
                continue
            # Anew each time: other threads may be looking at it.
            self._others = {**self._others, path: other}
            _log.info(
                "Spool {path}, which a worker has left, is drained: {count} wait in it",
                path=path,
                count=other.backlog().messages,
            )

    def _all(self) -> list[SpoolObserver]:
        return [self._own, *self._others.values()]


def _say_not(path: str, done: str, error: Exception) -> None:
    _log.error(
        "Spool {path}, which a worker has left, is not {done}: {problem}",
        path=path,
        done=done,
        problem=shown(error_text(error)),
    )


def build_spool(observer: Observer, make_inner: Callable[[], IMessageObserver], group: Group = ALONE) -> WorkerSpool:
    """
    Make the observer of C{spool:DIR[:size=SIZE:age=TIME:full=refuse|drop-oldest:min_free=SIZE]:observer=SPEC}.

    @param observer: the parsed spec string; its directory is absolute.
    @param make_inner: makes the observer that its C{observer=} names, as often as need be.
    @param group: each worker of it has a directory of its own.
    @raise ConfigError: an argument or option is wrong.
    """
    options = dict(observer.options)
    for key in options:
        if key not in SPOOL_OPTIONS:
            raise ConfigError(
                f"observer 'spool': unknown option {key!r}; its options are {', '.join(SPOOL_OPTIONS)} and observer"
            )
    if len(observer.args) != 1 or not observer.args[0]:
        raise ConfigError(f"observer 'spool' takes one directory, spool:DIR:observer=SPEC, but got {observer.text!r}")
    path = observer.args[0]
    reader = SpecOptions("spool", options)
    make = partial(
        SpoolObserver,
        observer.text,
        size=reader.size("size", DEFAULT_SIZE, at_least=1),
        age=reader.duration("age", None, at_least=YOUNGEST),
        full=reader.choice("full", (REFUSE, DROP_OLDEST), REFUSE),
        min_free=reader.size("min_free", None),
    )
    own = make(directory_of(path, group.number), make_inner(), within=path if group.number else None)
    return WorkerSpool(own, partial(left_to, path, group), lambda directory: make(directory, make_inner(), within=path))
