"""
The counts of a console: takes the reports of routers, and writes them down once a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.console.counts.count_tables import (
    MOST_CUT,
    CountWrites,
    SeriesKey,
    SeriesLabels,
    cut_counts,
    read_last_messages,
    read_starts,
    write_counts,
)
from webhookrx.console.store.history import StoreTransaction
from webhookrx.console.store.interface import ConsoleStore
from webhookrx.errors import StoreFull, StoreUnavailable
from webhookrx.management.agent_protocol import MOST_CONNECTORS, CountsReport
from webhookrx.management.rollups import (
    ROLLUP_STEPS,
    SECOND,
    CountDifference,
    CountedPart,
    CountedStart,
    RollupStep,
    RouterCounts,
    parts_of,
    spread,
)

WRITE_INTERVAL: Final = 60
"""Seconds between two writes."""

MOST_PENDING: Final = 200_000
"""Sums that may wait to be written. Past it reports are left: a later one contains what they have counted."""

MOST_PENDING_OF_ROUTER: Final = 20_000
"""Those of one router, past which its reports are left: none takes the room of all others."""

MOST_SERIES: Final = 200_000
"""Connectors of all routers that are counted by themselves."""

MOST_CUTS: Final = 50
"""Transactions after a write that cut off old sums."""

MOST_IN_PIECE: Final = 200
"""Sums after which a transaction ends, so that no change of a rule waits long for it: about 10 ms."""

MOST_ROUTERS: Final = 10_000
"""Routers whose reports are counted."""

OTHERS: Final = "(others)"
"""The connector that stands for all beyond the first L{MOST_CONNECTORS} that a router has ever had, and beyond
L{MOST_SERIES} of all."""

_MINUTE: Final = 60

_log = Logger()


class ConsoleCounts:
    """
    Takes reports in the reactor and writes in the thread of the store. What was not written at a crash comes again with
    the next report of its router, since reports are cumulative.

    @param clock: seconds since the epoch.
    @param seconds: monotonic.
    @param steps: returns for how long sums are kept now.
    @ivar left: reports that were not counted, for want of room.
    """

    def __init__(
        self,
        store: ConsoleStore,
        clock: Callable[[], float],
        seconds: Callable[[], float],
        steps: Callable[[], Sequence[RollupStep]] = lambda: ROLLUP_STEPS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._seconds = seconds
        self._steps_now = steps
        self._written_at = seconds()
        self._routers: dict[str, RouterCounts] = {}
        self._last: dict[str, dict[str, float]] = {}
        self._series = 0
        self._newest: dict[str, CountsReport] = {}
        self._rates: dict[str, float] = {}
        self._pending = _Pending()
        self._writing: _Pending | None = None
        self._counting = DeferredLock()
        self.left = 0

    async def start(self) -> None:
        """Read what is counted already; reports are taken after that."""
        for router, starts in (await self._store.read(read_starts)).items():
            self._routers[router] = RouterCounts(starts)
        # Routers that are gone have no starts; their connectors count for nobody.
        last = await self._store.read(read_last_messages)
        self._last = {router: connectors for router, connectors in last.items() if router in self._routers}
        self._series = sum(map(len, self._last.values()))

    def tick(self) -> None:
        """Write each L{WRITE_INTERVAL}; see L{webhookrx.console.console.ConsolePart}."""
        if self._seconds() - self._written_at >= WRITE_INTERVAL:
            self._written_at = self._seconds()
            Deferred.fromCoroutine(self.write()).addErrback(self._failed)

    async def stop(self) -> None:
        """Write what is there; what can't be written comes again with the reports of the routers."""
        await self.write()

    def _failed(self, failure: Failure) -> None:
        _log.failure("Counts can't be written", failure=failure)

    def take(
        self, router: str, number: int, report: CountsReport, labels: Callable[[str], SeriesLabels]
    ) -> Mapping[str, float]:
        """
        Count a report.

        @param router: the guid.
        @param number: that of the whole report.
        @param labels: returns the labels of a connector of that router.
        @return: the last message of each connector for which something was counted, seconds since the epoch.
        """
        last: dict[str, float] = {}
        for _ in self._steps(router, number, report, labels, last):
            pass
        return last

    async def take_in_turns(
        self,
        turns: Callable[[Iterator[None]], AsyncIterator[None]],
        router: str,
        number: int,
        report: CountsReport,
        labels: Callable[[str], SeriesLabels],
    ) -> None:
        """
        Count a report as L{take} does, with other work in between: one of very many connectors takes long.

        @param turns: yields what it gets, each when it is its turn.
        """
        # One at a time, and nothing is written that has one half.
        await self._counting.acquire()
        try:
            async for _ in turns(self._steps(router, number, report, labels, {})):
                pass
        finally:
            self._counting.release()

    def _steps(
        self,
        router: str,
        number: int,
        report: CountsReport,
        labels: Callable[[str], SeriesLabels],
        last: dict[str, float],
    ) -> Iterator[None]:
        """Count a report in many short steps."""
        known = self._routers.get(router)
        if (known is None and len(self._routers) >= MOST_ROUTERS) or self._has_too_many(router):
            self.left += 1
            return
        if known is None:
            known = self._routers[router] = RouterCounts()
        self._newest[router] = report
        before = known.starts.get(report.begun)
        since = report.begun if before is None else before.until
        is_again = before is not None and number <= before.number
        differences: list[CountDifference] = []
        for found in known.differences(number, report, int(self._clock() * SECOND)):
            if found is not None:
                differences.append(found)
            yield
        most_parts = parts_of(len(differences))
        for difference in differences:
            if self._routers.get(router) is not known:
                return  # it was deleted meanwhile
            connector = self._name(router, difference.connector)
            lasts = self._last[router]
            lasts[connector] = max(lasts[connector], difference.last)
            key = SeriesKey(router, connector)
            minutes = self._pending.parts.setdefault(key, {})
            for at, part in spread(difference, most_parts):
                minute = at - at % _MINUTE
                if minute not in minutes:
                    minutes[minute] = CountedPart()
                    self._pending.grow(router)
                minutes[minute].add(part)
            self._pending.labels[key] = labels(connector)
            last[difference.connector] = difference.last
            self._pending.last[key] = max(difference.last, self._pending.last.get(key, 0.0))
            yield
        if self._routers.get(router) is known:
            seconds = (report.until - since) / SECOND
            if not is_again and seconds > 0:
                self._rates[router] = sum(each.counted.messages for each in differences) / seconds
            # A copy: the next report changes it, perhaps while it is written.
            self._pending.starts[router] = dict(known.starts)

    async def write(self) -> bool:
        """
        Write what is pending, a router never in two transactions, and cut old sums.

        @return: False if the store could not take all of it, or a write is under way; what is left is kept then.
        """
        if self._writing is not None:
            return False
        await self._counting.acquire()
        try:
            if self._writing is not None:
                return False
            self._writing, self._pending = self._pending, _Pending()
        finally:
            self._counting.release()
        # One piece is made while the one before is written.
        pieces = self._writing.pieces()
        left: list[_Pending] = []
        try:
            for piece in pieces:
                left.append(piece)
                await self._store.write(partial(_write_piece, piece))
                left.clear()
        except (StoreFull, StoreUnavailable):
            return False
        finally:
            for piece in (*left, *pieces):
                self._pending.put_before(piece)
            self._writing = None
        try:
            for _ in range(MOST_CUTS):
                if await self._store.write(lambda tx: cut_counts(tx, self._steps_now())) < MOST_CUT:
                    break
        except (StoreFull, StoreUnavailable):
            return False
        return True

    def forget(self, router: str) -> None:
        """Forget the starts of a router that is gone; what it has counted stays."""
        self._routers.pop(router, None)
        self._newest.pop(router, None)
        self._rates.pop(router, None)
        self._series -= len(self._last.pop(router, {}))
        self._pending.starts[router] = {}

    def newest(self, router: str) -> CountsReport | None:
        """Return what a router has reported last since the start of the console."""
        return self._newest.get(router)

    def rate(self, router: str) -> float | None:
        """Return the messages a second of a router between its last two reports; None before there are two."""
        return self._rates.get(router)

    def last_messages(self, router: str) -> Mapping[str, float]:
        """
        Return when the last message of each connector of a router came, seconds since the epoch by the clock of the
        router; 0, or nothing, if none ever has.
        """
        return self._last.get(router, {})

    def _name(self, router: str, connector: str) -> str:
        names = self._last.setdefault(router, {})
        if connector not in names:
            if len(names) >= MOST_CONNECTORS or self._series >= MOST_SERIES:
                connector = OTHERS
            if connector not in names:
                names[connector] = 0.0
                self._series += 1
        return connector

    def _has_too_many(self, router: str) -> bool:
        waiting = [self._pending, *([] if self._writing is None else [self._writing])]
        if sum(each.sizes[router] for each in waiting) >= MOST_PENDING_OF_ROUTER:
            return True
        return sum(each.size for each in waiting) >= MOST_PENDING


