"""How messages are divided into requests, and what their bodies are."""

from __future__ import annotations

import gzip
import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.http_bodies import BodyFormat

LINES = [b'{"MESSAGE":"one"}\n', b'{"MESSAGE":"two"}\n']

_lines = st.lists(st.binary(max_size=40).map(lambda text: text.replace(b"\n", b"") + b"\n"), max_size=40)


class CutTests(SynchronousTestCase):
    """By count and by size."""

    def test_count(self) -> None:
        """No request has more messages than it may."""
        self.assertEqual([(0, 2), (2, 4), (4, 5)], list(BodyFormat(messages=2).cut([b"x\n"] * 5)))

    def test_size(self) -> None:
        """No request is larger than it may be, unless one message is."""
        lines = [b"a" * 6, b"b" * 4, b"c", b"d" * 30, b"e", b"f"]

        self.assertEqual([(0, 2), (2, 3), (3, 4), (4, 6)], list(BodyFormat(size=10).cut(lines)))

    def test_nothing(self) -> None:
        """Without messages there is no request."""
        self.assertEqual([], list(BodyFormat().cut([])))

    @given(_lines, st.integers(1, 10), st.integers(1, 100))
    def test_all_in_order(self, lines: list[bytes], messages: int, size: int) -> None:
        """Each message is in one request, in order, within the limits; the rest after any request is cut the same."""
        bodies = BodyFormat(messages=messages, size=size)
        cuts = list(bodies.cut(lines))

        self.assertEqual(lines, [line for begin, end in cuts for line in lines[begin:end]])
        for place, (begin, end) in enumerate(cuts):
            self.assertTrue(0 < end - begin <= messages)
            self.assertTrue(end - begin == 1 or sum(map(len, lines[begin:end])) <= size)
            again = [(begin + first, begin + last) for first, last in bodies.cut(lines[begin:])]
            self.assertEqual(cuts[place:], again)


class MakeTests(SynchronousTestCase):
    """Bodies by their format."""

    def test_ndjson(self) -> None:
        """One object a line."""
        self.assertEqual(b'{"MESSAGE":"one"}\n{"MESSAGE":"two"}\n', BodyFormat().make(LINES).content)

    def test_json(self) -> None:
        """An array of objects."""
        content = BodyFormat("json").make(LINES).content

        self.assertEqual([{"MESSAGE": "one"}, {"MESSAGE": "two"}], json.loads(content))
        self.assertNotIn(b"\n", content)

    def test_each(self) -> None:
        """One object, without a line end."""
        self.assertEqual(b'{"MESSAGE":"one"}', BodyFormat("each", messages=1).make(LINES[:1]).content)

    def test_lines(self) -> None:
        """Rendered texts, one a line."""
        self.assertEqual(b"one\ntwo\n", BodyFormat("lines").make([b"one\n", b"two\n"]).content)

    def test_gzip(self) -> None:
        """A packed body unpacks to the same, and is the same each time."""
        packed = BodyFormat(gzip=True).make(LINES)

        self.assertEqual(b"".join(LINES), gzip.decompress(packed.content))
        self.assertEqual(packed, BodyFormat(gzip=True).make(LINES))


class KeyTests(SynchronousTestCase):
    """The key names the messages."""

    def test_stable(self) -> None:
        """It is the same for the same messages, packed or not, today and after a restart."""
        key = "2b85fb9e605dc7db5a0135cccb6943f21e7d789525e08d97dcecdb115b10485d"

        self.assertEqual([key] * 2, [BodyFormat(gzip=packed).make(LINES).key for packed in (False, True)])

    def test_different(self) -> None:
        """Other messages, fewer, or the same in another order have another key."""
        lines = [LINES, LINES[:1], LINES[1:], LINES[::-1]]

        self.assertEqual(4, len({BodyFormat().make(each).key for each in lines}))

    def test_not_distinct(self) -> None:
        """Where different messages may have the same text there is none: the second would be taken for a copy."""
        self.assertIsNone(BodyFormat("lines", distinct=False).make([b"same\n"]).key)
