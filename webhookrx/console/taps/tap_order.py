"""
What a person asks a tap of a console for, and what is answered.
"""

from __future__ import annotations

from math import ceil
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.errors import CantTap
from webhookrx.management.tap_protocol import TapCommand
from webhookrx.quantities import parse_duration
from webhookrx.query import Query, QueryError, parse
from webhookrx.tapping.tap_request import LONGEST, LONGEST_QUERY, MOST_A_SECOND, TapQueries, TapRequest, parsed

MOST_PATHS: Final = 20
"""Files that are named of one router that was left out."""

_QueryText = Annotated[str, Meta(max_length=LONGEST_QUERY)]


class TapOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A tap to start. All but C{routers} is as at the router itself, see L{TapRequest}.

    @ivar routers: a query on routers; empty for all.
    @ivar lasts: C{for}, up to an hour: a text such as C{10m}, or seconds.
    @ivar rate: messages a second to show at most, of all routers together.
    """

    routers: _QueryText = ""
    connectors: _QueryText = ""
    source: Annotated[str, Meta(max_length=253)] = ""
    point: Annotated[str, Meta(max_length=80)] = ""
    filter: _QueryText = ""
    rate: Annotated[float, Meta(gt=0, le=MOST_A_SECOND)] = 1.0
    lasts: Annotated[str, Meta(max_length=32)] | int = msgspec.field(name="for", default="10m")


class LeftOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    A router that the query matches, and that takes no part.

    @ivar code: C{away}, C{unanswered} or C{no_connector}; or what the router says, such as C{reload_gate_closed}.
    @ivar reason: a sentence.
    @ivar paths: files that are missing there, up to L{MOST_PATHS}.
    """

    router: str
    code: str
    reason: str
    paths: tuple[str, ...] = ()


class StartedTap(msgspec.Struct, frozen=True):
    """
    A tap that runs.

    @ivar seconds: for how long.
    @ivar routers: those that take part, by name.
    @ivar left_out: some of those that do not; C{left_out_in_all} counts all.
    """

    id: str
    seconds: int
    routers: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    left_out_in_all: int


class CheckedOrder(msgspec.Struct, frozen=True):
    """
    An order that can be carried out.

    @ivar routers: the query on routers, parsed.
    @ivar request: the same order as a router checks it; C{queries} are those of it, parsed.
    @ivar seconds: how long it lasts.
    """

    order: TapOrder
    routers: Query
    request: TapRequest
    queries: TapQueries
    seconds: int

    def command(self, id: str) -> TapCommand:
        """Return what a router is told."""
        order = self.order
        return TapCommand(
            id=id,
            source=order.source,
            connectors=order.connectors,
            point=order.point,
            filter=order.filter,
            rate=order.rate,
            seconds=self.seconds,
        )


def checked(order: TapOrder) -> CheckedOrder:
    """
    Check an order.

    @raise ApiProblem: it is wrong.
    """
    seconds = _seconds(order.lasts)
    try:
        routers = parse(order.routers)
        request = TapRequest(
            source=order.source,
            connectors=order.connectors,
            point=order.point,
            filter=order.filter,
            rate=order.rate,
            seconds=seconds,
        )
        return CheckedOrder(order, routers, request, parsed(request), seconds)
    except QueryError as error:
        raise ApiProblem(INVALID, f"The query of routers is wrong: {error}") from None
    except CantTap as error:
        raise ApiProblem(INVALID, str(error)) from None


def _seconds(lasts: str | int) -> int:
    try:
        seconds = parse_duration(lasts) if isinstance(lasts, str) else lasts
    except ValueError as error:
        raise ApiProblem(INVALID, f"for: {error}") from None
    if not 1 <= seconds <= LONGEST:
        raise ApiProblem(INVALID, f"for: A tap lasts from 1 to {LONGEST:.0f} seconds.")
    return ceil(seconds)
