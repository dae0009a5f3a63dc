"""
How a router is tapped from its console: the commands, and what is shown.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Meta, Raw

from webhookrx.management.agent_body import AgentBody, BaseCommand, Count, MessageId, Sentence, ShortName

TAPS: Final = b"/agent/v1/taps/"
"""Followed by the id of a tap."""

MOST_EVENTS: Final = 256
"""Rows in one body."""

MOST_ROUTER_TAPS: Final = 8
"""Taps of the console at a router at a time; a router has room for others, which are its own operators'."""

_Query: TypeAlias = Annotated[str, Meta(max_length=4_096)]
_Point: TypeAlias = Annotated[str, Meta(pattern=r"^(|input|output|refused|service|probe:[0-9A-Za-z_.-]{1,64})\Z")]


class TapCommand(BaseCommand, frozen=True, tag="tap"):
    """
    Start a tap whose id is that of the command. All else is as in L{webhookrx.tapping.tap_request.TapRequest}, with the
    same bounds.
    """

    source: ShortName = ""
    connectors: _Query = ""
    point: _Point = ""
    filter: _Query = ""
    rate: Annotated[float, Meta(gt=0, le=20)] = 1.0
    seconds: Annotated[float, Meta(ge=1, le=3_600)] = 600.0


class UntapCommand(BaseCommand, frozen=True, tag="untap"):
    """End the tap with that id."""

    tap: MessageId


class TapEvents(AgentBody, frozen=True):
    """
    What a tap has shown since the last C{TapEvents}: once a second, also when nothing matched.

    @ivar number: counts them from 1. One that is sent again has the number that it had.
    @ivar seen: since the tap began, as are all counts.
    @ivar events: JSON objects, masked and cut.
    @ivar ended: why the tap has ended; empty while it goes on.
    """

    most_bytes: ClassVar[int] = 4 * 1024 * 1024

    number: Annotated[int, Meta(ge=1)]
    seen: Count
    matched: Count
    shown: Count
    not_looked_at: Count
    dropped: Count = 0
    events: Annotated[tuple[Raw, ...], Meta(max_length=MOST_EVENTS)] = ()
    ended: Sentence = ""
