"""
A tap: what one operator is shown, within bounds on rate and memory.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from webhookrx.tapping.tap_request import TapRequest, is_about, parsed
from webhookrx.work import TooMuchWork, Work

MOST_BUFFERED: Final = 256 * 1024
"""Bytes of rows that wait for a reader; the oldest are dropped."""

BURST: Final = 2.0
"""Seconds of its rate that a tap may show at once."""

_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


class TapCounts(msgspec.Struct):
    """
    What has become of the messages, or refusals, or lines, that a tap is about.

    @ivar seen: all of them.
    @ivar matched: those that its filter takes.
    @ivar shown: those that were shown.
    @ivar not_looked_at: those whose turn came when there was no time to look at them.
    @ivar dropped: rows that were made, and given up, since the reader is slow.
    """

    seen: int = 0
    matched: int = 0
    shown: int = 0
    not_looked_at: int = 0
    dropped: int = 0

    def __add__(self, other: TapCounts) -> TapCounts:
        return TapCounts(*(a + b for a, b in zip(_values(self), _values(other), strict=True)))


def _nothing() -> None:
    """There is nothing to catch up with."""


def _values(counts: TapCounts) -> tuple[int, ...]:
    return msgspec.structs.astuple(counts)


class TokenRate:
    """
    How many messages may be shown: a token bucket.

    @param rate: tokens a second.
    @param now: seconds on the monotonic clock.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate * BURST)
        self._tokens = self._most
        self._then = now

    def has_token(self, now: float) -> bool:
        """Tell whether one may be shown now."""
        self._tokens = min(self._most, self._tokens + (now - self._then) * self._rate)
        self._then = now
        return self._tokens >= 1

    def take(self) -> None:
        """One is shown."""
        self._tokens -= 1


class Tap:
    """
    A tap that runs. Times are seconds on the monotonic clock.

    @param wake: called when there are rows to take, from any thread, until they are taken.
    @ivar request: what it was asked for.
    @ivar queries: the same, parsed.
    @ivar catch_up: called before L{counts} are read; it may L{pass_by} messages.
    @ivar counted: what was counted in this process, but for what L{catch_up} adds.
    @ivar until: when its time is over.
    @raise CantTap: the request is wrong.
    """

    def __init__(self, request: TapRequest, now: float, wake: Callable[[], None]) -> None:
        self.request = request
        self.queries = parsed(request)
        self.catch_up: Callable[[], object] = _nothing
        self.counted = TapCounts()
        self.until = now + request.seconds
        self._elsewhere: dict[int, TapCounts] = {}
        self._rate = TokenRate(request.rate, now)
        self._rows: deque[bytes] = deque()
        self._bytes = 0
        self._wake = wake
        self._retired = TapCounts()
        self._about: dict[str, tuple[int | None, Mapping[str, str], bool]] = {}

    def is_about(self, name: str, port: int | None, labels: Mapping[str, str], work: Work) -> bool:
        """
        Tell whether it is about a source, which is found out once; see L{is_about}. It is about none for which there is
        no work left.
        """
        if self.request.point == "service":
            return False
        known = self._about.get(name)
        if known is not None and known[:2] == (port, labels):
            return known[2]
        try:
            found = is_about(self.request, self.queries, name, port, labels, work)
        except TooMuchWork:
            return False
        self._about[name] = port, labels, found
        return found

    def keep(self, names: Collection[str]) -> None:
        """Forget all sources but these."""
        for name in self._about.keys() - names:
            del self._about[name]

    @property
    def counts(self) -> TapCounts:
        """All those of this process."""
        self.catch_up()
        return self.counted

    def pass_by(self, count: int) -> None:
        """Count messages for which there was no time."""
        self.counted.seen += count
        self.counted.not_looked_at += count

    def may_show(self, now: float) -> bool:
        """Tell whether its rate leaves room for one more."""
        return self._rate.has_token(now)

    def show(self, row: dict[str, Any]) -> None:
        """Show a message, or what else it is about."""
        self._rate.take()
        self.counted.shown += 1
        self.add(_encode(row))

    def show_of(self, row: bytes, now: float) -> None:
        """Show what another process of this receiver has found, and counted as shown."""
        if self.may_show(now):
            self._rate.take()
            self.add(row)
        else:
            self.counted.shown -= 1  # in the sum over all processes

    def tell(self, **row: Any) -> None:
        """Add a row about the tap itself."""
        self.add(_encode(row))

    def count_of(self, process: int, counts: TapCounts) -> None:
        """Take the counts of another process, which replace what it said before."""
        self._elsewhere[process] = counts

    def retire(self, process: int) -> None:
        """A process has ended; the next one of its number begins to count anew."""
        self._retired += self._elsewhere.pop(process, TapCounts())

    @property
    def total(self) -> TapCounts:
        """The counts of all processes."""
        return sum(self._elsewhere.values(), self.counts + self._retired)

    def tell_counts(self) -> None:
        """Add a row with all counts, also if they are the same."""
        self.tell(row="counts", **msgspec.structs.asdict(self.total))

    def add(self, row: bytes) -> None:
        """Have a row wait for the reader; the oldest go when too many do."""
        if not self._rows:
            self._wake()
        self._rows.append(row)
        self._bytes += len(row)
        while self._bytes > MOST_BUFFERED and len(self._rows) > 1:
            self._bytes -= len(self._rows.popleft())
            self.counted.dropped += 1

    def take(self, most: int = sys.maxsize) -> list[bytes]:
        """
        Return rows that wait, the oldest first, each a line of JSON without its end; they wait no more.

        @param most: rows.
        """
        rows = [self._rows.popleft() for _ in range(min(most, len(self._rows)))]
        self._bytes -= sum(map(len, rows))
        return rows
