"""
One run of a program: its record, its local variables, what it changed, and what it may still cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhookrx.expressions.journal import Journal
from webhookrx.expressions.limits import Limits
from webhookrx.expressions.mistakes import Mistake


class Allowance:
    """
    What several runs on one message may make together.

    @ivar left: characters, as L{Limits.made} counts them.
    """

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Run:
    """
    @ivar scope: the record's members, and under their names the local variables.
    @ivar journal: what changes objects and lists, those of local variables too: they may come from the record.
    """

    __slots__ = ("_allowance", "_clock", "_deadline", "_left", "journal", "limits", "locals", "record")

    def __init__(
        self, record: dict[str, Any], clock: Callable[[], float], limits: Limits, allowance: Allowance | None = None
    ) -> None:
        self.record = record
        self.locals: dict[str, Any] = {}
        self.journal = Journal()
        self.limits = limits
        self._clock = clock
        self._deadline = clock() + limits.seconds
        self._left = limits.made
        self._allowance = allowance

    def look(self) -> None:
        """
        Look at the clock.

        @raise Mistake: the time is over.
        """
        if self._clock() > self._deadline:
            raise Mistake(f"The run took longer than {self.limits.seconds * 1000:g} ms.", final=True)

    def spend(self, characters: int) -> None:
        """
        Take note of something long.

        @raise Mistake: the run made too much, or the time is over.
        """
        self._left -= characters
        if self._left < 0:
            raise Mistake(f"The run made more than {self.limits.made} characters.", final=True)
        if self._allowance is not None:
            self._allowance.left -= characters
            if self._allowance.left < 0:
                raise Mistake("All expressions made too much of this message.", final=True)
        self.look()
