"""How messages are divided into requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.batch_limits import BatchLimits

_sizes = st.lists(st.integers(0, 40), max_size=40)


class CutTests(SynchronousTestCase):
    """By count and by size."""

    def test_count(self) -> None:
        """No request has more messages than it may."""
        self.assertEqual([(0, 2), (2, 4), (4, 5)], list(BatchLimits(messages=2).cut([2] * 5)))

    def test_size(self) -> None:
        """No request is larger than it may be, unless one message is."""
        self.assertEqual([(0, 2), (2, 3), (3, 4), (4, 6)], list(BatchLimits(size=10).cut([6, 4, 1, 30, 1, 1])))

    def test_nothing(self) -> None:
        """Without messages there is no request."""
        self.assertEqual([], list(BatchLimits().cut([])))

    @given(_sizes, st.integers(1, 10), st.integers(1, 100))
    def test_all_in_order(self, sizes: list[int], messages: int, size: int) -> None:
        """Each message is in one request, in order, within the limits; the rest after any request is cut the same."""
        limits = BatchLimits(messages, size)
        cuts = list(limits.cut(sizes))

        self.assertEqual(sizes, [each for begin, end in cuts for each in sizes[begin:end]])
        for place, (begin, end) in enumerate(cuts):
            self.assertTrue(0 < end - begin <= messages)
            self.assertTrue(end - begin == 1 or sum(sizes[begin:end]) <= size)
            again = [(begin + first, begin + last) for first, last in limits.cut(sizes[begin:])]
            self.assertEqual(cuts[place:], again)
