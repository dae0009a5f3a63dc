"""
Tests for L{webhookrx.operations.counters}.
"""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.operations.counters import MOST_SENDERS, SKEW_BOUNDS, Counters, SecretUse, Skews, SourceCounts
from webhookrx.store_counts import BOUNDS, StoreCounts


class CountersTests(SynchronousTestCase):
    """Counts by name and label."""

    def test_counting(self) -> None:
        """Counts add up by name and label, and what was never counted is zero without being remembered."""
        counters = Counters()
        counters.add("refused", "bad_token")
        counters.add("refused", "bad_token", amount=2)
        counters.add("refused", "bad_token", "github")
        counters.add("failures")
        self.assertEqual((3, 1, 0), (counters.get("refused", "bad_token"), counters.get("failures"), counters.get("x")))
        self.assertEqual(1, counters.get("refused", "bad_token", "github"))
        self.assertEqual("failures=1 refused.bad_token=3 refused.bad_token.github=1", counters.summary())

    def test_sources(self) -> None:
        """Messages of a source are in the summary, in their place; a source without any is not, nor an empty label."""
        counters = Counters()
        counters.add("failures")
        counters.add("refused", "timeout", "")
        counters.sources["github"].messages += 2
        self.assertEqual(0, counters.sources["gitlab"].messages)
        self.assertEqual("failures=1 messages.github=2 refused.timeout=1", counters.summary())

    def test_copy(self) -> None:
        """A copy has all that was counted, and counts nothing further."""
        counters = Counters()

        def count() -> None:
            counters.add("failures")
            source, observer = counters.sources["github"], counters.observers["stdout"]
            source.messages, source.bytes, source.last = source.messages + 1, source.bytes + 10, source.last + 5.0
            source.answers.observe(0.5)
            observer.messages, observer.bytes = observer.messages + 2, observer.bytes + 20
            observer.stores.observe(2.5)

        count()
        copy = counters.copy()
        count()
        counters.sources["gitlab"].messages += 1
        for found, times in ((copy, 1), (counters, 2)):
            source, observer = found.sources["github"], found.observers["stdout"]
            self.assertEqual(times, found.get("failures"))
            self.assertEqual((times, 10 * times, 5.0 * times), (source.messages, source.bytes, source.last))
            self.assertEqual((2 * times, 20 * times), (observer.messages, observer.bytes))
            self.assertEqual((times, 0.5 * times), (source.answers.counts[BOUNDS.index(0.5)], source.answers.sum))
            self.assertEqual((times, 2.5 * times), (observer.stores.count, observer.stores.sum))
        self.assertEqual("failures=1 messages.github=1", copy.summary())


class SenderTests(SynchronousTestCase):
    """When each sender has sent its last message."""

    def test_workers(self) -> None:
        """Of several workers, the latest message of each sender counts."""
        both = Counters()
        for last in ({"github": 5.0, "": 1.0}, {"github": 3.0, "gitlab": 4.0}):
            worker = Counters()
            for sender, when in last.items():
                worker.sources["hooks"].heard(sender, when)
            both.add_all(msgspec.msgpack.decode(msgspec.msgpack.encode(worker), type=Counters))
        self.assertEqual({"github": 5.0, "": 1.0, "gitlab": 4.0}, both.sources["hooks"].last_by_sender)

    def test_workers_that_change(self) -> None:
        """A sender that workers hear anew has not spoken before one of them has heard it."""
        workers = [SourceCounts.empty(), SourceCounts.empty()]
        for worker, last in zip(workers, (100.0, 200.0), strict=True):
            worker.hears("github")
            worker.last = last
            worker.hears("gitlab")
        self.assertEqual({"github": 200.0, "gitlab": 0.0}, (workers[0] + workers[1]).last_by_sender)
        workers[0].last = 300.0
        self.assertEqual({"github": 200.0, "gitlab": 300.0}, (workers[0] + workers[1]).last_by_sender)

    def test_bounded(self) -> None:
        """Only so many senders are known; those that are go on."""
        counts = SourceCounts.empty()
        for number in range(MOST_SENDERS + 5):
            counts.heard(str(number), 1.0)
        counts.heard("0", 2.0)
        self.assertEqual((MOST_SENDERS, 2.0), (len(counts.last_by_sender), counts.last_by_sender["0"]))


