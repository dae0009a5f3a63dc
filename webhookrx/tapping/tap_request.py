"""
What an operator asks a tap for, checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from webhookrx.errors import CantTap
from webhookrx.query import Query, QueryError, parse
from webhookrx.regex import RegexTooCostly
from webhookrx.router.rules.rule import CONNECTOR_TYPE
from webhookrx.work import TooMuchWork, Work

LONGEST_QUERY: Final = 4096
"""Characters of a query."""

MOST_A_SECOND: Final = 20
"""Messages that a tap shows in a second at most."""

LONGEST: Final = 3600.0
"""Seconds that a tap lasts at most."""

MOST_JUDGING: Final = 10_000_000
"""Units of work for the query of connectors with all of them together: it is decided in the reactor's thread, and a
test of one field of 5,000 connectors takes an eighth of it."""

_PROBE: Final = re.compile(r"probe:[\w.-]{1,64}", re.ASCII)

_QueryText = Annotated[str, Meta(max_length=LONGEST_QUERY)]


class TapRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    What a tap is to show. It travels as JSON, and is checked by L{parsed}.

    @ivar source: the name of the one source, or connector, to look at; empty for all.
    @ivar connectors: a query on C{connector.*}, which is about connectors alone; empty for all sources.
    @ivar point: C{input}, C{output}, C{probe:NAME}, C{refused} or C{service}; empty for input and output side by side.
    @ivar filter: a query on the message as it is shown at the point, masked and cut; on that of the output, where both
        are shown.
    @ivar rate: messages a second to show at most.
    @ivar seconds: how long it lasts.
    """

    source: Annotated[str, Meta(max_length=253)] = ""
    connectors: _QueryText = ""
    point: Annotated[str, Meta(max_length=80)] = ""
    filter: _QueryText = ""
    rate: Annotated[float, Meta(gt=0, le=MOST_A_SECOND)] = 1.0
    seconds: Annotated[float, Meta(ge=1, le=LONGEST)] = 600.0


class TapQueries(msgspec.Struct, frozen=True):
    """The queries of a request, parsed; None where there is none."""

    connectors: Query | None
    filter: Query | None


def parsed(request: TapRequest) -> TapQueries:
    """
    Check what the type of a request does not say, and parse its queries.

    @raise CantTap: something is wrong with it.
    """
    if request.point not in ("", "input", "output", "refused", "service") and not _PROBE.fullmatch(request.point):
        raise CantTap("A tap shows one of the points input, output, probe:NAME, refused and service.")
    if request.point == "service" and (request.source or request.connectors):
        raise CantTap("The lines of the service's log are of no source and no connector.")
    return TapQueries(_query("connectors", request.connectors), _query("filter", request.filter))


def _query(name: str, text: str) -> Query | None:
    if not text.strip():
        return None
    try:
        return parse(text)
    except QueryError as error:
        raise CantTap(f"The query of {name} is wrong: {error}") from None


def is_about(
    request: TapRequest, queries: TapQueries, name: str, port: int | None, labels: Mapping[str, str], work: Work
) -> bool:
    """
    Tell whether a tap is about a source.

    @param port: that of a connector; None for any other source.
    @param labels: those of a connector.
    @param work: that of L{MOST_JUDGING} which is left.
    @raise TooMuchWork: none is left for this one.
    """
    if request.source and request.source != name:
        return False
    if queries.connectors is None:
        return True
    if port is None:
        return False
    # As messages have it, and as analytics name its labels.
    connector = {"type": CONNECTOR_TYPE, "name": name, "port": port, "labels": dict(labels)}
    try:
        return queries.connectors.decide({"connector": connector, "meta": {"connector": connector}}, work)
    except (TooMuchWork, RegexTooCostly):
        raise TooMuchWork("The query of connectors has too much to do with so many; make it simpler.") from None
