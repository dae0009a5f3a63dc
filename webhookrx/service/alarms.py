"""
The alarms of a receiver: looked at every few seconds, shown, and told to targets.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from twisted.logger import Logger

from webhookrx.management.alarm_rules import AlarmSettings
from webhookrx.operations.counters import Counters
from webhookrx.operations.snapshot import AlarmTally, ReceiverSnapshot

if TYPE_CHECKING:
    from webhookrx.management.alarm_values import AlarmRow
    from webhookrx.management.alarms import Alarms
    from webhookrx.operations.alarm_facts import AlarmFacts
    from webhookrx.service.alarm_posts import AlarmPosts

MOST_SHOWN: Final = 200
"""Alarms that a status shows one by one."""

_log = Logger()


class _Looking(NamedTuple):
    alarms: Alarms
    facts: AlarmFacts
    posts: AlarmPosts


class ReceiverAlarms:
    """
    Looks at a receiver, once it has alarm rules.

    @param counters: returns all that was counted.
    @param snapshot: returns the receiver as it is now.
    @param own: where what was told is counted.
    @param endpoint_for: see L{webhookrx.service.alarm_posts.AlarmPosts}.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: seconds since the epoch.
    """

    def __init__(
        self,
        reactor: Any,
        counters: Callable[[], Counters],
        snapshot: Callable[[], ReceiverSnapshot],
        own: Counters,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        endpoint_for: Any = None,
    ) -> None:
        self._counters = counters
        self._snapshot = snapshot
        self._clock = clock
        self._wall_clock = wall_clock
        self._reactor = reactor
        self._own = own
        self._endpoint_for = endpoint_for
        self._began = clock()
        self._looking: _Looking | None = None
        self._has_rules = False

    def use(self, settings: AlarmSettings) -> None:
        """Use other rules and targets."""
        self._has_rules = bool(settings.rules)
        if self._looking is None:
            if not settings.rules:
                return
            self._looking = self._make()
        self._looking.alarms.use(settings.rules)
        self._looking.posts.use(settings.targets)

    def _make(self) -> _Looking:
        # They take memory, which a receiver without alarms does not need.
        from webhookrx.management.alarms import Alarms
        from webhookrx.operations.alarm_facts import AlarmFacts
        from webhookrx.service.alarm_posts import AlarmPosts

        def count(outcome: str) -> None:
            self._own.add("alarm_posts", outcome)

        posts = AlarmPosts(self._reactor, socket.gethostname(), count, self._endpoint_for)
        return _Looking(Alarms((), self._began), AlarmFacts(self._clock()), posts)

    def look(self) -> None:
        """Look at the receiver, and tell what has changed."""
        if self._looking is None:
            return
        alarms, makes, posts = self._looking
        now, at = self._clock(), self._wall_clock()
        facts = makes.facts(alarms.kinds, self._counters(), self._snapshot(), now, at)
        for change in alarms.look(facts, now, at):
            _log.warn(
                "Alarm {alarm} ({kind}) is {state} for {subject}: {text}",
                alarm=change.alarm,
                kind=change.kind,
                state=change.state,
                subject=change.subject or "requests of no source",
                text=change.text,
            )
            posts.tell(change)

    @property
    def rows(self) -> list[AlarmRow] | None:
        """All that is not ok, those that fire first, up to L{MOST_SHOWN}; None without rules."""
        return self._looking.alarms.rows[:MOST_SHOWN] if self._looking is not None and self._has_rules else None

    @property
    def tallies(self) -> tuple[AlarmTally, ...]:
        """How many subjects of each rule are in which state; those that are too many are C{left_out}."""
        if self._looking is None:
            return ()
        return tuple(
            AlarmTally(each.alarm, each.kind, state, getattr(each, state))
            for each in self._looking.alarms.counts
            for state in ("pending", "firing", "unknown", "left_out")
        )

    def stop(self) -> None:
        """Tell nothing any more."""
        if self._looking is not None:
            self._looking.posts.stop()
