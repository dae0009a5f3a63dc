"""
The part of a console that has its routers: their fleet, and the port on which they come.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.console.routers.authority import load_authority
from webhookrx.console.routers.bundle_plan import HandedRule
from webhookrx.console.routers.counted import RouterCounting
from webhookrx.console.routers.fleet import KEEP_EVERY, FleetOfRouters
from webhookrx.console.routers.listening import RoutersPort
from webhookrx.console.routers.port import RoutersResource
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.errors import WebhookrxError
from webhookrx.query import parse

if TYPE_CHECKING:
    from webhookrx.console.console import Console

#: What the fleet's problem is called among those of the console.
_ABOUT: Final = "routers"

_log = Logger()


class HandedRules:
    """
    The saved rules as routers get them. A selector is parsed once for each generation of its rule.
    """

    def __init__(self, rulebook: Rulebook) -> None:
        self._rulebook = rulebook
        self._known: dict[tuple[str, int], HandedRule] = {}

    def __call__(self) -> Sequence[HandedRule]:
        """Return them, by name."""
        known = self._known
        self._known = {
            key: known.get(key) or HandedRule(saved.name, parse(saved.rule.selector), saved.text)
            for saved in self._rulebook.saved.rules.values()
            for key in ((saved.name, saved.generation),)
        }
        return tuple(self._known.values())


class RoutersPart:
    """
    See L{webhookrx.console.console.ConsolePart}.

    @param console: its C{fleet} is there once this has started.
    @param in_thread: runs a function apart from the reactor.
    """

    def __init__(self, console: Console, in_thread: Callable[..., Deferred[Any]] = deferToThread) -> None:
        self._console = console
        self._in_thread = in_thread
        self._port: RoutersPort | None = None
        self._keep_at = 0.0
        self._keeping = False

    async def start(self) -> None:
        """
        Read the keys and the routers, then listen for them.

        @raise webhookrx.errors.CannotStart: a key can't be used, or the port not be opened.
        """
        console, settings = self._console, self._console.settings
        authority = load_authority(os.path.dirname(settings.database))
        fleet = console.fleet = FleetOfRouters(
            console.reactor,
            console.store,
            authority,
            console.clock,
            HandedRules(console.rulebook),
            lambda: console.live.masks.names,
            in_thread=self._in_thread,
        )
        await fleet.load()
        console.rulebook.changed.append(lambda saved: fleet.replan())
        if settings.routers is not None:
            self._port = RoutersPort(
                console.reactor,
                authority,
                RoutersResource(
                    fleet,
                    time.monotonic,
                    RouterCounting(console.counts, console.rulebook, console.reactor),
                    console.taps,
                ),
                settings.routers.socket,
                settings.routers.text,
                (urlsplit(settings.url).hostname or "localhost", "localhost", "127.0.0.1", "::1"),
                console.clock,
            )
            self._port.start()
            _log.info("Routers come to {where}", where=settings.routers.text)

    def tick(self) -> None:
        """See L{webhookrx.console.console.ConsolePart.tick}."""
        fleet = self._console.fleet
        if self._port is not None:
            self._port.tick()
        if fleet is None:
            return
        if fleet.problem:
            self._console.problems[_ABOUT] = fleet.problem
        else:
            self._console.problems.pop(_ABOUT, None)
        now = self._console.reactor.seconds()
        if not self._keeping and now >= self._keep_at:
            self._keeping, self._keep_at = True, now + KEEP_EVERY
            Deferred.fromCoroutine(fleet.keep()).addErrback(_not_kept).addBoth(self._kept)

    async def stop(self) -> None:
        """Close the port, and keep what routers have told."""
        if self._port is not None:
            await self._port.stop()
        if self._console.fleet is not None:
            await self._console.fleet.keep()

    def _kept(self, result: object) -> None:
        self._keeping = False


def _not_kept(failure: Failure) -> None:
    if not failure.check(WebhookrxError):
        _log.failure("What routers have told could not be kept", failure)
    else:
        _log.warn("What routers have told could not be kept: {why}", why=failure.value)
