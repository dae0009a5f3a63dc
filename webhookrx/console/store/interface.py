"""
The interface of a console's store: what the rest of the console writes and reads with.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from webhookrx.console.store.history import StoreTransaction

T = TypeVar("T")


class ConsoleStore(Protocol):
    """
    Functions that get a connection run apart from the reactor, one writer at a time. What they return is plain values,
    never a cursor.
    """

    def write(self, work: Callable[[StoreTransaction], T]) -> Awaitable[T]:
        """
        Run a function in a transaction of its own. When the result is there, all of it is on disk; when there is an
        error, nothing of it is.

        An error that C{work} raises comes out as it is.

        @raise webhookrx.errors.StoreFull: there is no room for it.
        @raise webhookrx.errors.StoreUnavailable: the file can't be written now, or too many wait.
        """
        ...

    def look(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """
        Read what takes no more than a moment, such as who calls. It is as L{read}, and never behind what that does.

        @raise webhookrx.errors.StoreUnavailable: the file can't be read now, or too many wait.
        """
        ...

    def read(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """
        Run a function on one state of the store, with a connection that can't write. It is never behind a write that
        has returned.

        @raise webhookrx.errors.StoreUnavailable: the file can't be read now, or too many wait.
        """
        ...
