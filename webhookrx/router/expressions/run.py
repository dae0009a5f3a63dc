"""
One run of a program: its record, its local variables, what it changed, and what it may still cost.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.router.expressions.limits import RunLimits
from webhookrx.router.expressions.mistakes import OperationError
from webhookrx.router.expressions.undo_log import UndoLog
from webhookrx.work import Work

_IN_ORDER: Final = 20
"""Units of a member of an object whose order is kept in mind, in case that the run fails."""


class Run:
    """
    @ivar record: the record's members.
    @ivar locals: the local variables.
    @ivar declared: the names of those that the program declares.
    @ivar left: units of work.
    @ivar undo_log: what changes objects and lists, those of local variables too: they may come from the record.
    """

    __slots__ = ("_most", "_work", "declared", "left", "limits", "locals", "record", "undo_log")

    def __init__(self, record: dict[str, Any], limits: RunLimits, work: Work, declared: tuple[str, ...] = ()) -> None:
        """
        @param work: what is left for all that is done to this message.
        """
        self.record = record
        self.locals: dict[str, Any] = {}
        self.declared = declared
        self.undo_log = UndoLog()
        self.limits = limits
        self._work = work
        self.left = self._most = work.left if work.left < limits.work else limits.work

    def spend(self, units: int) -> None:
        """
        Count what is to be done.

        @raise OperationError: it is too much. Nothing is left to the run then, since some of it may have been done.
        """
        if units > self.left:
            self.left = 0
            raise OperationError("The program has too much to do with this message.", final=True)
        self.left -= units

    def remove_member(self, members: dict[str, Any], name: str) -> Any:
        """
        Remove a member of an object that is there, and return it.

        @raise OperationError: the object has so many that to bring back their order would be too much.
        """
        if not self.undo_log.knows_order(members):
            self.spend(len(members) * _IN_ORDER)
        return self.undo_log.remove_member(members, name)

    def settle(self) -> None:
        """Take what was spent off what is left for the message."""
        self._work.left -= self._most - self.left
