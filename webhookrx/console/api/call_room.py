"""
The room for calls: how many one caller may have under way, so that nobody takes the place of all others.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from webhookrx.console.api.problems import BUSY, ApiProblem
from webhookrx.console.api.reading import Shown

MOST_OF_STRANGERS: Final = 32
MOST_OF_ADDRESS: Final = 8
"""Calls under way of those who are not known yet, in all and of one address."""

MOST_OF_PERSON: Final = 16
"""Calls under way of one person, with all sessions and tokens."""

STREAMS_OF_PERSON: Final = 10
"""Streams that one person has open."""

KNOWN_FOR: Final = 300.0
"""Seconds for which it is remembered that a session or token was good. It is asked each time all the same."""

_MOST_KNOWN: Final = 10_000


class Places:
    """
    Counts what is under way.

    @param most: for all keys together; C{most_of_one} for each of them.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._taken: dict[str, int] = {}
        self._all = 0

    def take(self, key: str) -> bool:
        """Take a place; return False when there is none."""
        taken = self._taken.get(key, 0)
        if taken >= self._most_of_one or self._all >= self._most:
            return False
        self._taken[key] = taken + 1
        self._all += 1
        return True

    def give_back(self, key: str) -> None:
        """Give back a place that was taken."""
        self._all -= 1
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]


class CallRoom:
    """
    Gives calls their places: first those of strangers at one address, then, once it is known who calls, those of a
    person. Whoever has called a while ago by the same session or token is no stranger, so that a flood from the same
    address does not lock people out who work.

    @param seconds: monotonic.
    """

    def __init__(self, seconds: Callable[[], float], most: int) -> None:
        self._seconds = seconds
        self._strangers = Places(MOST_OF_STRANGERS, MOST_OF_ADDRESS)
        self._people = Places(most, MOST_OF_PERSON)
        self._known: OrderedDict[bytes, float] = OrderedDict()

    @contextmanager
    def of_stranger(self, shown: Shown, network: str) -> Iterator[None]:
        """
        Have a place until it is known who calls.

        @raise ApiProblem: there is none.
        """
        if self._is_known(shown):
            yield
            return
        if not self._strangers.take(network):
            raise _busy("Too many callers of your address are not known yet.")
        try:
            yield
        finally:
            self._strangers.give_back(network)

    @contextmanager
    def of_person(self, name: str) -> Iterator[None]:
        """
        Have a place while the call of a person is handled.

        @raise ApiProblem: there is none.
        """
        if not self._people.take(name):
            raise _busy(f"You have {MOST_OF_PERSON} calls under way, which is the most for one person.")
        try:
            yield
        finally:
            self._people.give_back(name)

    def remember(self, shown: Shown, *, good: bool) -> None:
        """Note whether what a caller has shown is good."""
        key = _digest(shown)
        self._known.pop(key, None)
        if good:
            self._known[key] = self._seconds() + KNOWN_FOR
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)

    def _is_known(self, shown: Shown) -> bool:
        return shown != Shown() and self._known.get(_digest(shown), 0.0) > self._seconds()


def _busy(detail: str) -> ApiProblem:
    return ApiProblem(BUSY, detail, headers=(("Retry-After", "1"),))


def _digest(shown: Shown) -> bytes:
    return hashlib.sha256(f"{shown.token}\0{shown.cookie}".encode()).digest()
