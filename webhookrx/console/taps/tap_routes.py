"""
The routes of taps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import CONFLICT, NOT_FOUND, ApiProblem
from webhookrx.console.api.route import ApiCall, ApiRoute, EventStream
from webhookrx.console.taps.running_tap import EndsStream, RunningTap, TellsEvent
from webhookrx.console.taps.tap_order import StartedTap, TapOrder, checked

EVENTS: Final = "text/event-stream"


async def start_tap(call: ApiCall) -> StartedTap:
    """Start a tap."""
    taps = call.console.taps
    return await taps.begin(call.caller, call.address, checked(call.body))


async def show_events(call: ApiCall) -> EventStream:
    """Return what a tap shows, while it runs."""
    taps = call.console.taps
    tap = _tap(call)
    if tap.is_read:
        raise ApiProblem(CONFLICT, "The events of this tap are being read already.")

    def start(send: TellsEvent, end: EndsStream) -> Callable[[str], None]:
        tap.open(send, end)
        return lambda why: taps.end(tap, why)

    return EventStream(start)


async def end_tap(call: ApiCall) -> None:
    """End a tap."""
    call.console.taps.end(_tap(call), "ended")


def _tap(call: ApiCall) -> RunningTap:
    """
    Return the tap of a path.

    @raise ApiProblem: there is none that the caller has started.
    """
    tap: RunningTap | None = call.console.taps.of(call.caller, call.path["id"])
    if tap is None:
        raise ApiProblem(NOT_FOUND)
    return tap


ROUTES: Final = (
    ApiRoute(
        "POST",
        "/taps",
        Permission.TAP,
        start_tap,
        "Start a tap at routers, which have five seconds to answer.",
        request=TapOrder,
        answer=StartedTap,
        status=201,
    ),
    ApiRoute(
        "GET",
        "/taps/{id}/events",
        Permission.TAP,
        show_events,
        "What one's own tap shows, as server-sent events, once; it ends with its reader.",
        answer=str,
        gives=EVENTS,
    ),
    ApiRoute("DELETE", "/taps/{id}", Permission.TAP, end_tap, "End one's own tap.", status=204),
)
