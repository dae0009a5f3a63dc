"""
An asyncio loop in a thread of its own, for a client that needs one also between two batches, such as for pings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from concurrent.futures import wait
from contextlib import suppress
from logging import LogRecord, getLogger
from threading import Event, Thread, local
from typing import Any, Final, TypeVar

from twisted.logger import Logger

T = TypeVar("T")

_log = Logger()

_END_TIME: Final = 1.0
"""Seconds for tasks to end when the loop closes."""

_here: Final = local()
"""Has C{serves} in the threads of loops."""


def _is_of_others(record: LogRecord) -> bool:
    """
    Leave out what asyncio logs about a loop of ours: it would go to standard error, such as a line for each try when a
    server refuses a password over TLS. Whoever uses the connection is told its end anyway.
    """
    return not getattr(_here, "serves", False)


getLogger("asyncio").addFilter(_is_of_others)


class AsyncioThread:
    """
    Runs coroutines for a thread that blocks. L{run} and L{close} are never called two at a time.

    @param name: the thread's name, for debuggers and C{top -H}.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def run(self, work: Coroutine[Any, Any, T], steps: Iterable[float]) -> T:
        """
        Run a coroutine and return its result; the first one starts the thread.

        @param steps: seconds to wait next, one by one, until its time is over.
        @raise TimeoutError: it was over; the coroutine is cancelled, and may still run for a moment.
        @raise Exception: what the coroutine raises.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        for step in steps:
            if wait([future], step).done:
                return future.result()
        future.cancel()
        raise TimeoutError

    def close(self) -> None:
        """Cancel what runs, and end the thread within a second or two. L{run} starts another one."""
        loop, self._loop = self._loop, None
        thread, self._thread = self._thread, None
        if loop is None or thread is None:
            return
        # It may have ended by itself.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(_END_TIME + 1.0)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is not None and self._thread is not None and self._thread.is_alive():
            return self._loop
        started = Event()
        self._loop = loop = asyncio.new_event_loop()
        # A daemon: a look-up of a name that hangs must not keep a process alive.
        self._thread = Thread(target=_serve, args=(loop, started), name=self._name, daemon=True)
        self._thread.start()
        started.wait()
        return loop


def _serve(loop: asyncio.AbstractEventLoop, started: Event) -> None:
    _here.serves = True
    asyncio.set_event_loop(loop)
    # What a library leaves behind in a task of its own; whoever waits for the task is told anyway.
    loop.set_exception_handler(lambda _, context: _log.debug("asyncio: {message}", message=context["message"]))
    loop.call_soon(started.set)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=_END_TIME))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
