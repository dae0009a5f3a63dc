"""
Remembers what was found for keys that senders repeat, such as paths, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound="str | bytes")
Found = TypeVar("Found")


def _is_not_none(found: object) -> bool:
    return found is not None


class Remembered(dict[Key, Found], Generic[Key, Found]):
    """
    What was found for keys: looked up by the key, and found when it is not there yet.

    What is remembered is shared by all requests with that key: leave it as it is. Long keys are not remembered, and
    full it is emptied, so that senders who make them up fill no memory.

    @param find: finds it.
    @param most: how many keys are remembered.
    @param longest: bytes or characters of the longest key that is.
    @param keeps: whether something found may be remembered.
    """

    __slots__ = ("_find", "_keeps", "_longest", "_most")

    def __init__(
        self, find: Callable[[Key], Found], *, most: int, longest: int, keeps: Callable[[Found], bool] = _is_not_none
    ) -> None:
        super().__init__()
        self._find = find
        self._most = most
        self._longest = longest
        self._keeps = keeps

    def __missing__(self, key: Key) -> Found:
        found = self._find(key)
        if len(key) <= self._longest and self._keeps(found):
            if len(self) >= self._most:
                self.clear()
            self[key] = found
        return found
