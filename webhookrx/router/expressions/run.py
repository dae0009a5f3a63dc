"""
One run of a program: its bounds, its errors, and the log that undoes its changes.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.diagnostics import Position
from webhookrx.errors import WebhookrxError
from webhookrx.message.fields import MISSING
from webhookrx.work import MOST_FOR_STEP, Work

START: Final = Position(1, 1)
"""The beginning of a program, the place of errors without one."""

MAX_SOURCE: Final = 64 * 1024
"""Characters of a program."""

MAX_NESTING: Final = 64
"""How deep blocks, parentheses and operands of a program may nest; far from the interpreter's own limit."""

MAX_PATTERNS: Final = 100
"""Regular expressions, globs and formats of moments of a program."""

MAX_DEPTH: Final = 128
"""How deep a value that a program makes may nest, as deep as a body may (L{webhookrx.intake.json_body.MAX_DEPTH})."""

MAX_INTEGER: Final = 2**63 - 1
MIN_INTEGER: Final = -(2**63)
"""Integers that arithmetic takes and makes. Others are left alone as long as they are only moved."""

OPERATION: Final = 250
"""Units of an operation of a program, with its work on a short text."""

SHORT: Final = 64
"""Characters of a text that an operation takes or makes for nothing."""

ELEMENT: Final = 130
"""Units of an element of a list or an object that is copied, read or made."""

CONTAINER: Final = 800
"""Units of an object or a list that is copied, besides its elements."""

CALL: Final = 800
"""Units of a function for each of its results, such as a pair or a column."""

SLOW_PATH: Final = 1000
"""Units of a field below a name with dots, in a list, or missing."""


class RunLimits(msgspec.Struct, frozen=True):
    """
    Bounds of one run.

    @ivar operations: of a program. There are no loops, so no operation runs twice; a longer program does not compile.
    @ivar work: units.
    @ivar text: characters of one text that an operation takes or makes.
    @ivar elements: of one list or object that an operation takes or makes, with those of inner ones.
    """

    operations: int = 10_000
    work: int = MOST_FOR_STEP
    text: int = 1024 * 1024
    elements: int = 10_000


class ExpressionError(WebhookrxError):
    """
    A program does not compile, or a run of it failed.

    @ivar problem: one sentence; it may quote the program, and never the message.
    @ivar position: the place in the program.
    """

    def __init__(self, problem: str, position: Position) -> None:
        super().__init__(f"line {position.line}, column {position.column}: {problem}")
        self.problem = problem
        self.position = position


class RecoverableError(ExpressionError):
    """An operation failed on these values; C{??} replaces its value."""


class OperationError(Exception):
    """
    An operation failed, before its place in the program is known: see L{located}.

    @ivar final: a bound of the whole run is exceeded, so that C{??} does not help.
    """

    def __init__(self, problem: str, *, final: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.final = final


def located(position: Position, error: OperationError) -> ExpressionError:
    """Return the error of an operation with its place in the program: L{RecoverableError} unless it is final."""
    kind = ExpressionError if error.final else RecoverableError
    return kind(error.problem, position)


class Ended(Exception):
    """
    C{drop} or C{done} within an expression.

    @ivar keep: the message is kept.
    """

    def __init__(self, keep: bool) -> None:
        super().__init__()
        self.keep = keep


_ADDED: Final = object()
_TAKEN_OUT: Final = object()
_REPLACED: Final = object()


class UndoLog(msgspec.Struct):
    """
    Changes objects and lists, and undoes the changes. Members get their old order back, too: it is the sender's.
    """

    _entries: list[tuple[Any, Any, Any, Any]] = []
    _orders: dict[int, tuple[dict[str, Any], list[str]]] = {}

    def set_member(self, members: dict[str, Any], name: str, value: Any) -> None:
        """Set a member of an object."""
        self._entries.append((members, name, members.get(name, MISSING), None))
        members[name] = value

    def set_element(self, elements: list[Any], index: int, value: Any) -> None:
        """Set an existing element of a list."""
        self._entries.append((elements, index, elements[index], None))
        elements[index] = value

    def append(self, elements: list[Any], value: Any) -> None:
        """Add an element to a list."""
        self._entries.append((elements, None, None, _ADDED))
        elements.append(value)

    def knows_order(self, members: dict[str, Any]) -> bool:
        """Tell whether the order of an object's members is kept: one was removed before."""
        return id(members) in self._orders

    def remove_member(self, members: dict[str, Any], name: str) -> Any:
        """Remove an existing member of an object, and return it."""
        if id(members) not in self._orders:
            # The entry keeps the object alive, so that no other object gets its id.
            self._orders[id(members)] = members, list(members)
        value = members.pop(name)
        self._entries.append((members, name, value, None))
        return value

    def remove_element(self, elements: list[Any], index: int) -> None:
        """Remove an existing element of a list; those behind it move up."""
        self._entries.append((elements, index, elements.pop(index), _TAKEN_OUT))

    def replace_elements(self, elements: list[Any], others: list[Any]) -> None:
        """Replace all elements of a list."""
        self._entries.append((elements, None, elements[:], _REPLACED))
        elements[:] = others

    def undo(self) -> None:
        """Undo all changes."""
        while self._entries:
            place, key, old, how = self._entries.pop()
            if how is _ADDED:
                place.pop()
            elif how is _TAKEN_OUT:
                place.insert(key, old)
            elif how is _REPLACED:
                place[:] = old
            elif old is MISSING:
                del place[key]
            else:
                place[key] = old
        for members, names in self._orders.values():
            # Members that the run added are gone already.
            ordered = {name: members[name] for name in names if name in members}
            members.clear()
            members.update(ordered)
        self._orders.clear()


_IN_ORDER: Final = 20
"""Units of a member of an object whose order is kept for L{UndoLog.undo}."""


class Run(msgspec.Struct):
    """
    @ivar record: the message.
    @ivar _work: what is left for all steps of the message.
    @ivar declared: the names of the variables that the program declares.
    @ivar locals: the local variables.
    @ivar left: units of work.
    @ivar undo_log: for changes of all objects and lists; those of local variables may be from the record.
    """

    record: dict[str, Any]
    limits: RunLimits
    _work: Work
    declared: tuple[str, ...] = ()
    locals: dict[str, Any] = {}
    left: int = 0
    _most: int = 0
    undo_log: UndoLog = msgspec.field(default_factory=UndoLog)

    def __post_init__(self) -> None:
        left, most = self._work.left, self.limits.work
        self.left = self._most = left if left < most else most

    def spend(self, units: int) -> None:
        """
        Count work.

        @raise OperationError: there is less left. Then the run has none left: some of the work may have been done.
        """
        if units > self.left:
            self.left = 0
            raise OperationError("The program has too much to do with this message.", final=True)
        self.left -= units

    def too_long(self) -> OperationError:
        """Return the error of a text that is too long."""
        return OperationError(f"A text is longer than {self.limits.text} characters.")

    def too_many(self, what: str) -> OperationError:
        """Return the error of an object or a list that has too many elements; C{what} names it."""
        return OperationError(f"{what} has more than {self.limits.elements} elements.")

    def remove_member(self, members: dict[str, Any], name: str) -> Any:
        """
        Remove an existing member of an object, and return it.

        @raise OperationError: the object has too many members to keep their order.
        """
        if not self.undo_log.knows_order(members):
            self.spend(len(members) * _IN_ORDER)
        return self.undo_log.remove_member(members, name)

    def settle(self) -> None:
        """Charge the work of the run to the message."""
        self._work.left -= self._most - self.left
