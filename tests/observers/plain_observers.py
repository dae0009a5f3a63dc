"""What a dotted name may lead to, for the tests of C{observer:}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.logger import ILogObserver, LogEvent
from zope.interface import implementer

events: list[dict[str, Any]] = []
error: Exception | None = None


def take(event: LogEvent) -> None:
    """Take an event, or fail as told."""
    if error is not None:
        raise error
    events.append(event)


@implementer(ILogObserver)
class Taker:
    """Takes events."""

    def __call__(self, event: LogEvent) -> None:
        """Take one."""
        take(event)


taker = Taker()


class NeedsArguments:
    """Can't be made without an argument."""

    def __init__(self, path: str) -> None:
        """Take it."""


class NotAnObserver:
    """Can be made, and does nothing."""


def make_taker() -> Taker:
    """Make one."""
    return Taker()


def make_callable(anything: str = "") -> Any:
    """Make something that takes events."""
    return take


def make_nothing() -> None:
    """Make nothing."""


def make_trouble() -> Taker:
    """Fail."""
    raise LookupError("no database")


def answer_later(event: LogEvent) -> Deferred[None]:
    """Take an event some day."""
    return succeed(None)


async def take_async(event: LogEvent) -> None:
    """Take an event when awaited."""


class AsyncTaker:
    """Hides a coroutine where it can't be seen beforehand."""

    async def __call__(self, event: LogEvent) -> None:
        """Take an event when awaited."""


number = 7
