"""Batches whose store says of each message what became of it, or refuses a request as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.fake_time import FakeTime
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.item_outcomes import Ack, Outcome, RefusedTogether, store_by_halves, store_items
from webhookrx.observers.retrying import Retries
from webhookrx.store_counts import StoreCounts


class StoreItemsTests(SynchronousTestCase):
    """Trying until each message is stored or refused, or the time is over."""

    def setUp(self) -> None:
        """Make a clock."""
        self.time = FakeTime()
        self.counts = StoreCounts()
        self.sent: list[list[str]] = []

    def store(self, items: str, *answers: Mapping[str, Outcome]) -> list[Exception | None] | None:
        """Store messages; each answer says what becomes of those that it names, the others are stored."""
        left = list(answers)

        def send(batch: Sequence[str]) -> Sequence[Outcome]:
            self.sent.append(list(batch))
            answer = left.pop(0) if left else {}
            return [answer.get(item, Ack.STORED) for item in batch]

        retries = Retries(10.0, self.time, lambda: 1.0, self.time)
        return store_items(items, send, retries, self.counts)

    def test_stored(self) -> None:
        """All are stored at once."""
        self.assertIsNone(self.store("abc"))
        self.assertEqual([["a", "b", "c"]], self.sent)

    def test_only_the_rest_is_sent_again(self) -> None:
        """What was taken, or refused for good, is not sent again."""
        refused = Rejected("too large")

        outcomes = self.store("abcd", {"a": refused, "b": Unavailable("full"), "d": Unavailable("full")})

        self.assertEqual([refused, None, None, None], outcomes)
        self.assertEqual([["a", "b", "c", "d"], ["b", "d"]], self.sent)

    def test_time_is_over(self) -> None:
        """What is not taken in time is to be offered again, for the first reason of the last try."""
        full = {"b": Unavailable("full"), "c": Unavailable("other")}

        outcomes = self.store("abc", *[full] * 100)

        assert outcomes is not None
        self.assertIsNone(outcomes[0])
        self.assertEqual(["full", "full"], [str(outcome) for outcome in outcomes[1:]])
        self.assertIsInstance(outcomes[1], Unavailable)

    def test_nothing_is_taken(self) -> None:
        """When nothing was taken, that is raised."""
        full = {"a": Unavailable("full"), "b": Unavailable("other")}

        error = self.assertRaises(Unavailable, self.store, "ab", *[full] * 100)

        self.assertEqual("full", str(error))

    def test_all_refused(self) -> None:
        """When all is refused for good, that is an entry for each."""
        refused = {"a": Rejected("1"), "b": Rejected("2")}

        self.assertEqual(list(refused.values()), self.store("ab", refused))

    def test_known(self) -> None:
        """Messages that the store knew are counted, and stored."""
        self.assertIsNone(self.store("abc", {"a": Ack.KNOWN, "b": Unavailable("full")}, {"b": Ack.KNOWN}))

        self.assertEqual(2, self.counts.take().known)


class StoreByHalvesTests(SynchronousTestCase):
    """Halving a request that is refused as a whole."""

    @given(st.lists(st.sampled_from("+-"), max_size=40).map("".join), st.integers(1, 40), st.integers(0, 40))
    def test_culprits(self, batch: str, size: int, away: int) -> None:
        """
        Exactly the bad messages are refused, the others are stored once and in order; from the first that can't be sent
        on, nothing is.
        """
        stored: list[int] = []

        def send(begin: int, end: int) -> None:
            if away < end:
                raise Unavailable("away")
            if "-" in batch[begin:end]:
                raise RefusedTogether("bad")
            stored.extend(range(begin, end))

        parts = [(begin, min(begin + size, len(batch))) for begin in range(0, len(batch), size)]
        try:
            outcomes = store_by_halves(parts, len(batch), send) or [None] * len(batch)
        except Unavailable:
            self.assertEqual([], stored)
            return

        self.assertEqual(sorted(stored), stored)
        self.assertEqual([place for place, each in enumerate(outcomes) if each is None], stored)
        later = [place for place, each in enumerate(outcomes) if isinstance(each, Unavailable)]
        self.assertEqual([*range(len(batch) - len(later), len(batch))], later)
        for place in range(len(batch) - len(later)):
            self.assertEqual(batch[place] == "-", isinstance(outcomes[place], Rejected))
        self.assertTrue(away < len(batch) or not later)
