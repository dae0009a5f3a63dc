"""
Tests for L{webhookrx.console.counts}.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from os.path import abspath
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.console.direct_store import DirectStore
from webhookrx.console.counts import console_counts, count_tables
from webhookrx.console.counts.console_counts import MOST_PENDING, ConsoleCounts
from webhookrx.console.counts.count_reading import WantedSums, read_whole
from webhookrx.console.counts.count_tables import SeriesLabels, cut_counts, read_series
from webhookrx.errors import StoreFull
from webhookrx.management.agent_protocol import BUCKETS, CountsReport, SeriesCounts
from webhookrx.management.rollups import ROLLUP_STEPS, SECOND, CountedPart, RollupStep

NOW = 1_800_000_000
MINUTE, TEN_MINUTES, HOUR, DAY = ROLLUP_STEPS
ANSWERS = (3, *[0] * (BUCKETS - 1))


def labels(connector: str) -> SeriesLabels:
    """The labels of any connector."""
    return SeriesLabels(connector, "hooks", 8080, {"product": "github", "vendor": "x", "team": "web"}, "r1", {"a": "b"})


def report(messages: int, until: int = NOW, begun: int = NOW - 30, name: str = "a") -> CountsReport:
    """A report on one connector; moments in seconds."""
    counts = SeriesCounts(
        name=name, messages=messages, bytes=messages * 10, last=until, answers=ANSWERS, refused={"late": messages}
    )
    return CountsReport(begun=begun * SECOND, since=0, until=until * SECOND, series=(counts,))


class ConsoleCountsTests(SynchronousTestCase):
    """Reports in the store."""

    def setUp(self) -> None:
        """Open a store."""
        self.now = NOW
        self.clock = Clock()
        self.store = DirectStore(abspath(self.mktemp()), lambda: float(self.now))
        self.addCleanup(self.store.close)
        self.counts = self.loaded()

    def loaded(self) -> ConsoleCounts:
        """Counts of a console that has just started."""
        counts = ConsoleCounts(self.store, lambda: float(self.now), self.clock.seconds)
        self.run_now(counts.start())
        return counts

    def run_now(self, work: Any) -> Any:
        """Run a coroutine that never waits."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def sums(self, step: RollupStep = MINUTE, *, of_routers: bool = True) -> list[tuple[int, CountedPart]]:
        """All sums of a step."""

        def read(db: Any) -> list[tuple[int, CountedPart]]:
            places = {each.number: each.number for each in read_series(db, of_routers=of_routers)}
            start, end = NOW - 10_000 * step.seconds, NOW + 10**8
            wanted = WantedSums(of_routers, step, start, end, places, len(places))
            return sorted(((at, part) for at, _, part in read_whole(db, wanted)), key=lambda each: each[0])

        return self.store.reader.read(read)

    def test_rate(self) -> None:
        """The rate is that between the last two reports; one that comes again changes nothing."""
        self.assertIsNone(self.counts.rate("r"))
        for number, messages, until, rate in (
            (1, 60, NOW, 2.0), (2, 90, NOW + 15, 2.0), (2, 99, NOW + 15, 2.0), (3, 90, NOW + 30, 0.0)
        ):  # fmt: skip
            self.counts.take("r", number, report(messages, until), labels)
            self.assertEqual(rate, self.counts.rate("r"))
            self.now = until
        self.counts.forget("r")
        self.assertIsNone(self.counts.rate("r"))

    def test_turns(self) -> None:
        """A report of many connectors is counted in turns; nothing is written, and none other taken, in between."""
        series = tuple(SeriesCounts(name=f"s{n}", messages=1) for n in range(50))
        long = CountsReport(begun=(NOW - 30) * SECOND, since=0, until=NOW * SECOND, series=series)
        gates: list[Deferred[None]] = []

        async def turns(steps: Iterator[None]) -> AsyncIterator[None]:
            for number, step in enumerate(steps):
                yield step
                if number % 20 == 19:
                    gates.append(Deferred())
                    await gates[-1]

        def begin(work: Any) -> Deferred[Any]:
            return Deferred.fromCoroutine(work)

        first = begin(self.counts.take_in_turns(turns, "g", 1, long, labels))
        written = begin(self.counts.write())
        second = begin(self.counts.take_in_turns(turns, "h", 1, report(5), labels))
        self.assertNoResult(first)
        self.assertEqual(self.sums(), [])
        for _ in range(10):
            if gates:
                gates.pop().callback(None)
        self.successResultOf(first)
        self.assertTrue(self.successResultOf(written))
        self.successResultOf(second)
        self.assertEqual(sum(part.messages for _, part in self.sums()), 50)
        self.run_now(self.counts.write())
        self.assertEqual(sum(part.messages for _, part in self.sums()), 55)

    def test_forgotten_half_way(self) -> None:
        """A router that is deleted while its report is counted leaves nothing behind."""
        gate: Deferred[None] = Deferred()

        async def turns(steps: Iterator[None]) -> AsyncIterator[None]:
            for number, step in enumerate(steps):
                yield step
                if number == 60:
                    await gate

        series = tuple(SeriesCounts(name=f"s{n}", messages=1) for n in range(50))
        long = CountsReport(begun=(NOW - 30) * SECOND, since=0, until=NOW * SECOND, series=series)
        taking = Deferred.fromCoroutine(self.counts.take_in_turns(turns, "g", 1, long, labels))
        self.counts.forget("g")
        gate.callback(None)
        self.successResultOf(taking)
        self.assertEqual((self.counts.newest("g"), self.counts.last_messages("g")), (None, {}))

    def test_steps(self) -> None:
        """A report is summed in every step and both cubes; the next one is added to it."""
        self.assertEqual({"a": float(NOW)}, self.counts.take("g", 1, report(5), labels))
        self.assertTrue(self.run_now(self.counts.write()))
        self.counts.take("g", 2, report(7), labels)
        self.run_now(self.counts.write())
        for step in ROLLUP_STEPS:
            for of_routers in (True, False):
                found = self.sums(step, of_routers=of_routers)
                total = CountedPart()
                for at, part in found:
                    self.assertEqual(0, at % step.seconds)
                    total.add(part)
                self.assertEqual(CountedPart(7, 70, list(ANSWERS), 0.0, {"late": 7}), total, step)

    def test_labels(self) -> None:
        """A series has the labels of its connector and router; the cube has rule, port, product and vendor."""
        self.counts.take("g", 1, report(5), labels)
        self.run_now(self.counts.write())
        (series,) = self.store.reader.read(lambda db: list(read_series(db, of_routers=True)))
        (whole,) = self.store.reader.read(lambda db: list(read_series(db, of_routers=False)))
        self.assertEqual((labels("a"), NOW), (series.labels, series.last))
        expected = SeriesLabels(rule="hooks", port=8080, labels={"product": "github", "vendor": "x"})
        self.assertEqual((expected, NOW), (whole.labels, whole.last))
        self.assertEqual("web", series.labels.record["meta"]["connector"]["labels"]["team"])
        self.assertNotIn("router", whole.labels.record)

    def test_routers_joined(self) -> None:
        """The cube adds the routers up."""
        for guid in ("g", "h"):
            self.counts.take(guid, 1, report(5), labels)
        self.run_now(self.counts.write())
        self.assertEqual(2, len(self.sums(DAY)))
        self.assertEqual([10], [part.messages for _, part in self.sums(DAY, of_routers=False)])

    def test_restart(self) -> None:
        """A console that starts again counts on from what it has written, and gets again what it has not."""
        self.counts.take("g", 1, report(5), labels)
        self.run_now(self.counts.write())
        self.counts.take("g", 2, report(7), labels)
        self.counts = self.loaded()
        self.counts.take("g", 1, report(5), labels)
        self.counts.take("g", 3, report(9), labels)
        self.run_now(self.counts.write())
        self.assertEqual([9], [part.messages for _, part in self.sums(DAY)])

    def test_store_full(self) -> None:
        """What could not be written waits, with what comes meanwhile, and counts once."""
        self.counts.take("g", 1, report(5), labels)
        write = self.store.writer.write

        def full(work: Callable[[Any], Any]) -> None:
            self.counts.take("g", 2, report(6), labels)
            self.assertFalse(self.run_now(self.counts.write()))
            raise StoreFull("full")

        self.patch(self.store.writer, "write", full)
        self.assertFalse(self.run_now(self.counts.write()))
        self.patch(self.store.writer, "write", write)
        self.assertTrue(self.run_now(self.counts.write()))
        self.assertEqual([6], [part.messages for _, part in self.sums(DAY)])
        self.assertEqual({"late": 6}, self.sums(DAY)[0][1].refused)

    def test_each_minute(self) -> None:
        """Counts are written each minute, and when the console stops."""
        self.counts.take("g", 1, report(5), labels)
        for seconds, rows in ((59, 0), (1, 1)):
            self.clock.advance(seconds)
            self.counts.tick()
            self.assertEqual(rows, len(self.sums(DAY)))
        self.counts.take("g", 2, report(6), labels)
        self.run_now(self.counts.stop())
        self.assertEqual([6], [part.messages for _, part in self.sums(DAY)])

    def test_pieces(self) -> None:
        """A long write is several transactions; after one that fails, the routers that are not written wait."""
        self.patch(console_counts, "MOST_IN_PIECE", 1)
        for guid in "ghi":
            self.counts.take(guid, 1, report(5), labels)
        write, written = self.store.writer.write, []

        def full_later(work: Callable[[Any], Any]) -> Any:
            if written:
                raise StoreFull("full")
            written.append(write(work))

        self.patch(self.store.writer, "write", full_later)
        self.assertFalse(self.run_now(self.counts.write()))
        self.assertEqual(1, len(self.sums(DAY)))
        self.patch(self.store.writer, "write", write)
        self.assertTrue(self.run_now(self.counts.write()))
        self.assertEqual([15], [part.messages for _, part in self.sums(DAY, of_routers=False)])

    def test_bounded(self) -> None:
        """With too much pending reports are left, and counted by a later one."""
        self.counts.take("g", 1, report(5), labels)
        self.counts._pending.size = MOST_PENDING
        self.assertEqual({}, self.counts.take("g", 2, report(6), labels))
        self.assertEqual(1, self.counts.left)
        self.run_now(self.counts.write())
        self.counts.take("g", 3, report(8), labels)
        self.run_now(self.counts.write())
        self.assertEqual([8], [part.messages for _, part in self.sums(DAY)])

    def test_one_router_bounded(self) -> None:
        """A router with too much pending takes no room from others; its counts come with a later report."""
        self.patch(console_counts, "MOST_PENDING_OF_ROUTER", 2)
        for number, name in enumerate("abc", 1):
            self.counts.take("g", number, report(5, name=name), labels)
        self.counts.take("h", 1, report(5), labels)
        self.assertEqual(1, self.counts.left)
        self.run_now(self.counts.write())
        self.assertEqual([5, 5, 5], [part.messages for _, part in self.sums(DAY)])
        self.counts.take("g", 4, report(5, name="c"), labels)
        self.run_now(self.counts.write())
        self.assertEqual(20, sum(part.messages for _, part in self.sums(DAY)))

    def test_all_series_bounded(self) -> None:
        """Past a bound of all routers, new connectors of each router are counted together."""
        self.patch(console_counts, "MOST_SERIES", 2)
        for number, name in enumerate("abc", 1):
            for guid in "gh":
                self.counts.take(guid, number, report(5, name=name), labels)
        self.run_now(self.counts.write())
        self.assertEqual(2, self.loaded()._series - 2)
        series = self.store.reader.read(lambda db: list(read_series(db, of_routers=True)))
        self.assertEqual(["(others)", "(others)", "a", "a"], sorted(each.labels.connector for each in series))
        self.assertEqual(30, sum(part.messages for _, part in self.sums(DAY)))

    def test_names_bounded(self) -> None:
        """Connectors past a bound are counted together, also after a restart."""
        self.patch(console_counts, "MOST_CONNECTORS", 2)
        for number, name in enumerate("abcd", 1):
            self.counts.take("g", number, report(5, name=name), labels)
        self.run_now(self.counts.write())
        self.counts = self.loaded()
        self.counts.take("g", 5, report(1, name="e"), labels)
        self.run_now(self.counts.write())
        series = self.store.reader.read(lambda db: list(read_series(db, of_routers=True)))
        self.assertEqual(["(others)", "a", "b"], sorted(each.labels.connector for each in series))
        self.assertEqual(21, sum(part.messages for _, part in self.sums(DAY)))

    def test_cut(self) -> None:
        """Sums are kept as long as their step says."""
        self.counts.take("g", 1, report(5), labels)
        self.run_now(self.counts.write())
        self.now = NOW + MINUTE.kept + 3600
        self.store.writer.write(cut_counts)
        self.assertEqual([], self.sums(MINUTE))
        self.assertEqual([], self.sums(MINUTE, of_routers=False))
        self.assertEqual([5], [part.messages for _, part in self.sums(HOUR)])

    def test_cut_in_pieces(self) -> None:
        """Much that is old is cut in short transactions, as many as it takes within bounds."""
        for module in (count_tables, console_counts):
            self.patch(module, "MOST_CUT", 2)
        for number in range(1, 7):
            self.counts.take("g", number, report(5 * number, until=NOW + 60 * number), labels)
            self.now += 60
        self.run_now(self.counts.write())
        before = len(self.sums(MINUTE))
        self.assertGreater(before, 5)
        self.now += MINUTE.kept + 7200
        self.patch(console_counts, "MOST_CUTS", 2)
        self.run_now(self.counts.write())
        self.assertEqual(before - 4, len(self.sums(MINUTE)))
        self.patch(console_counts, "MOST_CUTS", 50)
        self.run_now(self.counts.write())
        self.assertEqual([], self.sums(MINUTE))
        self.assertEqual([], self.sums(MINUTE, of_routers=False))
        self.assertEqual([30], [part.messages for _, part in self.sums(DAY)])

    def test_series_cut(self) -> None:
        """A connector that has counted nothing for longer than any sum is kept is forgotten after its sums."""
        self.counts.take("g", 1, report(5), labels)
        self.run_now(self.counts.write())
        for later, series in ((DAY.kept + 86_400, 1), (DAY.kept + 4 * 86_400, 0)):
            self.now = NOW + later
            self.run_now(self.counts.write())
            for of_routers in (True, False):
                found = self.store.reader.read(lambda db, of=of_routers: list(read_series(db, of_routers=of)))
                self.assertEqual(series, len(found))
                self.assertEqual([], self.sums(DAY, of_routers=of_routers))
        self.now += 60
        self.counts.take("g", 2, report(7, until=self.now), labels)
        self.run_now(self.counts.write())
        self.assertEqual(2, sum(part.messages for _, part in self.sums(DAY)))

    def test_forgotten(self) -> None:
        """A router that is gone is forgotten, and what it has counted stays."""
        self.counts.take("g", 1, report(5), labels)
        self.counts.forget("g")
        self.run_now(self.counts.write())
        self.assertEqual({}, self.loaded()._routers)
        self.assertEqual([5], [part.messages for _, part in self.sums(DAY)])
