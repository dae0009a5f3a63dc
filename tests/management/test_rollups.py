"""
Tests for L{webhookrx.management.rollups}.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.agent_protocol import BUCKETS, MOST_CONNECTORS, CountsReport, SeriesCounts
from webhookrx.management.rollups import (
    FEWEST_PARTS,
    MOST_PARTS,
    MOST_REASONS,
    MOST_STARTS,
    ROLLUP_STEPS,
    SECOND,
    CountDifference,
    CountedPart,
    RouterCounts,
    answer_quantile,
    counted_since,
    parts_of,
    spread,
    step_for,
)
from webhookrx.store_counts import BOUNDS

NOW = 1_795_000_000 * SECOND
BEGUN = NOW - 3600 * SECOND


def report(messages: int, until: int = NOW, begun: int = BEGUN) -> CountsReport:
    """A report on one connector."""
    series = SeriesCounts(name="a", messages=messages, bytes=messages * 10, last=until / SECOND)
    return CountsReport(begun=begun, since=0, until=until, series=(series,))


def counts(found: list[CountDifference]) -> list[int]:
    """The messages of some differences."""
    return [each.counted.messages for each in found]


class RouterCountsTests(SynchronousTestCase):
    """Reports of one router."""

    def test_differences(self) -> None:
        """The first report counts from the start of the process, others from the one before them."""
        router = RouterCounts()
        (first,) = router.take(1, report(5, NOW - SECOND), NOW)
        (second,) = router.take(2, report(12), NOW)
        self.assertEqual((5, 50, BEGUN, NOW - SECOND), (first.counted.messages, first.counted.bytes, *_time(first)))
        self.assertEqual((7, 70, NOW - SECOND, NOW), (second.counted.messages, second.counted.bytes, *_time(second)))
        self.assertEqual([], router.take(3, report(12, NOW + 1), NOW + 1))

    def test_resent(self) -> None:
        """A report that comes again, or after a later one, adds nothing."""
        router = RouterCounts()
        router.take(2, report(12), NOW)
        self.assertEqual([], router.take(2, report(12), NOW))
        self.assertEqual([], router.take(1, report(5), NOW))
        self.assertEqual([3], counts(router.take(3, report(15), NOW)))

    def test_late_from_older_start(self) -> None:
        """A late report of an older process adds what is missing of that one; too old a start is not remembered."""
        router = RouterCounts()
        router.take(1, report(5), NOW)
        self.assertEqual([3], counts(router.take(1, report(3, begun=BEGUN + 1), NOW)))
        self.assertEqual([2], counts(router.take(2, report(7), NOW)))
        for later in range(MOST_STARTS + 3):
            router.take(1, report(1, begun=BEGUN + 10 + later), NOW)
        self.assertEqual(MOST_STARTS, len(router.starts))

    def test_clock_behind(self) -> None:
        """What comes after a clock went back is counted all the same, and no time ends before it begins."""
        router = RouterCounts()
        router.take(1, report(5), NOW)
        (found,) = router.take(2, report(6, NOW - 60 * SECOND), NOW)
        self.assertEqual((1, NOW - 60 * SECOND, NOW - 60 * SECOND), (found.counted.messages, *_time(found)))
        self.assertEqual([4], counts(router.take(1, report(4, begun=BEGUN - SECOND), NOW)))

    def test_clock_ahead(self) -> None:
        """Nothing is counted in the future."""
        (found,) = RouterCounts().take(1, report(5, NOW + 9 * SECOND, NOW + 8 * SECOND), NOW)
        self.assertEqual((NOW, NOW, NOW / SECOND), (*_time(found), found.last))

    def test_absent_series(self) -> None:
        """A connector that a report leaves out goes on where it was."""
        router = RouterCounts()
        router.take(1, report(5), NOW)
        self.assertEqual([], router.take(2, replace(report(0), series=()), NOW))
        self.assertEqual([1], counts(router.take(3, report(6), NOW)))

    def test_bounded(self) -> None:
        """Connectors that reports leave out are forgotten when there are too many."""
        router = RouterCounts()
        for number in range(1, 4):
            series = tuple(SeriesCounts(name=f"{number}-{each}", messages=1) for each in range(MOST_CONNECTORS))
            router.take(number, replace(report(0), series=series), NOW)
        self.assertEqual(MOST_CONNECTORS, len(router.starts[BEGUN].series))

    def test_began_anew(self) -> None:
        """Counts that became lower began anew."""
        before = SeriesCounts(name="a", messages=9, bytes=90, refused={"bad_token": 4})
        after = SeriesCounts(name="a", messages=10, bytes=90, refused={"bad_token": 1})
        self.assertEqual((10, {"bad_token": 1}), _of(counted_since(before, after)))
        self.assertEqual(
            (1, {"late": 1}), _of(counted_since(before, replace(after, refused={"bad_token": 4, "late": 1})))
        )
        for name in ("dropped", "text_bodies"):
            found = counted_since(replace(before, **{name: 5}), replace(before, **{name: 3}))
            self.assertEqual((9, 3), (found.messages, getattr(found, name)))
            found = counted_since(replace(before, **{name: 5}), replace(before, **{name: 7}))
            self.assertEqual((0, 2), (found.messages, getattr(found, name)))

    @given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans(), st.booleans()), max_size=30))
    def test_as_naive(self, story: list[tuple[int, bool, bool, bool]]) -> None:
        """However reports are lost or sent twice, and however processes start, each message counts once at most."""
        router, total, process, begun, number, sure, expected = RouterCounts(), 0, 0, BEGUN, 0, 0, 0
        for messages, lost, twice, restart in story:
            if restart:
                expected, sure, process, begun, number = expected + sure, 0, 0, begun + 1, 0
            process, number = process + messages, number + 1
            for _ in range(0 if lost else 1 + twice):
                total += sum(counts(router.take(number, report(process, begun=begun), NOW)))
                sure = process
        self.assertEqual(expected + sure, total)


class SpreadTests(SynchronousTestCase):
    """Differences in time."""

    def test_one_minute(self) -> None:
        """What falls into one minute is one part."""
        part = CountedPart(7, 70)
        self.assertEqual([(60, part)], list(spread(CountDifference("a", 60 * SECOND, 120 * SECOND, part, 0.0))))
        self.assertEqual([(60, part)], list(spread(CountDifference("a", 60 * SECOND, 60 * SECOND, part, 0.0))))

    def test_two_minutes(self) -> None:
        """What falls into two minutes is shared by time; a part of zeros is left out."""
        difference = CountDifference("a", 50 * SECOND, 90 * SECOND, CountedPart(8, refused={"late": 1}), 0.0)
        found = [(at, part.messages, part.refused) for at, part in spread(difference)]
        self.assertEqual([(50, 2, {}), (60, 6, {"late": 1})], found)

    @given(
        st.integers(0, 10**6 * SECOND),
        st.integers(0, 10**6 * SECOND),
        st.integers(0, 10**9),
        st.lists(st.integers(0, 100), min_size=BUCKETS, max_size=BUCKETS),
        st.dictionaries(st.sampled_from(["late", "bad_token"]), st.integers(1, 100)),
        st.integers(FEWEST_PARTS, MOST_PARTS),
    )
    def test_whole(
        self, since: int, length: int, messages: int, answers: list[int], refused: dict[str, int], most: int
    ) -> None:
        """The parts are few, in order, inside the time, and add up to the whole."""
        whole = CountedPart(messages, messages * 3, answers, 2.0, refused, messages // 7, messages // 3)
        parts = list(spread(CountDifference("a", since, since + length, whole, 0.0), most))
        summed = CountedPart()
        for at, part in parts:
            self.assertTrue(since // SECOND <= at <= (since + length) // SECOND)
            self.assertTrue(part)
            summed.add(part)
        self.assertEqual(sorted({at for at, _ in parts}), [at for at, _ in parts])
        self.assertLessEqual(len(parts), most)
        self.assertEqual(
            (whole.messages, whole.bytes, whole.answers, whole.refused, whole.dropped, whole.text_bodies),
            (summed.messages, summed.bytes, summed.answers, summed.refused, summed.dropped, summed.text_bodies),
        )

    def test_parts_of_a_report(self) -> None:
        """All differences of a report have some thousand parts together; of very many each has two."""
        for differences, most in ((0, MOST_PARTS), (20, MOST_PARTS), (100, 20), (5_000, FEWEST_PARTS)):
            self.assertEqual(most, parts_of(differences))

    def test_reasons_bounded(self) -> None:
        """Past a bound, refusals are counted without their reason."""
        summed = CountedPart()
        for number in range(MOST_REASONS + 5):
            summed.add(CountedPart(refused={f"r{number}": 2}))
        self.assertEqual((MOST_REASONS + 1, 10), (len(summed.refused), summed.refused["other"]))
        self.assertEqual({}, CountedPart().refused)


class StepTests(SynchronousTestCase):
    """The step of a query."""

    def test_steps(self) -> None:
        """The finest step that is kept for so long and has few enough rows is taken; none if all have too many."""
        now, hour, day = 10**9, 3600, 86400
        for ago, series, name in (
            (hour, 100, "1m"),
            (hour, 20_000, "10m"),
            (3 * hour, 20_000, "1h"),
            (7 * hour, 100, "10m"),
            (6 * hour, 100, "1m"),
            (4 * day, 100, "1h"),
            (31 * day, 100, "1d"),
            (900 * day, 100, "1d"),
        ):
            step = step_for(now - ago, now, series, now)
            self.assertEqual(name, step and step.name, (ago, series))
        self.assertIsNone(step_for(now - 700 * day, now, 20_000, now))

    def test_nested(self) -> None:
        """Each step is a multiple of the finer one, and is kept for longer."""
        for finer, coarser in pairwise(ROLLUP_STEPS):
            self.assertEqual(0, coarser.seconds % finer.seconds)
            self.assertLess(finer.kept, coarser.kept)


class QuantileTests(SynchronousTestCase):
    """Times to answers."""

    def test_interpolated(self) -> None:
        """A quantile lies inside its bucket by its rank; above the highest bound it is that bound."""
        answers = [0] * BUCKETS
        self.assertIsNone(answer_quantile(answers, 0.5))
        answers[1] = 4
        self.assertAlmostEqual((BOUNDS[0] + BOUNDS[1]) / 2, answer_quantile(answers, 0.5) or 0)
        answers[-1] = 96
        self.assertEqual(BOUNDS[-1], answer_quantile(answers, 0.99))
        self.assertEqual(BOUNDS[1], answer_quantile(answers, 0.04))


def _time(found: CountDifference) -> tuple[int, int]:
    return found.since, found.until


def _of(part: CountedPart) -> tuple[int, dict[str, int]]:
    return part.messages, part.refused
