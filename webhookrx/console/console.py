"""
The console as one object: its store, its clock, and what each of its parts knows, for the resources of the API.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from twisted.web.resource import IResource, Resource

from webhookrx.console.alarms.console_alarms import ConsoleAlarms
from webhookrx.console.counts.console_counts import ConsoleCounts
from webhookrx.console.oidc.single_sign_on import SingleSignOn
from webhookrx.console.own_settings.live_settings import LiveSettings
from webhookrx.console.people.people import People
from webhookrx.console.routers.completion_routes import Completer
from webhookrx.console.routers.previews import Previews
from webhookrx.console.routers.rule_trials import RuleTrials
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.console.settings import ConsoleSettings
from webhookrx.console.store.interface import ConsoleStore
from webhookrx.console.taps.console_taps import ConsoleTaps

if TYPE_CHECKING:
    from webhookrx.console.routers.fleet import FleetOfRouters


class ConsolePart(Protocol):
    """A part of a console with a life of its own."""

    async def start(self) -> None:
        """
        Read from the store what it needs, and open what is its own. Parts start one after the other, before the first
        request of people comes.

        @raise webhookrx.errors.WebhookrxError: it can't; the console ends, and the text says why.
        """

    def tick(self) -> None:
        """Look at deadlines; called each half second, by the monotonic clock."""

    async def stop(self) -> None:
        """Close what it has opened; the store still works. Parts stop in the opposite order."""


class Console:
    """
    Joins the parts of a console. Each part gets this object and keeps its own state.

    @param reactor: has time and threads.
    @param clock: seconds since the epoch; C{reactor.seconds} is for waiting alone.
    @ivar settings: see L{ConsoleSettings}.
    @ivar store: where everything lasting is.
    @ivar parts: started and stopped with the console, in their order.
    @ivar root: the resource of C{--port}; a part sets it while it starts.
    @ivar end_streams: ends all streams of answers, as the console stops; the part that serves them sets it.
    @ivar fleet: its routers, once they have been read.
    @ivar problems: what needs attention, each a sentence without a secret, by what it is about.
    @ivar live: the settings that admins change while it runs.
    @ivar counts: what the routers have counted.
    @ivar people: knows callers; its passwords are to be started and stopped.
    @ivar single_sign_on: how people sign in at a provider; None without one.
    @ivar rulebook: all rules.
    @ivar previews: of rules that are not saved.
    @ivar trials: of rules, with recorded requests.
    @ivar completer: of queries that are being written.
    @ivar taps: what people see of messages while they pass.
    @ivar alarms: what is told of the routers when they are not well.
    """

    def __init__(
        self,
        settings: ConsoleSettings,
        store: ConsoleStore,
        reactor: Any,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.store = store
        self.reactor = reactor
        self.clock = clock
        self.live = LiveSettings(self)
        self.counts = ConsoleCounts(store, clock, reactor.seconds, lambda: self.live.retention.steps)
        self.parts: list[ConsolePart] = [self.live, self.counts]
        self.root: IResource = Resource()
        self.end_streams: Callable[[], None] = lambda: None
        self.problems: dict[str, str] = {}
        self.fleet: FleetOfRouters | None = None
        self.people = People(self)
        self.single_sign_on = None if settings.oidc is None else SingleSignOn(self, settings.oidc)
        self.rulebook = Rulebook(store, lambda: () if self.fleet is None else self.fleet.hosts)
        self.previews = Previews(self)
        self.trials = RuleTrials(self)
        self.completer = Completer(self)
        self.taps = ConsoleTaps(self)
        self.alarms = ConsoleAlarms(self)
