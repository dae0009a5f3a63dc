"""
The console's directory on this host, as the agent uses it: in a thread, and one call at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredLock

from webhookrx.agent.chores import in_thread, to_its_end
from webhookrx.config.console_files import (
    ConsoleFiles,
    RouterIdentity,
    accept_bundle,
    mark_applied,
    read_console_files,
    refuse_next,
    write_identity,
)

_T = TypeVar("_T")


class ConsoleDirectory:
    """
    See L{webhookrx.config.console_files} for what lies there, and for what each of these raises. Whoever waits for a
    call may be cancelled: the call itself goes on to its end, and the next one begins after it.

    @param reactor: has threads.
    @param changed: called with what the directory holds, each time that it was read.
    """

    def __init__(self, reactor: Any, path: str, changed: Callable[[ConsoleFiles], object]) -> None:
        self._reactor = reactor
        self._changed = changed
        self._lock = DeferredLock()
        self.path = path

    def call(self, call: Callable[..., _T], *args: object) -> Deferred[_T]:
        """Return what a call returns that reads or writes the directory."""
        return to_its_end(Deferred.fromCoroutine(self._call(call, *args)))

    async def read(self) -> ConsoleFiles:
        """Return what it holds."""
        files = await self.call(read_console_files, self.path)
        self._changed(files)
        return files

    async def accept(self, envelope: bytes) -> None:
        """Keep a bundle that has come, if it is to be trusted."""
        await self.call(accept_bundle, self.path, envelope)
        await self.read()

    async def mark_applied(self, name: str) -> None:
        """Note that a bundle is in use."""
        await self.call(mark_applied, self.path, name)
        await self.read()

    async def refuse_next(self, name: str, error: str) -> None:
        """Remove a bundle that can't be applied, and remember why."""
        try:
            await self.call(refuse_next, self.path, name, error)
        finally:
            await self.read()

    async def change_identity(self, change: Callable[[], Awaitable[RouterIdentity]]) -> RouterIdentity:
        """Keep another identity. Nothing else writes to the directory from before C{change} is called."""
        return await to_its_end(Deferred.fromCoroutine(self._change_identity(change)))

    async def _call(self, call: Callable[..., _T], *args: object) -> _T:
        await self._lock.acquire()
        try:
            return await in_thread(self._reactor, call, *args)
        finally:
            self._lock.release()

    async def _change_identity(self, change: Callable[[], Awaitable[RouterIdentity]]) -> RouterIdentity:
        await self._lock.acquire()
        try:
            identity = await change()
            await in_thread(self._reactor, write_identity, self.path, identity)
        finally:
            self._lock.release()
        return identity
