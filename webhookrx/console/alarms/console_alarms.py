"""
The alarms of a console: looks at its routers now and then, in turns, and keeps and tells what has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.console.alarms.alarm_book import AlarmBook
from webhookrx.console.alarms.connector_facts import ConnectorFacts
from webhookrx.console.alarms.fleet_facts import FleetFacts
from webhookrx.console.alarms.outbox import add_posts
from webhookrx.console.alarms.saved_marks import Marks, read_marks, write_marks
from webhookrx.console.alarms.telling import AlarmTelling, TellingStatus
from webhookrx.console.routers.counted import RouterCounting
from webhookrx.console.store.history import StoreTransaction
from webhookrx.console.turns import in_turns
from webhookrx.errors import WebhookrxError
from webhookrx.management.alarm_rules import AlarmRule
from webhookrx.management.alarm_values import AlarmChange, AlarmCount, AlarmMark, Facts
from webhookrx.management.alarms import Alarms
from webhookrx.service.alarm_posts import AlarmPost
from webhookrx.service.named_client import TargetEndpoint

if TYPE_CHECKING:
    from webhookrx.console.console import Console

LOOK_EVERY: Final = 30.0
"""Seconds between two looks."""

MOST_OF_ONE: Final = 5_000
MOST_STANDING: Final = 20_000
"""Subjects that are not ok and known one by one, of one alarm and of all."""

MOST_IN_PIECE: Final = 500
"""Subjects that one transaction writes, so that no change of a rule waits long for it."""

MOST_LOGGED: Final = 20
"""Changes that one look logs."""

_MOST_UNTOLD: Final = 32
"""POSTs about one subject that wait for the store."""

#: What alarms that can't be used are called among the problems of the console.
_ABOUT: Final = "alarms"

_log = Logger()


class AlarmsStatus(NamedTuple):
    """
    The alarms at one moment.

    @ivar looked_at: when the last look was, seconds since the epoch; 0 before the first.
    @ivar counts: how many subjects of each alarm are in which state.
    @ivar telling: what targets were told.
    """

    looked_at: float = 0.0
    counts: tuple[AlarmCount, ...] = ()
    telling: TellingStatus = TellingStatus()


class ConsoleAlarms:
    """
    A L{webhookrx.console.console.ConsolePart}.

    @param endpoint_for: see L{AlarmTelling}.
    @ivar alarms: as the last look has seen them, or as the one under way has so far.
    @ivar looked_at: see L{AlarmsStatus}.
    @ivar telling: tells targets.
    @ivar book: all alarms.
    """

    def __init__(self, console: Console, endpoint_for: TargetEndpoint | None = None) -> None:
        now = console.reactor.seconds()
        self._console = console
        self._reactor = console.reactor
        self._facts = self._make_facts(now)
        self._unsaved: dict[tuple[str, str], AlarmMark | None] = {}
        self._untold: dict[tuple[str, str], list[tuple[str, AlarmPost]]] = {}
        self._looking: Deferred[None] | None = None
        self._look_at = now
        self.book = AlarmBook(console.store)
        self.alarms = Alarms(self.book.rules, now, MOST_OF_ONE, MOST_STANDING)
        self.looked_at = 0.0
        self.telling = AlarmTelling(console, endpoint_for)

    async def start(self) -> None:
        """Read what was kept."""
        now = self._reactor.seconds()
        self._facts = self._make_facts(now)
        await self.telling.start()
        await self.book.start()
        if self.book.unusable:
            names = ", ".join(self.book.unusable)
            self._console.problems[_ABOUT] = f"Alarms can't be used as they are saved; write them anew: {names}."
        self.alarms.use(self.rules)
        marks = await self._console.store.read(read_marks)
        self.alarms.restore(marks, now, self._console.clock())

    def _make_facts(self, now: float) -> FleetFacts:
        console = self._console
        return FleetFacts(
            now,
            ConnectorFacts(console.counts, RouterCounting(console.counts, console.rulebook, console.reactor).labels),
        )

    def look_soon(self) -> None:
        """Let the next look come at once: something else is to be looked at."""
        self._look_at = self._reactor.seconds()

    def tick(self) -> None:
        """Look each L{LOOK_EVERY}; see L{webhookrx.console.console.ConsolePart.tick}."""
        now = self._reactor.seconds()
        if self._looking is None and now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._looking = Deferred.fromCoroutine(self.look())
            self._looking.addErrback(_failed).addBoth(self._looked)

    async def stop(self) -> None:
        """Let a look under way end; what can't be kept then is seen anew after the next start."""
        looking = self._looking
        if looking is not None:
            done: Deferred[None] = Deferred()
            looking.addBoth(lambda result: done.callback(None))
            await done
        await self.telling.stop()

    def _looked(self, result: object) -> None:
        self._looking = None

    async def look(self) -> None:
        """Look at all routers, keep what has changed, then tell it."""
        fleet = self._console.fleet
        if fleet is None:
            return
        now, at = self._reactor.seconds(), self._console.clock()
        self.alarms.use(self.rules)
        self._facts.begin(self.alarms.kinds, now, at)
        self.alarms.begin_look(now, at)
        changes: list[AlarmChange] = []
        async for piece in in_turns(self._reactor, self._pieces()):
            changes += self.alarms.take(piece)
        async for change in in_turns(self._reactor, self.alarms.end_look(self._facts.is_hidden)):
            changes.append(change)
        self._facts.end({each.guid for each in fleet.registry})
        async for key, mark in in_turns(self._reactor, self.alarms.touched()):
            self._unsaved[key] = mark
        async for change in in_turns(self._reactor, changes):
            if posts := self.telling.posts(change):
                waiting = self._untold.setdefault((change.alarm, change.subject), [])
                waiting += posts
                # While nothing can be written, what has been long ago is told least.
                del waiting[:-_MOST_UNTOLD]
        self.looked_at = at
        if not self.book.unusable:
            self._console.problems.pop(_ABOUT, None)
        _log_changes(changes)
        await self._save()
        self.telling.wake()

    @property
    def rules(self) -> list[AlarmRule]:
        """All alarms as they are to be, also those that were written since the last look."""
        notify = self.telling.built_in
        return [
            replace(rule, notify=notify) if (listed := self.book.listed(rule.name)) and listed.built_in else rule
            for rule in self.book.rules
        ]

    def _pieces(self) -> Iterator[Facts]:
        fleet = self._console.fleet
        assert fleet is not None
        for router in tuple(fleet.registry):
            if router.state == "approved":
                yield from self._facts.pieces(router)

    async def _save(self) -> None:
        while self._unsaved:
            piece = dict(islice(self._unsaved.items(), MOST_IN_PIECE))
            posts = [post for key in piece for post in self._untold.get(key, ())]
            told = await self._console.store.write(partial(_write, piece, posts))
            for key in piece:
                del self._unsaved[key]
                self._untold.pop(key, None)
            if told is not None:
                self.telling.added(*told)

    @property
    def status(self) -> AlarmsStatus:
        """How they are."""
        return AlarmsStatus(self.looked_at, tuple(self.alarms.counts), self.telling.status)


def _write(
    marks: Marks, posts: Sequence[tuple[str, AlarmPost]], transaction: StoreTransaction
) -> tuple[int, int] | None:
    write_marks(transaction, marks)
    return add_posts(transaction, posts) if posts else None


def _log_changes(changes: Sequence[AlarmChange]) -> None:
    for change in changes[:MOST_LOGGED]:
        _log.warn(
            "Alarm {alarm} ({kind}) is {state} for {subject}: {text}",
            alarm=change.alarm,
            kind=change.kind,
            state=change.state,
            subject=change.subject,
            text=change.text,
        )
    if len(changes) > MOST_LOGGED:
        _log.warn("{count} more alarms have changed", count=len(changes) - MOST_LOGGED)


def _failed(failure: Failure) -> None:
    if failure.check(WebhookrxError):
        _log.warn("What has become of alarms could not be kept: {why}", why=failure.value)
    else:
        _log.failure("Alarms could not be looked at", failure)
