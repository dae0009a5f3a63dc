"""
Keeps the keys of an idempotency window in its file, for the next start, written behind in a thread.

The ring itself is what waits to be written, so a file that can't be written costs no memory. Whatever is wrong with it,
the window goes on in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from webhookrx.errors import UnusableFile
from webhookrx.idempotency.key_ring import KeyRing
from webhookrx.shared_memory import ByteLock

if TYPE_CHECKING:
    from webhookrx.idempotency.delivery_file import DeliveryFile

FILE_NAME: Final = "deliveries.sqlite"
"""In the state directory."""
AGAIN: Final = 60.0
"""Seconds until a file that could not be used is tried again."""
MOST_AT_ONCE: Final = 20_000
"""Keys of one write."""

_log = Logger()


class DeliveryKeeper:
    """
    @param ring: what all processes remember.
    @param lock: with which other processes append to it; None for a process alone.
    @param reactor: has threads.
    @param clock: seconds on the monotonic clock.
    @param open_file: opens the file at a path; by default as L{DeliveryFile}.
    @ivar window: seconds for which the source with the longest window knows a delivery.
    @ivar problem: why the keys are not kept now, for people; empty when they are, or nothing asks for it.
    @ivar errors: how often the file could not be used since the start.
    """

    def __init__(
        self,
        ring: KeyRing,
        lock: ByteLock | None,
        reactor: Any,
        clock: Callable[[], float],
        open_file: Callable[[str], DeliveryFile] | None = None,
    ) -> None:
        self.window = 0.0
        self.problem = ""
        self.errors = 0
        self._ring = ring
        self._lock = lock
        self._reactor = reactor
        self._clock = clock
        self._open_file = open_file
        self._mutex = threading.Lock()  # one thread at a time uses what follows
        self._path: str | None = None
        self._file: DeliveryFile | None = None
        self._not_before = 0.0
        self._written = 0  # the number of the last key that is in the file
        self._busy = False

    @property
    def keys(self) -> int:
        """How many deliveries are known."""
        return self._ring.held(self._oldest) if self.window else 0

    @property
    def _now(self) -> float:
        return self._clock() + self._ring.epoch

    @property
    def _oldest(self) -> int:
        return max(1, int(self._now - self.window))

    # -- which file ----------------------------------------------------------------------------------------------

    def use(self, path: str | None) -> None:
        """
        Use a file from now on, and read it if no delivery is known yet; it may take a second. Called in any thread,
        and by nobody who asks for the window already, unless the file is the same.

        @param path: absolute; None for none.
        """
        with self._mutex:
            if path != self._path:
                self._close()
                self._path, self.problem, self._not_before = path, "", 0.0
                self._open(fill=not self._ring.count)

    def use_later(self, path: str | None) -> Deferred[None]:
        """Do the same in a thread, if there is anything to do."""
        return succeed(None) if path == self._path else self._in_thread(self.use, path)

    def _in_thread(self, call: Callable[..., None], *args: object) -> Deferred[None]:
        done: Deferred[None] = Deferred()

        def work() -> None:
            try:
                call(*args)
            finally:
                self._reactor.callFromThread(done.callback, None)

        self._reactor.callInThread(work)
        return done

    def _open(self, *, fill: bool) -> None:
        """
        Open the file.

        @param fill: the ring gets what it has.
        """
        path = self._path
        if path is None:
            return
        try:
            try:
                self._file = self._opened(path, fill)
            except UnusableFile as error:
                self._put_aside(path, error)
                self._file = self._opened(path, fill)
        except Exception as error:  # whatever it is, the window goes on
            self._failed(error)
        else:
            self._well()

    def _opened(self, path: str, fill: bool) -> DeliveryFile:
        # SQLite takes memory that a receiver without a window need not have.
        from webhookrx.idempotency.delivery_file import DeliveryFile

        file = (self._open_file or DeliveryFile)(path)
        self._written = 0  # all of the ring, whatever the file has
        if fill:
            try:
                self._ring.fill(file.read(), int(self._now))
            except BaseException:
                file.close()
                raise
            self._written = self._ring.count
        return file

    def _put_aside(self, path: str, error: UnusableFile) -> None:
        from webhookrx.idempotency.delivery_file import put_aside

        self.errors += 1
        self._say(
            _log.error,
            "The file of the idempotency window is damaged, and was put aside as {aside}: {error}. What was "
            "stored before may be stored again",
            aside=put_aside(path),
            error=error,
        )

    def _failed(self, error: Exception) -> None:
        self._close()
        self._not_before = self._clock() + AGAIN
        self.errors += 1
        problem = str(error) or type(error).__name__
        if problem != self.problem:
            self._say(
                _log.error,
                "The idempotency window can't be kept in {path}, so after a restart deliveries may be stored again: "
                "{problem}",
                path=self._path,
                problem=problem,
            )
        self.problem = problem

    def _well(self) -> None:
        if self.problem:
            self._say(_log.info, "The idempotency window is kept in {path} again", path=self._path)
        self.problem = ""

    def _say(self, log: Callable[..., None], text: str, **values: object) -> None:
        self._reactor.callFromThread(log, text, **values)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    # -- writing -------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Start to write what is new; called in the reactor thread, twice a second."""
        if self._path is not None and not self._busy and self._clock() >= self._not_before:
            entries, last = self._new_entries()
            if entries:
                self._busy = True
                self._reactor.callInThread(self._write, self._written, entries, last)

    def _new_entries(self) -> tuple[bytes, int]:
        """Return entries that are not in the file, and the number of the last; none while they can't be copied."""
        # An entry that another process is just writing is not whole.
        if self._lock is not None and not self._lock.acquire():
            return b"", 0
        try:
            return self._ring.entries(self._written, MOST_AT_ONCE)
        finally:
            if self._lock is not None:
                self._lock.release()

    def _write(self, after: int, entries: bytes, last: int) -> None:
        try:
            with self._mutex:
                if self._file is None:
                    self._open(fill=False)  # all is written from the next tick on
                elif self._written == after:  # it is the same file
                    self._append(entries, last)
        finally:
            self._reactor.callFromThread(self._wrote)

    def _wrote(self) -> None:
        self._busy = False

    def _append(self, entries: bytes, last: int) -> None:
        assert self._file is not None and self._path is not None
        try:
            self._file.append(entries, int(self._now), self._oldest)
        except UnusableFile as error:
            self._close()
            self._put_aside(self._path, error)
        except Exception as error:  # whatever it is, the window goes on
            self._failed(error)
        else:
            self._written = last

    def close_later(self) -> Deferred[None]:
        """Do the same as L{close} in a thread, if there is anything to do."""
        return succeed(None) if self._path is None else self._in_thread(self.close)

    def close(self) -> None:
        """Write what is new, and close the file; nobody uses the window any more. It may take a second."""
        with self._mutex:
            while self._file is not None:
                entries, last = self._new_entries()
                if not entries:
                    break
                self._append(entries, last)
            self._close()
            self._path = None
