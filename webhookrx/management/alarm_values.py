"""
The values of alarms: facts about subjects and their texts, the states of subjects, and the changes that somebody is
told of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from webhookrx.quantities import readable_span

AlarmState: TypeAlias = Literal["ok", "pending", "firing", "unknown"]
StandingState: TypeAlias = Literal["firing", "pending", "unknown"]

STANDING: Final[tuple[StandingState, ...]] = get_args(StandingState)
"""The states that are not ok, in the order in which they are shown."""


class Fact(NamedTuple):
    """
    What is known of a subject, for alarms of one kind.

    @ivar fields: what the query of a rule tests; they stay the same for a subject.
    @ivar value: C{silent}, C{spool}, C{router_away}: seconds of age; C{certificate}: seconds until its end; C{refused}:
        refusals a second; else 1 or 0. None: not known now.
    @ivar share: C{refused}: part of all requests of the subject.
    @ivar text: one short sentence without a secret.
    @ivar is_doubtful: an age that is not right already, though not as old as a rule says.
    @ivar is_first: C{silent}: nothing has ever come, so what is waited for is the first message.
    """

    subject: str
    fields: Mapping[str, Any]
    value: float | None
    text: str
    share: float = 0.0
    is_doubtful: bool = False
    is_first: bool = False


Facts: TypeAlias = Mapping[str, Sequence[Fact]]
"""Facts by the kind of alarm. Those of one rule with the same subject are added up."""

NO_MESSAGE_YET: Final = "It has sent no message yet."


def last_message_text(age: float) -> str:
    """Return the text of a fact about a last message that is so many seconds old."""
    return f"Its last message came {readable_span(round(age))} ago."


def certificate_text(left: float) -> str:
    """Return the text of a fact about a certificate that ends in so many seconds, or ended as many ago."""
    span = readable_span(round(abs(left)))
    return f"It ends in {span}." if left > 0 else f"It ended {span} ago."


def waiting_text(messages: int, age: float) -> str:
    """Return the text of a fact about a spool whose oldest message is so many seconds old."""
    return f"{messages:,} messages wait, the oldest for {readable_span(round(age))}."


class AlarmChange(msgspec.Struct, frozen=True):
    """
    An alarm that has begun or ceased to fire.

    @ivar state: C{firing} or C{ok}.
    @ivar since: when the state began, seconds since the epoch.
    """

    alarm: str
    kind: str
    subject: str
    state: AlarmState
    since: float
    text: str
    notify: str = ""


class AlarmRow(msgspec.Struct, frozen=True):
    """
    An alarm that is not ok.

    @ivar since: when the state began, seconds since the epoch.
    """

    alarm: str
    kind: str
    subject: str
    state: StandingState
    since: float
    text: str


class AlarmCount(msgspec.Struct, frozen=True):
    """
    How many subjects of a rule are in which state.

    @ivar left_out: those that are too many to be known one by one.
    """

    alarm: str
    kind: str
    pending: int = 0
    firing: int = 0
    unknown: int = 0
    left_out: int = 0


class AlarmMark(msgspec.Struct, frozen=True):
    """
    What to keep of a subject, so that after a restart it is told neither twice nor not at all.

    @ivar state: C{firing}: its target was told that it fires, and not yet that it is ok.
    @ivar since: when the state began, seconds since the epoch.
    @ivar notify: the target that was told.
    """

    alarm: str
    kind: str
    subject: str
    state: Literal["pending", "firing"]
    since: float
    text: str
    notify: str = ""