class AddableTests(SynchronousTestCase):
    """The counts of several processes."""

    def counted(self, times: int, last: float) -> Counters:
        """Count each kind of thing so many times."""
        counters = Counters()
        counters.add("failures", amount=times)
        counters.add("not_stored", "file:/café", amount=times)
        source, observer = counters.sources["github"], counters.observers["file:/café"]
        source.messages, source.bytes, source.last = times, 10 * times, last
        observer.messages, observer.bytes = 2 * times, 20 * times
        source.secrets["new"] = SecretUse(times, last)
        source.skews = Skews.empty()
        source.skews.observe(-7.5)
        own = StoreCounts()
        own.refused(3 * times)
        own.known(4 * times)
        for _ in range(times):
            source.answers.observe(0.5)
            observer.stores.observe(2.5)
            own.confirmed(0.25)
        observer.add_taken(own.take())
        return counters

    def through_the_wire(self, counters: Counters) -> Counters:
        """Send them to another process."""
        return msgspec.msgpack.decode(msgspec.msgpack.encode(counters), type=Counters)

    def test_round_trip(self) -> None:
        """What arrives is what was counted, and counts no further."""
        counters = self.counted(3, 7.5)
        arrived = self.through_the_wire(counters)
        counters.add("failures")
        counters.sources["github"].answers.observe(0.5)

        self.assertEqual(3, arrived.get("failures"))
        self.assertEqual(3, arrived.get("not_stored", r"file:/café"))
        source, observer = arrived.sources["github"], arrived.observers[r"file:/café"]
        self.assertEqual((3, 30, 7.5), (source.messages, source.bytes, source.last))
        self.assertEqual((6, 60, 3), (observer.messages, observer.bytes, observer.stores.counts[BOUNDS.index(3.0)]))
        self.assertEqual((1.5, 7.5), (source.answers.sum, observer.stores.sum))
        self.assertEqual((9, 12, 0.75), (observer.refused, observer.known, observer.confirms.sum))
        assert source.skews is not None
        self.assertEqual((SecretUse(3, 7.5), 7.5), (source.secrets["new"], source.skews.sum))
        self.assertNotIn("gitlab", arrived.sources)

    def test_sum(self) -> None:
        """Counts add up; the last message is the last of all."""
        total = Counters()
        for times, last in ((1, 5.0), (2, 9.0), (4, 7.0)):
            total.add_all(self.through_the_wire(self.counted(times, last)))
        other = Counters()
        other.add("refused", "timeout", "")
        other.sources["gitlab"].messages = 1
        other.sources["github"].secrets["old"] = SecretUse(0, 0.0)
        total.add_all(other)

        self.assertEqual((7, 1), (total.get("failures"), total.get("refused", "timeout", "")))
        source, observer = total.sources["github"], total.observers[r"file:/café"]
        self.assertEqual((7, 70, 9.0), (source.messages, source.bytes, source.last))
        self.assertEqual((7, 3.5), (source.answers.count, source.answers.sum))
        self.assertEqual({"new": SecretUse(7, 9.0), "old": SecretUse(0, 0.0)}, source.secrets)
        assert source.skews is not None
        self.assertEqual((3, 22.5), (source.skews.counts[SKEW_BOUNDS.index(10.0)], source.skews.sum))
        self.assertEqual((14, 140), (observer.messages, observer.bytes))
        self.assertEqual((7, 17.5), (observer.stores.count, observer.stores.sum))
        self.assertEqual((21, 28, 7), (observer.refused, observer.known, observer.confirms.count))
        self.assertEqual(1, total.sources["gitlab"].messages)
        self.assertEqual(1, other.sources["gitlab"].messages)

    def test_other_version(self) -> None:
        """What another version has counted is refused, not taken for something else."""
        good = msgspec.to_builtins(self.counted(1, 5.0))
        times = [[0] * (len(BOUNDS) + 1), 1.0]
        for bad in (
            {"count": {}},
            {"counts": 1},
            {**good, "counts": {("refused",): -1}},
            {**good, "sources": {"a": [1, 2]}},
            {**good, "sources": {"a": [1, 2, 3.0, [[1, 2], 4.0]]}},
            {**good, "sources": {"a": [1, 2, 3.0, times, 5]}},
            {**good, "observers": {"a": [1, None, times]}},
            None,
        ):
            encoded = msgspec.msgpack.encode(bad)
            self.assertRaises(msgspec.ValidationError, msgspec.msgpack.decode, encoded, type=Counters)
