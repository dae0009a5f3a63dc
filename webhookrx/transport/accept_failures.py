"""
Connections that can't be accepted, since there are no more files or there is no more memory.

Twisted's ports say so in several lines of their own for each, and try again on each turn of the reactor: megabytes of
log and all of a processor within seconds. Here it is told in a word, and such a port rests until the next look at it.
For that the private name of a port's logger is used, and C{numberAccepts}, which is not documented; tests fail when a
release of Twisted changes them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet import tcp
from twisted.logger import ILogObserver, LogEvent, Logger
from zope.interface import implementer

#: Connections that a port accepts before it is others' turn; a few more when there are always that many. Twisted would
#: take the more the more there are, and sockets of those that are refused or had to go are closed only after them.
MOST_ACCEPTED = 32


class AcceptFailures:
    """
    Hears of it in the place of the log.

    @param refused: called with the address of each connection that was closed at once, since there is no file for it.
    @param failed: called with the name of the error for each connection that waits in the kernel meanwhile.
    """

    def __init__(self, refused: Callable[[str], object], failed: Callable[[str], object]) -> None:
        self._refused = refused
        self._failed = failed
        self._resting: list[tcp.Port] = []

    def hear(self, port: tcp.Port) -> None:
        """Hear of it from an open port."""
        port._logger = Logger(port._logger.namespace, observer=_Ear(partial(self._heard, port)))
        port.numberAccepts = MOST_ACCEPTED

    def accepted(self, port: tcp.Port) -> None:
        """A port has accepted one."""
        port.numberAccepts = min(port.numberAccepts, MOST_ACCEPTED)

    def try_again(self) -> None:
        """Have ports accept that have rested; called twice a second or so."""
        resting, self._resting = self._resting, []
        for port in resting:
            if port.connected and not port.disconnecting:
                port.startReading()

    def _heard(self, port: tcp.Port, event: LogEvent) -> None:
        if "acceptError" in event:
            self._failed(event["acceptError"])
            self._resting.append(port)
            port.stopReading()
        elif "address" in event:
            # That of a UNIX socket is empty.
            address: Any = event["address"]
            self._refused(address[0] if isinstance(address, tuple) else "unix")


@implementer(ILogObserver)
class _Ear:
    """Takes what would go to the log."""

    def __init__(self, heard: Callable[[LogEvent], None]) -> None:
        self._heard = heard

    def __call__(self, event: LogEvent) -> None:
        self._heard(event)
