"""
Alarm rules and the targets that are told of alarms, as their operator has set them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

RECEIVER_KINDS: Final = ("silent", "refused", "gate_closed", "certificate", "spool")
"""Alarms that a receiver can tell by itself."""

CONSOLE_KINDS: Final = (*RECEIVER_KINDS, "router_away", "apply_failed", "duplicate")
"""Alarms that a console can tell of its routers."""

AGES: Final = frozenset({"silent", "spool", "router_away"})
"""Kinds whose value is an age: the alarm fires once it is C{seconds}."""

BUILT_IN_KINDS: Final = ("router_away", "gate_closed", "apply_failed", "duplicate")
"""Those that a console tells of all its routers without a rule."""

DEFAULT_SECONDS: Final = {
    "refused": 300.0,
    "gate_closed": 300.0,
    "certificate": 14 * 86400.0,
    "spool": 900.0,
    "router_away": 300.0,
    "apply_failed": 0.0,
    "duplicate": 0.0,
}
"""C{for} of a rule that has none; C{silent} needs one."""

MOST_RULES: Final = 100
MOST_TARGETS: Final = 16
LONGEST_FOR: Final = 366 * 86400.0


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """
    An alarm rule.

    @ivar kind: one of L{CONSOLE_KINDS}.
    @ivar seconds: what C{for} says: how old or how lasting is too much; for C{certificate}, how near its end.
    @ivar when: a query on what the alarm is about; empty: all of it.
    @ivar rate: C{refused}: more refusals a second than this; None: L{share} says.
    @ivar share: C{refused}: more than this part of all requests, from 0 to 1.
    @ivar notify: the name of a target; several with commas between; empty: none is told.
    @ivar expect: C{silent}: how long the first message may take; None: as long as C{seconds}.
    """

    name: str
    kind: str
    seconds: float
    when: str = ""
    rate: float | None = None
    share: float | None = None
    notify: str = ""
    expect: float | None = None


@dataclass(frozen=True, slots=True)
class AlarmTarget:
    """
    Where alarms are told.

    @ivar url: it may hold a secret, so it is never shown.
    """

    name: str
    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """The alarm rules of a service, and the targets that they name."""

    rules: tuple[AlarmRule, ...] = ()
    targets: tuple[AlarmTarget, ...] = ()
