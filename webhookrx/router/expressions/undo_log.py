"""
Changes of objects and lists that can be taken back.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.message.fields import MISSING

_ADDED: Final = object()
_TAKEN_OUT: Final = object()
_REPLACED: Final = object()


class UndoLog:
    """
    What one run changed, in order. Members of objects get their old order back too: it is that of the sender.
    """

    __slots__ = ("_entries", "_orders")

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any, Any]] = []
        self._orders: dict[int, tuple[dict[str, Any], list[str]]] = {}

    def set_member(self, members: dict[str, Any], name: str, value: Any) -> None:
        """Set a member of an object."""
        self._entries.append((members, name, members.get(name, MISSING), None))
        members[name] = value

    def set_element(self, elements: list[Any], index: int, value: Any) -> None:
        """Set an element of a list that is there."""
        self._entries.append((elements, index, elements[index], None))
        elements[index] = value

    def append(self, elements: list[Any], value: Any) -> None:
        """Add an element to a list."""
        self._entries.append((elements, None, None, _ADDED))
        elements.append(value)

    def knows_order(self, members: dict[str, Any]) -> bool:
        """Tell whether a member was removed from an object before."""
        return id(members) in self._orders

    def remove_member(self, members: dict[str, Any], name: str) -> Any:
        """Remove a member of an object that is there, and return it."""
        if id(members) not in self._orders:
            # The entry keeps the object alive, so that no other one gets its id.
            self._orders[id(members)] = members, list(members)
        value = members.pop(name)
        self._entries.append((members, name, value, None))
        return value

    def remove_element(self, elements: list[Any], index: int) -> None:
        """Remove an element of a list that is there; those behind it move up."""
        self._entries.append((elements, index, elements.pop(index), _TAKEN_OUT))

    def replace_elements(self, elements: list[Any], others: list[Any]) -> None:
        """Set a list to other elements."""
        self._entries.append((elements, None, elements[:], _REPLACED))
        elements[:] = others

    def undo(self) -> None:
        """Take all changes back."""
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
            # Those that the run added are gone already.
            ordered = {name: members[name] for name in names if name in members}
            members.clear()
            members.update(ordered)
        self._orders.clear()
