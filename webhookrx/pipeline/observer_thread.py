"""
The thread of one observer, so that a slow disk never holds up the reactor or another observer, and brief waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Protocol
from weakref import finalize

from twisted.logger import Logger

from webhookrx.interfaces import ILocalObserver

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorFromThreads

    from webhookrx.interfaces import IMessageObserver

#: Runs in the thread.
Work = Callable[[], object]
#: Called in the reactor thread with what the work returned, or the exception that it raised.
Done = Callable[[object], None]

#: Seconds of one brief wait at most: many times what it takes to write to a page cache.
BRIEF = 0.002
#: After so many waits in vain, one after the other, the reactor waits no more for the time being. One may be a chance.
ENOUGH = 3

_log = Logger()


class ObserverThread(Protocol):
    """
    Does one piece of work at a time, in order, away from the reactor thread.

    C{webhookrx.testing.StepThread} is the one for tests without threads.
    """

    def start(self) -> None:
        """Be ready; called after the process has gone to the background, and again only after L{stop}."""

    def run(self, work: Work, done: Done) -> None:
        """Do C{work} after all that came before; then, in the reactor thread, C{done}. Never before this returns."""

    def wait(self, seconds: float) -> bool:
        """
        Wait for the work that is under way, and call its C{done} here and now: a turn of the reactor in between costs
        more than short work does. Called in the reactor thread, and not out of a C{done}.

        @param seconds: how long at most.
        @return: whether some work came to its end, so that its C{done} was called.
        """

    def stop(self) -> None:
        """End after the work that was given so far."""


class RealThread:
    """
    A L{ObserverThread} on a thread of its own.

    The thread waits for work at an C{eventfd} (eventfd(2)), not at the queue: to write to it releases the interpreter,
    so the thread finds that free when it wakes up. A queue wakes it while the reactor holds the interpreter; the thread
    then goes back to sleep, and both pay for it with system calls.

    @param reactor: takes the results back.
    @param name: the thread's name, for debuggers and C{top -H}.
    @raise OSError: there are too many open files.
    """

    def __init__(self, reactor: IReactorFromThreads, name: str) -> None:
        self._reactor = reactor
        self._queue: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[Done, object]] = SimpleQueue()
        self._is_waited_for = False  # then the reactor need not be woken
        self._name = name
        self._given = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE)  # counts what is in the queue
        # Threads hold on to this object, so it stays open for as long as one of them may read. At the end of the
        # process they are still at it.
        finalize(self, os.close, self._given).atexit = False

    def start(self) -> None:
        """Start the thread. A thread does not survive a fork, so not before the process is in the background."""
        # A daemon: an observer that hangs on a dead disk must not keep a process alive past its drain limit.
        Thread(target=self._loop, name=self._name, daemon=True).start()

    def run(self, work: Work, done: Done) -> None:
        """Queue the work."""
        self._give((work, done))

    def wait(self, seconds: float) -> bool:
        """Release the interpreter until the thread is done."""
        self._is_waited_for = True
        try:
            outcome = self._outcomes.get(timeout=seconds)
        except Empty:
            is_done = False
        else:
            is_done = True
            _deliver(*outcome)
        # In this order: deliver what came while the reactor was not to be woken.
        self._is_waited_for = False
        self._deliver_all()
        return is_done

    def stop(self) -> None:
        """End the thread once it has done what is queued."""
        self._give(None)

    def _give(self, task: tuple[Work, Done] | None) -> None:
        self._queue.put(task)
        os.eventfd_write(self._given, 1)

    def _next(self) -> tuple[Work, Done] | None:
        os.read(self._given, 8)  # goes on after a signal (PEP 475), which os.eventfd_read does not
        return self._queue.get()

    def _loop(self) -> None:
        while (task := self._next()) is not None:
            work, done = task
            try:
                outcome = work()
            except BaseException as error:
                # Even SystemExit: a thread that ends here leaves every later message without an answer.
                outcome = error
            self._outcomes.put((done, outcome))
            if not self._is_waited_for:
                self._reactor.callFromThread(self._deliver_all)
            # Between two batches, hold on to nothing of the last.
            del task, work, done, outcome

    def _deliver_all(self) -> None:
        """Deliver, in the reactor thread, the outcomes there are by now. Nothing else takes from this queue."""
        for _ in range(self._outcomes.qsize()):
            _deliver(*self._outcomes.get())


def _deliver(done: Done, outcome: object) -> None:
    try:
        done(outcome)
    except BaseException:
        # Even SystemExit, as the reactor does: the next outcome is delivered all the same.
        _log.failure("What a thread has done could not be dealt with")


class BriefWait:
    """
    Lets the reactor wait for an observer that only has to write on this machine, as long as it is quick.

    While the thread writes, the reactor would read a few requests more, with both competing for the interpreter's
    lock; those few would be the next batch, so that all batches stayed small. A reactor that waits sends the answers
    first, and then finds more to read. A sync takes long enough to do something else meanwhile.

    After L{ENOUGH} waits in vain there is one for each L{try_again}: a slow disk must not hold up the reactor. One that
    hangs does so once, since no store begins while it does.

    @param thread: that of the observer.
    """

    def __init__(self, observer: IMessageObserver, thread: ObserverThread) -> None:
        self._observer = observer
        # Others wait for an answer from outside, which takes long enough to do something else meanwhile.
        self._is_local = ILocalObserver.providedBy(observer)
        self._thread = thread
        self._in_vain = 0

    def is_back(self) -> bool:
        """Wait for the C{store} that has just begun. Return whether it is back and its outcome delivered."""
        if not self._is_local or self._in_vain >= ENOUGH or self._observer.promise == "durable":
            return False
        is_back = self._thread.wait(BRIEF)
        self._in_vain = 0 if is_back else self._in_vain + 1
        return is_back

    def try_again(self) -> None:
        """Allow one more wait, though the last ones were in vain."""
        self._in_vain = min(self._in_vain, ENOUGH - 1)
