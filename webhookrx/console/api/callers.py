"""
Who calls, and how many calls each may have under way, so that nobody takes the place of all others.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import BUSY, ApiProblem
from webhookrx.console.api.reading import Shown
from webhookrx.intake.client_address import sender_of

MOST_CALLS: Final = 64
"""Calls that are handled at a time; further ones get 503."""

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

T = TypeVar("T")


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


class Doorkeeper(Protocol):
    """Knows callers by what they show."""

    def identify(self, shown: Shown) -> Awaitable[Principal | None]:
        """Return who shows this, as of now; None when nobody does."""


class Callers:
    """
    Knows who calls the API and the pages, and gives their calls places: first those of strangers at one address, then,
    once it is known who calls, those of a person. Whoever has called a while ago by the same session or token is no
    stranger, so that a flood from the same address does not lock people out who work.

    @param seconds: monotonic.
    """

    def __init__(self, doorkeeper: Doorkeeper, seconds: Callable[[], float]) -> None:
        self._doorkeeper = doorkeeper
        self._seconds = seconds
        self._calls = 0
        self._strangers = Places(MOST_OF_STRANGERS, MOST_OF_ADDRESS)
        self._people = Places(MOST_CALLS, MOST_OF_PERSON)
        self._known: OrderedDict[bytes, float] = OrderedDict()

    async def serve(self, shown: Shown, ip: str, handle: Callable[[Principal | None], Awaitable[T]]) -> T:
        """
        Return what C{handle} does for a caller, who has a place meanwhile.

        @param ip: the caller's.
        @raise ApiProblem: there is no place; or what C{handle} raises.
        """
        if self._calls >= MOST_CALLS:
            raise ApiProblem(BUSY, headers=(("Retry-After", "1"),))
        self._calls += 1
        try:
            with self._place_of_stranger(shown, sender_of(ip)):
                principal = await self.identify(shown)
                if principal is None:
                    return await handle(None)
            with self._place_of_person(principal.name):
                return await handle(principal)
        finally:
            self._calls -= 1

    async def identify(self, shown: Shown) -> Principal | None:
        """Return who shows this, as of now; None when nobody does."""
        if shown == Shown():
            return None
        principal = await self._doorkeeper.identify(shown)
        self._remember(shown, good=principal is not None)
        return principal

    @contextmanager
    def _place_of_stranger(self, shown: Shown, network: str) -> Iterator[None]:
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
    def _place_of_person(self, name: str) -> Iterator[None]:
        if not self._people.take(name):
            raise _busy(f"You have {MOST_OF_PERSON} calls under way, which is the most for one person.")
        try:
            yield
        finally:
            self._people.give_back(name)

    def _remember(self, shown: Shown, *, good: bool) -> None:
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
