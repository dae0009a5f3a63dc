"""
All taps of a console: started and ended here, and heard by nobody but who started each.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import msgspec
from twisted.internet.defer import DeferredList

from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import (
    BUSY,
    NOTHING_TO_TAP,
    RELOAD_GATE_CLOSED,
    TOO_MANY_ROUTERS,
    ApiProblem,
    too_many,
)
from webhookrx.console.pace import Pace
from webhookrx.console.routers.polls import Unanswered
from webhookrx.console.taps.choosing import choose
from webhookrx.console.taps.running_tap import RunningTap, TappedRouter, TapStarter
from webhookrx.console.taps.tap_audit import TapAudit
from webhookrx.console.taps.tap_order import MOST_PATHS, CheckedOrder, LeftOut, StartedTap
from webhookrx.management.agent_protocol import CommandAnswer
from webhookrx.management.tap_protocol import TapEvents, UntapCommand

if TYPE_CHECKING:
    from webhookrx.console.console import Console
    from webhookrx.console.routers.fleet import FleetOfRouters
    from webhookrx.console.routers.registry import EnrolledRouter

MOST_TAPS: Final = 16
"""Taps at a time; a router takes L{webhookrx.management.tap_protocol.MOST_ROUTER_TAPS} of them."""

MOST_OF_PERSON: Final = 4
"""Taps of one person at a time."""

MOST_TAPPED: Final = 100
"""Routers of one tap."""

ANSWER_TIME: Final = 5.0
"""Seconds that routers have to say whether they take part."""

OPEN_TIME: Final = 10.0
"""Seconds after which a tap ends that nobody reads."""

LOST_AFTER: Final = 2.0
"""Seconds in which a router says nothing and does not poll either, after which its tap has ended."""

SILENT_AFTER: Final = 15.0
"""Seconds without a word of a router of which all else is well."""

MOST_LEFT_OUT: Final = 500
"""Routers that an answer names as left out."""

_GATE: Final = "reload_gate_closed"
_UNTAP_TIME: Final = 10.0
_MOST_PATHS_OF_ALL: Final = 200


class TapsStatus(msgspec.Struct, frozen=True):
    """
    The taps of a console at one moment.

    @ivar running: taps.
    @ivar shown: rows of all taps since the start; C{dropped} of them nobody got.
    """

    running: int = 0
    shown: int = 0
    dropped: int = 0


class ConsoleTaps:
    """
    A L{webhookrx.console.console.ConsolePart}.

    @param monotonic: seconds; that of a reactor is the wall clock.
    """

    def __init__(self, console: Console, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._monotonic = monotonic
        self._ticked_at = monotonic()
        self._taps: dict[str, RunningTap] = {}
        self._pace = Pace(0.2, 10)
        self._audit = TapAudit(console.store)
        self._ended_shown = 0
        self._ended_dropped = 0
        self._stops = False

    # -- the part ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Nothing of taps outlasts a console."""

    def tick(self) -> None:
        """End the taps whose time is over, or whose routers have gone; tell counts."""
        now = self._monotonic()
        since, self._ticked_at = now - self._ticked_at, now
        # A console that was held up itself has not heard what routers have said meanwhile.
        missed = since if since >= LOST_AFTER / 2 else 0.0
        for tap in tuple(self._taps.values()):
            if tap.runs_since is None:
                continue
            for each in tap.routers.values():
                each.heard_at += missed
                each.seen_at += missed
            self._look_at_routers(tap, now)
            if now >= tap.until:
                self.end(tap, "over")
            elif not tap.is_read and now >= tap.runs_since + OPEN_TIME:
                self.end(tap, "unread")
            elif tap.has_ended_everywhere:
                self.end(tap, "routers")
            else:
                tap.tick(now)

    async def stop(self) -> None:
        """End all taps, and write that down."""
        self._stops = True
        for tap in tuple(self._taps.values()):
            self.end(tap, "stopping")
        await self._audit.settled()

    @property
    def status(self) -> TapsStatus:
        """How they do."""
        taps = self._taps.values()
        return TapsStatus(
            sum(tap.runs_since is not None for tap in taps),
            self._ended_shown + sum(tap.shown for tap in taps),
            self._ended_dropped + sum(tap.dropped for tap in taps),
        )

    # -- what people ask -----------------------------------------------------------------------------------------

    async def begin(self, principal: Principal, address: str, order: CheckedOrder) -> StartedTap:
        """
        Start a tap. It runs until it is read no more, or nobody has begun to within L{OPEN_TIME}.

        @raise ApiProblem: there are too many, or no router takes part.
        """
        console, fleet = self._console, self._console.fleet
        if fleet is None or self._stops:
            raise ApiProblem(BUSY, "The console has no routers now.", headers=(("Retry-After", "5"),))
        now = self._monotonic()
        starter = TapStarter.of(principal)
        self._check_room(starter, now)
        tap = RunningTap(secrets.token_hex(16), starter, address, order, now, console.clock())
        # Its place is taken before routers are asked.
        self._taps[tap.id] = tap
        try:
            left_out = await self._gather(fleet, tap)
            await self._audit.begun(tap)
            _check_goes_on(tap)
        except BaseException:
            self._drop(tap)
            raise
        tap.runs_since = self._monotonic()
        names = tuple(each.name for each in tap.routers.values())
        return StartedTap(tap.id, order.seconds, names, tuple(left_out[:MOST_LEFT_OUT]), len(left_out))

    def of(self, principal: Principal, id: str) -> RunningTap | None:
        """Return a tap that runs, for who has started it; None for everybody else."""
        tap = self._taps.get(id)
        if tap is None or tap.runs_since is None or tap.starter != TapStarter.of(principal):
            return None
        return tap

    def _check_room(self, starter: TapStarter, now: float) -> None:
        """
        @raise ApiProblem: there is none for one more tap of this person.
        """
        own = sum(tap.starter.name == starter.name for tap in self._taps.values())
        if own >= MOST_OF_PERSON:
            raise too_many(f"You have {MOST_OF_PERSON} taps, which is the most for one person.", 10)
        if len(self._taps) >= MOST_TAPS:
            raise too_many(f"{MOST_TAPS} taps run, which is the most for a console.", 10)
        if not self._pace.allows(starter.name, now):
            raise too_many("You have started many taps within a short time.", 5)

    async def _gather(self, fleet: FleetOfRouters, tap: RunningTap) -> list[LeftOut]:
        """
        Ask the routers, and return those that take no part.

        @raise ApiProblem: none does.
        """
        chosen = await choose(self._console, fleet, tap.order)
        _check_goes_on(tap)
        if len(chosen.asked) > MOST_TAPPED:
            detail = (
                f"{len(chosen.asked)} routers match; a tap takes {MOST_TAPPED} at most. Narrow the query of routers."
            )
            raise ApiProblem(TOO_MANY_ROUTERS, detail, members={"matched": len(chosen.asked), "most": MOST_TAPPED})
        now = self._monotonic()
        tap.routers = {each.guid: TappedRouter(each.guid, each.name, now) for each in chosen.asked}
        answers = await DeferredList(
            [fleet.polls.command(each.guid, tap.order.command, ANSWER_TIME, id=tap.id) for each in chosen.asked],
            consumeErrors=True,
        )
        left_out = list(chosen.left_out)
        for router, (_, answer) in zip(chosen.asked, answers, strict=True):
            why = self._settle(tap, router, answer)
            if why is not None:
                left_out.append(why)
        left_out.sort(key=lambda each: each.router)
        if not tap.routers:
            raise _nothing(left_out)
        return left_out

    def _settle(self, tap: RunningTap, router: EnrolledRouter, answer: object) -> LeftOut | None:
        """Have a router take part, or return why it does not."""
        asked = tap.routers[router.guid]
        if isinstance(answer, CommandAnswer) and answer.problem:
            del tap.routers[router.guid]
            return LeftOut(router.name, answer.code or "refused", answer.problem, answer.paths[:MOST_PATHS])
        # What it shows says as much as an answer, which may come later.
        if not isinstance(answer, CommandAnswer) and not asked.number:
            del tap.routers[router.guid]
            self._untap(tap, [asked])
            return LeftOut(router.name, "unanswered", f"It has not answered within {ANSWER_TIME:.0f} seconds.")
        asked.instance = router.instance
        asked.heard_at = asked.seen_at = self._monotonic()
        return None

    # -- what routers say ----------------------------------------------------------------------------------------

    def takes_part(self, router: EnrolledRouter, id: str) -> bool:
        """Return whether a tap is at a router. Nobody has to know the taps of others, nor can tell that they are."""
        tap = self._taps.get(id)
        asked = None if tap is None else tap.routers.get(router.guid)
        return asked is not None and not asked.ended

    def hear(self, router: EnrolledRouter, id: str, events: TapEvents) -> bool:
        """Take what a tap of a router has shown; return False when it is to end, as it is none of this router."""
        if not self.takes_part(router, id):
            return False
        tap = self._taps[id]
        tap.hear(tap.routers[router.guid], events, self._monotonic())
        if tap.runs_since is not None and tap.has_ended_everywhere:
            self.end(tap, "routers")
        return True

    def _look_at_routers(self, tap: RunningTap, now: float) -> None:
        fleet = self._console.fleet
        assert fleet is not None
        for each in tap.routers.values():
            if each.ended:
                continue
            router = fleet.registry.by_guid(each.guid)
            if fleet.polls.is_online(each.guid):
                each.seen_at = now
            if router is None or router.state != "approved":
                each.ended = "It is not one of the console's routers any more."
            elif router.instance != each.instance:
                each.ended = "It has restarted."
            elif now - each.heard_at >= SILENT_AFTER or now - each.seen_at >= LOST_AFTER:
                each.ended = "It is not heard any more."

    # -- the end -------------------------------------------------------------------------------------------------

    def end(self, tap: RunningTap, why: str) -> None:
        """
        End a tap, if it has not.

        @param why: a word, which the reader and the audit get.
        """
        if self._taps.pop(tap.id, None) is None:
            return
        self._untap(tap, tap.routers.values())
        tap.close(why)
        self._ended_shown += tap.shown
        self._ended_dropped += tap.dropped
        if tap.runs_since is not None:
            self._audit.ended(tap, self._console.clock())

    def _drop(self, tap: RunningTap) -> None:
        """Forget a tap that does not begin."""
        if self._taps.pop(tap.id, None) is not None:
            self._untap(tap, tap.routers.values())

    def _untap(self, tap: RunningTap, routers: Iterable[TappedRouter]) -> None:
        """Have routers end a tap. One that does not hear of it is told when it shows something."""
        fleet = self._console.fleet
        assert fleet is not None
        for each in routers:
            if not each.ended:
                asked = fleet.polls.command(each.guid, lambda id: UntapCommand(id=id, tap=tap.id), _UNTAP_TIME)
                asked.addErrback(lambda failure: failure.trap(Unanswered))


def _check_goes_on(tap: RunningTap) -> None:
    """
    @raise ApiProblem: the console has begun to stop.
    """
    if tap.why:
        raise ApiProblem(BUSY, "The console stops.", headers=(("Retry-After", "5"),))


def _nothing(left_out: list[LeftOut]) -> ApiProblem:
    """Return the problem of a tap in which no router takes part."""
    members: dict[str, object] = {
        "left_out": tuple(left_out[:MOST_LEFT_OUT]),
        "left_out_in_all": len(left_out),
    }
    meant = [each for each in left_out if each.code != "no_connector"]
    if meant and all(each.code == _GATE for each in meant):
        paths = sorted({path for each in meant for path in each.paths})
        return ApiProblem(RELOAD_GATE_CLOSED, members={**members, "paths": paths[:_MOST_PATHS_OF_ALL]})
    detail = "No router matches." if not left_out else "All routers that match are left out; left_out says why."
    return ApiProblem(NOTHING_TO_TAP, detail, members=members)
