"""
Rollups: the differences between cumulative reports of counts, the time that they fall into, and sums by step of time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec import Struct, field

from webhookrx.management.agent_protocol import BUCKETS, MOST_CONNECTORS, CountsReport, SeriesCounts
from webhookrx.store_counts import BOUNDS

SECOND: Final = 1_000_000_000
"""Nanoseconds: moments of reports are nanoseconds since the epoch, those of rollups seconds."""

MOST_PARTS: Final = 60
"""Parts into which a difference is cut: that of a router that was away for a day is not cut into its 1,440 minutes."""

FEWEST_PARTS: Final = 2
"""Parts of each difference of a report with very many: a minute that has ended, and the one that goes on."""

MOST_PARTS_OF_REPORT: Final = 2_000
"""Parts of all differences of a report, unless each has L{FEWEST_PARTS}: they are made in the thread of the reactor."""

MOST_STARTS: Final = 4
"""Starts of a router that are remembered, so that a late report of an older process counts what is missing."""

MOST_REASONS: Final = 64
"""Reasons for refusals of one series."""

MOST_ROWS: Final = 300_000
"""Rows that a query may read."""


class RollupStep(NamedTuple):
    """
    A length of time by which counts are summed.

    @ivar name: of its table.
    @ivar seconds: of a step; each begins at a multiple of that.
    @ivar kept: seconds for which sums are kept.
    """

    name: str
    seconds: int
    kept: int


ROLLUP_STEPS: Final = (
    RollupStep("1m", 60, 6 * 3600),
    RollupStep("10m", 600, 3 * 86400),
    RollupStep("1h", 3600, 30 * 86400),
    RollupStep("1d", 86400, 730 * 86400),
)
"""From the finest to the coarsest."""


class CountedPart(Struct, gc=False):
    """
    What was counted in some time.

    @ivar answers: answers by the bucket of their time, see L{BOUNDS}; C{answer_seconds} is the sum of times.
    @ivar refused: requests refused, by reason.
    @ivar dropped: messages that a step has dropped.
    @ivar text_bodies: messages whose body was no JSON object.
    """

    messages: int = 0
    bytes: int = 0
    answers: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    answer_seconds: float = 0.0
    refused: dict[str, int] = {}
    dropped: int = 0
    text_bodies: int = 0

    def add(self, other: CountedPart) -> None:
        """Add what another has counted. A reason past L{MOST_REASONS} is counted as C{other}."""
        self.messages += other.messages
        self.bytes += other.bytes
        if any(other.answers):
            self.answers = [a + b for a, b in zip(self.answers, other.answers, strict=True)]
        self.answer_seconds += other.answer_seconds
        for reason, count in other.refused.items():
            known = reason in self.refused or len(self.refused) < MOST_REASONS
            name = reason if known else "other"
            self.refused[name] = self.refused.get(name, 0) + count
        self.dropped += other.dropped
        self.text_bodies += other.text_bodies

    def __bool__(self) -> bool:
        return bool(
            self.messages or self.bytes or any(self.answers) or self.refused or self.dropped or self.text_bodies
        )


class CountDifference(Struct, frozen=True, gc=False):
    """
    What a connector has counted between two reports.

    @ivar since: the beginning of the time, nanoseconds since the epoch; C{until} is its end.
    @ivar last: when its last message came, seconds since the epoch; 0 if none ever has.
    """

    connector: str
    since: int
    until: int
    counted: CountedPart
    last: float


class CountedStart(Struct):
    """
    What is counted already of one start of a router's process.

    @ivar number: of the newest report that is counted.
    @ivar until: when its counts were taken.
    @ivar series: these counts, by connector.
    """

    number: int
    until: int
    series: dict[str, SeriesCounts]


class RouterCounts:
    """
    Turns the cumulative reports of one router into differences, each counted once.

    @ivar starts: what is counted already, by the moment of a start; the newest last. A console writes it down with the
        sums that contain it.
    """

    def __init__(self, starts: Mapping[int, CountedStart] | None = None) -> None:
        self.starts: OrderedDict[int, CountedStart] = OrderedDict(starts or {})

    def take(self, number: int, report: CountsReport, now: int) -> list[CountDifference]:
        """
        Return what a report adds; nothing if it, or a later one of the same process, is counted already.

        The time of a difference begins where the last one ended, whether or not reports between the two were lost. It
        is never in the future: a router's clock may be wrong.

        @param number: that of the whole report, which counts from 1 in each process.
        @param now: nanoseconds since the epoch, by the clock of the console.
        """
        return [each for each in self.differences(number, report, now) if each is not None]

    def differences(self, number: int, report: CountsReport, now: int) -> Iterator[CountDifference | None]:
        """
        Yield what L{take} returns, one for each series of the report; None for one that has nothing new. The report is
        counted once all of them were asked for, and no other may be taken in between.
        """
        start = self.starts.get(report.begun)
        if start is not None and number <= start.number:
            return
        until = min(report.until, now)
        since = min(report.begun if start is None else start.until, until)
        before = {} if start is None else start.series
        for series in report.series:
            counted = counted_since(before.get(series.name), series)
            last = min(series.last, now / SECOND)
            yield CountDifference(series.name, since, until, counted, last) if counted else None
        series_now = {series.name: series for series in report.series}
        joined = before | series_now
        # A router whose connectors have new names in each report does not fill the memory.
        kept = joined if len(joined) <= MOST_CONNECTORS else series_now
        self.starts[report.begun] = CountedStart(number, until, kept)
        self.starts.move_to_end(report.begun)
        while len(self.starts) > MOST_STARTS:
            self.starts.popitem(last=False)


def counted_since(before: SeriesCounts | None, now: SeriesCounts) -> CountedPart:
    """Return what was counted between two cumulative counts of a process; all of it where a count became lower."""
    if before is None or not _grows(before, now):
        before = SeriesCounts(name=now.name)
    refused = {reason: count - before.refused.get(reason, 0) for reason, count in now.refused.items()}
    return CountedPart(
        now.messages - before.messages,
        now.bytes - before.bytes,
        [b - a for a, b in zip(_buckets(before), _buckets(now), strict=True)],
        max(0.0, now.answer_seconds - before.answer_seconds),
        {reason: count for reason, count in refused.items() if count},
        now.dropped - before.dropped,
        now.text_bodies - before.text_bodies,
    )


def _grows(before: SeriesCounts, now: SeriesCounts) -> bool:
    return (
        now.messages >= before.messages
        and now.bytes >= before.bytes
        and all(a <= b for a, b in zip(_buckets(before), _buckets(now), strict=True))
        and all(now.refused.get(reason, 0) >= count for reason, count in before.refused.items())
        and now.dropped >= before.dropped
        and now.text_bodies >= before.text_bodies
    )


def _buckets(counts: SeriesCounts) -> list[int]:
    return [*counts.answers, *(0 for _ in range(BUCKETS - len(counts.answers)))]


def parts_of(differences: int) -> int:
    """Return into how many parts each of so many differences of one report may be cut."""
    return max(FEWEST_PARTS, min(MOST_PARTS, MOST_PARTS_OF_REPORT // max(1, differences)))


def spread(difference: CountDifference, most: int = MOST_PARTS) -> Iterator[tuple[int, CountedPart]]:
    """
    Yield the parts of a difference with the seconds at which they fall. They add up to the whole, and have the shares
    that the time before each cut has.

    @param most: how many parts there may be.
    """
    since, length, whole = difference.since, difference.until - difference.since, difference.counted
    cuts = _cuts(since, difference.until, most)
    if len(cuts) == 2:
        if whole:
            yield since // SECOND, whole
        return
    for begin, end in pairwise(cuts):

        def share(total: int, before: int = begin - since, after: int = end - since) -> int:
            return total * after // length - total * before // length

        refused = {reason: share(count) for reason, count in whole.refused.items()}
        part = CountedPart(
            share(whole.messages),
            share(whole.bytes),
            list(map(share, whole.answers)),
            whole.answer_seconds * (end - begin) / length,
            {reason: count for reason, count in refused.items() if count},
            share(whole.dropped),
            share(whole.text_bodies),
        )
        if part:
            yield begin // SECOND, part


def _cuts(since: int, until: int, most: int) -> list[int]:
    minute = ROLLUP_STEPS[0].seconds * SECOND
    if until - since > (most - 1) * minute:
        return [since + (until - since) * part // most for part in range(most + 1)]
    first = (since // minute + 1) * minute
    return [since, *range(first, until, minute), until]


def step_for(
    start: int, end: int, series: int, now: int, steps: Sequence[RollupStep] = ROLLUP_STEPS
) -> RollupStep | None:
    """
    Return the finest step whose sums reach back to C{start}, and of which a query reads L{MOST_ROWS} at most; None if
    even the coarsest has more. All moments are seconds since the epoch.

    @param series: how many are asked for.
    @param steps: those of L{ROLLUP_STEPS}, perhaps kept for another time.
    """
    for step in steps:
        reaches = start >= now - step.kept or step is steps[-1]
        if reaches and ((end - start) // step.seconds + 2) * series <= MOST_ROWS:
            return step
    return None


def answer_quantile(answers: Sequence[int], quantile: float) -> float | None:
    """
    Return the time within which a share of requests was answered, in seconds, interpolated inside its bucket; the
    highest bound for what is above it, and None without answers.
    """
    total = sum(answers)
    if not total:
        return None
    rank, below, lower = quantile * total, 0, 0.0
    for count, upper in zip(answers, BOUNDS, strict=False):
        if count and below + count >= rank:
            return lower + (upper - lower) * max(0.0, rank - below) / count
        below, lower = below + count, upper
    return BOUNDS[-1]
