"""
One run of a program: its record, its local variables, what it changed, and what it may still cost.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.router.expressions.journal import Journal
from webhookrx.router.expressions.limits import Limits
from webhookrx.router.expressions.mistakes import Mistake
from webhookrx.work import Work

_IN_ORDER: Final = 20
"""Units of a member of an object whose order is kept in mind, in case that the run fails."""


class Run:
    """
    @ivar record: the record's members.
    @ivar locals: the local variables.
    @ivar declared: the names of those that the program declares.
    @ivar left: units of work.
    @ivar journal: what changes objects and lists, those of local variables too: they may come from the record.
    """

    __slots__ = ("_most", "_work", "declared", "journal", "left", "limits", "locals", "record")

    def __init__(self, record: dict[str, Any], limits: Limits, work: Work, declared: tuple[str, ...] = ()) -> None:
        """
        @param work: what is left for all that is done to this message.
        """
        self.record = record
        self.locals: dict[str, Any] = {}
        self.declared = declared
        self.journal = Journal()
        self.limits = limits
        self._work = work
        self.left = self._most = work.left if work.left < limits.work else limits.work

    def spend(self, units: int) -> None:
        """
        Count what is to be done.

        @raise Mistake: it is too much. All that was left to the run is then taken: some of it may have been done.
        """
        if units > self.left:
            self.left = 0
            raise Mistake("The program has too much to do with this message.", final=True)
        self.left -= units

    def remove_member(self, members: dict[str, Any], name: str) -> Any:
        """
        Remove a member of an object that is there, and return it.

        @raise Mistake: the object has so many that to bring back their order would be too much.
        """
        if not self.journal.knows_order(members):
            self.spend(len(members) * _IN_ORDER)
        return self.journal.remove_member(members, name)

    def settle(self) -> None:
        """Take what was spent off what is left for the message."""
        self._work.left -= self._most - self.left
