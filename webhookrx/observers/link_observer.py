"""
What the observers of NATS and Redis share: they read the files of their access, hand it to a link, and end waits.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from webhookrx.observers.retrying import Retries
from webhookrx.store_counts import StoreCounts

SecretsT = TypeVar("SecretsT")
_UsedT = TypeVar("_UsedT", contravariant=True)


class AccessLink(Protocol[_UsedT]):
    """Connects by itself, whenever it has something to send."""

    def use(self, secrets: _UsedT, context: ssl.SSLContext | None, /) -> None:
        """Use these for the next connection, and end the present one."""

    def close(self) -> None:
        """Close the connection."""


class LinkObserver(Generic[SecretsT]):
    """
    A base of observers that send over one link, which C{__init__} of the subclass makes.

    @param read_access: reads the files with which the link connects; raises C{ConfigError}.
    """

    wants = None
    _link: AccessLink[SecretsT]

    def __init__(
        self, spec: str, retries: Retries, read_access: Callable[[], tuple[SecretsT, ssl.SSLContext | None]]
    ) -> None:
        self.spec = spec
        self.counts = StoreCounts()
        self._retries = retries
        self._read_access = read_access

    def check(self) -> None:
        """
        Read the files, without opening a connection.

        @raise ConfigError: a file is missing or wrong.
        """
        self._read_access()

    def open(self) -> None:
        """
        Read the files. The first batch connects: the server may be away at the start.

        @raise ConfigError: a file is missing or wrong.
        """
        self._retries.resume()
        self._link.use(*self._read_access())

    def hurry(self) -> None:
        """End pauses, and shorten waits for answers."""
        self._retries.hurry()

    def reopen(self) -> None:
        """
        Read the files again, and connect anew.

        @raise ConfigError: a file is wrong; what was read before stays in use.
        """
        self._link.use(*self._read_access())

    def close(self) -> None:
        """Close the connection."""
        self._link.close()
