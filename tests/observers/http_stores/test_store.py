"""How messages are divided into requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.http_stores.store import BatchLimits

_lines = st.lists(st.binary(max_size=40).map(lambda text: text.replace(b"\n", b"") + b"\n"), max_size=40)


class CutTests(SynchronousTestCase):
    """By count and by size."""

    def test_count(self) -> None:
        """No request has more messages than it may."""
        self.assertEqual([(0, 2), (2, 4), (4, 5)], list(BatchLimits(messages=2).cut([b"x\n"] * 5)))

    def test_size(self) -> None:
        """No request is larger than it may be, unless one message is."""
        lines = [b"a" * 6, b"b" * 4, b"c", b"d" * 30, b"e", b"f"]

        self.assertEqual([(0, 2), (2, 3), (3, 4), (4, 6)], list(BatchLimits(size=10).cut(lines)))

    def test_nothing(self) -> None:
        """Without messages there is no request."""
        self.assertEqual([], list(BatchLimits().cut([])))

    @given(_lines, st.integers(1, 10), st.integers(1, 100))
    def test_all_in_order(self, lines: list[bytes], messages: int, size: int) -> None:
        """Each message is in one request, in order, within the limits; the rest after any request is cut the same."""
        bodies = BatchLimits(messages, size)
        cuts = list(bodies.cut(lines))

        self.assertEqual(lines, [line for begin, end in cuts for line in lines[begin:end]])
        for place, (begin, end) in enumerate(cuts):
            self.assertTrue(0 < end - begin <= messages)
            self.assertTrue(end - begin == 1 or sum(map(len, lines[begin:end])) <= size)
            again = [(begin + first, begin + last) for first, last in bodies.cut(lines[begin:])]
            self.assertEqual(cuts[place:], again)