class _Pending:
    """
    Sums that are not written yet.

    @ivar sizes: how many there are, by router; C{size} is all of them.
    """

    def __init__(self) -> None:
        self.parts: dict[SeriesKey, dict[int, CountedPart]] = {}
        self.labels: dict[SeriesKey, SeriesLabels] = {}
        self.last: dict[SeriesKey, float] = {}
        self.starts: dict[str, dict[int, CountedStart]] = {}
        self.sizes: Counter[str] = Counter()
        self.size = 0

    def grow(self, router: str, count: int = 1) -> None:
        """Note that there are so many more of a router."""
        self.sizes[router] += count
        self.size += count

    def pieces(self) -> Iterator[_Pending]:
        """
        Yield all of it in pieces of whole routers, of about L{MOST_IN_PIECE} sums. What is in a piece is not here any
        more: to let go of all at the end takes long.
        """
        by_router: dict[str, list[SeriesKey]] = {router: [] for router in self.starts}
        for key in self.parts:
            by_router.setdefault(key.router, []).append(key)
        piece = _Pending()
        for router in tuple(by_router):
            for key in by_router.pop(router):
                piece.parts[key], piece.labels[key] = self.parts.pop(key), self.labels.pop(key)
                piece.last[key] = self.last.pop(key)
                piece.grow(router, len(piece.parts[key]))
            if router in self.starts:
                piece.starts[router] = self.starts.pop(router)
            if piece.size >= MOST_IN_PIECE:
                yield piece
                piece = _Pending()
        if piece.starts:
            yield piece

    def put_before(self, older: _Pending) -> None:
        """Take what could not be written; where both know something, this is newer."""
        for key, minutes in older.parts.items():
            own = self.parts.setdefault(key, {})
            for at, part in minutes.items():
                if at not in own:
                    own[at] = CountedPart()
                    self.grow(key.router)
                own[at].add(part)
        self.labels = older.labels | self.labels
        self.last = older.last | self.last
        self.starts = older.starts | self.starts


def _write_piece(piece: _Pending, transaction: StoreTransaction) -> None:
    write_counts(transaction, CountWrites(piece.parts, piece.labels, piece.last, piece.starts))
