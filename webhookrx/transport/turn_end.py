"""
What is called at the end of a turn: once all connections that were ready have been served, before the reactor goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import Logger

_log = Logger()


class TurnEnd:
    """
    Calls functions at the end of the turn in which they were given.

    A reactor does that by C{callLater(0)}, which costs more than what most requests take in all. Nothing is called
    while connections are served: an answer that is written in between could meet a request that is just being read.
    """

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] | None = None  # None outside a turn

    def begin(self) -> None:
        """Begin a turn. Needs an L{end}."""
        self._calls = []

    def add(self, call: Callable[[], None]) -> bool:
        """
        Have C{call} called at the end of the turn that is under way.

        @return: False, and it will not be called, when none is; so it is while such calls are made.
        """
        if self._calls is None:
            return False
        self._calls.append(call)
        return True

    def end(self) -> None:
        """End the turn: make all calls, whatever any of them raises."""
        calls, self._calls = self._calls, None
        for call in calls or ():
            try:
                call()
            except BaseException:
                # Even SystemExit, as the reactor does.
                _log.failure("What was to be done at the end of a turn failed")
