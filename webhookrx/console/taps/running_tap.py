"""
A tap that runs: the routers that take part, what they have counted, and what its one reader is shown.

Nothing of messages is anywhere but in the bounded buffer here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.console.api.principal import Principal
from webhookrx.console.taps.tap_order import CheckedOrder
from webhookrx.console.taps.tap_rows import ByteRate, read_row
from webhookrx.management.tap_protocol import TapEvents
from webhookrx.tapping.tap import TapCounts, TokenRate

MOST_BUFFERED: Final = 1024 * 1024
"""Bytes of rows that wait for the reader; the oldest are dropped."""

TellsEvent: TypeAlias = Callable[[str, object], bool]
"""Sends an event to the reader, see L{webhookrx.console.api.route.EventStream}."""

EndsStream: TypeAlias = Callable[[str], None]


class TapStarter(msgspec.Struct, frozen=True):
    """
    Who has started a tap: the one session, or token, that may read it.
    """

    name: str
    via: str
    session_id: str
    token_id: str

    @classmethod
    def of(cls, principal: Principal) -> TapStarter:
        """Return a caller as the starter of taps."""
        return cls(principal.name, principal.via, principal.session_id, principal.token_id)


class TappedRouter:
    """
    A router that takes part, or was asked to.

    @ivar name: as it was when the tap started.
    @ivar instance: the process that has said yes; empty before.
    @ivar number: of its last L{TapEvents}.
    @ivar counts: what it says that became of its messages.
    @ivar heard_at: when it has last said anything of the tap; C{seen_at}, when it has at least asked for something.
    @ivar ended: why its tap has ended; empty while it goes on.
    """

    def __init__(self, guid: str, name: str, now: float) -> None:
        self.guid = guid
        self.name = name
        self.instance = ""
        self.number = 0
        self.counts = TapCounts()
        self.heard_at = now
        self.seen_at = now
        self.ended = ""

    def shown(self) -> dict[str, object]:
        """Return it as readers see it."""
        counts = msgspec.structs.asdict(self.counts)
        return {"router": self.name, "state": "ended" if self.ended else "taps", "ended": self.ended, **counts}


class RunningTap:
    """
    One tap, from the moment in which routers are asked. Times are seconds on the monotonic clock.

    @param until: when its time is over.
    @param begun_at: seconds since the epoch.
    @ivar routers: those that were asked, by guid; once it runs, those that take part.
    @ivar runs_since: when it began to run; None while routers are asked.
    @ivar why: why it has ended; empty before.
    @ivar shown: rows that were put before the reader, or wait for that.
    @ivar dropped: those of them that were given up, since the reader is slow; and what was no row, or came too fast.
    """

    def __init__(
        self, id: str, starter: TapStarter, address: str, order: CheckedOrder, now: float, begun_at: float
    ) -> None:
        self.id = id
        self.starter = starter
        self.address = address
        self.order = order
        self.until = now + order.seconds
        self.begun_at = begun_at
        self.routers: dict[str, TappedRouter] = {}
        self.runs_since: float | None = None
        self.why = ""
        self.shown = 0
        self.dropped = 0
        self._rate = TokenRate(order.order.rate, now)
        self._reading = ByteRate(now)
        self._rows: deque[msgspec.Raw] = deque()
        self._bytes = 0
        self._counted_at = now
        self._send: TellsEvent | None = None
        self._end: EndsStream | None = None

    # -- what routers say ----------------------------------------------------------------------------------------

    def hear(self, router: TappedRouter, events: TapEvents, now: float) -> None:
        """
        Take what a router that takes part has shown.

        @param events: of any number; those that were had already are the same once more.
        """
        router.heard_at = router.seen_at = now
        if events.number <= router.number:
            return
        router.number = events.number
        router.counts = TapCounts(events.seen, events.matched, events.shown, events.not_looked_at, events.dropped)
        for raw in events.events:
            if not self._rate.has_token(now):
                break
            self._rate.take()
            row = bytes(raw)
            self._show(read_row(row, router.name) if self._reading.takes(len(row), now) else None)
        router.ended = events.ended
        self.flush()

    def _show(self, row: msgspec.Raw | None) -> None:
        if row is None:
            self.dropped += 1
            return
        self.shown += 1
        self._rows.append(row)
        self._bytes += len(bytes(row))
        while self._bytes > MOST_BUFFERED:
            self._bytes -= len(bytes(self._rows.popleft()))
            self.dropped += 1

    @property
    def has_ended_everywhere(self) -> bool:
        """Whether the tap has ended at all routers."""
        return all(each.ended for each in self.routers.values())

    @property
    def counts(self) -> TapCounts:
        """What has become of the messages of all routers: what is shown is what the reader gets."""
        total = sum((each.counts for each in self.routers.values()), TapCounts())
        return TapCounts(total.seen, total.matched, self.shown, total.not_looked_at, total.dropped + self.dropped)

    # -- the reader ----------------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether it has its reader."""
        return self._send is not None

    def open(self, send: TellsEvent, end: EndsStream) -> None:
        """Show the rows to a reader from now on."""
        self._send, self._end = send, end
        self.flush()

    def flush(self) -> None:
        """Send the rows that wait, as far as the reader takes them."""
        while self._rows and self._send is not None and self._send("row", self._rows[0]):
            self._bytes -= len(bytes(self._rows.popleft()))

    def tick(self, now: float) -> None:
        """Send what waits, and each second the counts; called twice a second."""
        self.flush()
        # Looks come a little early or late.
        if now - self._counted_at >= 0.75:
            self._counted_at = now
            self._tell_counts()

    def _tell_counts(self) -> None:
        if self._send is not None:
            self._send("counts", self.shown_counts())

    def shown_counts(self) -> Mapping[str, Any]:
        """Return the counts as an event has them: in all, and of each router."""
        counts = msgspec.structs.asdict(self.counts)
        return {**counts, "routers": [each.shown() for each in self.routers.values()]}

    def close(self, why: str) -> None:
        """Tell the reader the last counts and why it ends; what it does not take now is given up."""
        self.why = why
        self.flush()
        self.dropped += len(self._rows)
        self._rows.clear()
        self._tell_counts()
        end, self._send, self._end = self._end, None, None
        if end is not None:
            end(why)
