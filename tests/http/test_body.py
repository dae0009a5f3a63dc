"""
Tests for L{webhookrx.http.body}.
"""

from __future__ import annotations

import itertools
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.pieces import pieces
from webhookrx.errors import BAD_REQUEST, BODY_TOO_LARGE, NO_ROOM, Reason, RequestRefused
from webhookrx.http.body import _OVERHEAD as OVERHEAD
from webhookrx.http.body import SMALL_BODY, ChunkedBody, CountedBody, DiscardedBody, SizedBody
from webhookrx.testing import RecordingConsumer


def read(*reads: bytes) -> tuple[bytes, bytes | None]:
    """Return the data of a body that comes in those reads, and what follows it."""
    body = ChunkedBody()
    rest = None
    for data in reads:
        assert rest is None, "the body ended before the last read"
        rest = body.feed(data)
    return body.take(), rest


def _said(refused: RequestRefused) -> tuple[Reason, str]:
    """Return what a refusal says."""
    return refused.reason, refused.detail


class ChunkedBodyTests(SynchronousTestCase):
    """Chunked bodies."""

    def test_bodies(self) -> None:
        """Data comes out joined, and what follows the body is left alone."""
        table = [
            (b"0\r\n\r\n", b"", b""),
            (b"3\r\nabc\r\n0\r\n\r\n", b"abc", b""),
            (
                b"3\r\nabc\r\nA\r\n0123456789\r\n000\r\n\r\nPOST / HTTP/1.1\r\n",
                b"abc0123456789",
                b"POST / HTTP/1.1\r\n",
            ),
            (b'3;name=value;x="y"\r\nabc\r\n0\r\n\r\n', b"abc", b""),
            (b"3\r\nabc\r\n0\r\nX-Trailer: y\r\nZ: 1\r\n\r\n\r\n", b"abc", b"\r\n"),
            (b"8\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n0\r\n\r\n", b"\r\n\r\n\r\n\r\n", b"0\r\n\r\n"),
        ]
        for wire, data, rest in table:
            self.assertEqual((data, rest), read(wire), wire)

    def test_malformed(self) -> None:
        """What is not well-formed is refused."""
        for wire in (
            b"3 \r\nabc\r\n0\r\n\r\n",
            b"0x3\r\nabc\r\n0\r\n\r\n",
            b"+3\r\nabc\r\n0\r\n\r\n",
            b"-0x0\r\n\r\n",
            b"0_2e\r\n",
            b"\r\nabc",
            b"g\r\n",
            b"f" * 18 + b"\r\n",
            b"3\nabc\r\n0\r\n\r\n",
            b"3\r\nabc\n0\n\n",
            b"3\r\nabcd\r\n0\r\n\r\n",
            b"3\r\nab\r\n0\r\n\r\n",
            b"3;a=b\nabc\r\n0\r\n\r\n",
            b'3;a="\nx"\r\nabc\r\n0\r\n\r\n',
            b"3\r\nabc\r\n0\r\nContent-Length: 5\r\n\r\n",
            b"3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"3\r\nabc\r\n0\r\nA : b\r\n\r\n",
        ):
            with self.assertRaises(RequestRefused, msg=repr(wire)) as caught:
                read(wire)
            self.assertEqual(400, caught.exception.reason.status)

    def test_mostly_overhead(self) -> None:
        """A body of nothing but chunk extensions is not read for ever."""
        body = ChunkedBody()
        body.feed(b"1;")
        with self.assertRaises(RequestRefused):
            for _ in range(100):
                body.feed(b"a" * 1024)

    def test_bound_of_overhead(self) -> None:
        """Eight bytes for each byte of data, and a fixed number over all of it, are not too many; one more is."""
        begin = b"5\r\nabcde\r\n1;"
        allowed = 8 * 5 + OVERHEAD
        body = ChunkedBody()
        body.feed(begin)
        self.assertIs(None, body.feed(b"x" * (allowed - len(begin))))
        self.assertEqual(5, body.size)
        with self.assertRaises(RequestRefused) as caught:
            body.feed(b"x")
        self.assertEqual((BAD_REQUEST, "The chunked body is mostly overhead."), _said(caught.exception))

    def test_memory(self) -> None:
        """However small the chunks or the reads, what is held is little more than the data."""
        for body, reads in (
            (ChunkedBody(), [b"1\r\na\r\n" * 10_000] * 20),
            (SizedBody(200_001), [b"a"] * 200_000),
        ):
            tracemalloc.start()
            for data in reads:
                body.feed(data)
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            self.assertEqual(200_000, body.size)
            self.assertLess(held, 400_000)

    def test_one_byte_chunks(self) -> None:
        """Data in the smallest chunks is wasteful, not overhead."""
        self.assertEqual((b"a" * 50_000, b""), read(b"1\r\na\r\n" * 50_000, b"0\r\n\r\n"))

    def test_empty_line_in_reads(self) -> None:
        """The body ends where it ends, however its last line comes, and though the last read goes on behind it."""
        wire, follows = b"1\r\na\r\n0\r\n\r\n", b"\r\nPOST / HTTP/1.1\r\n\r\n"
        for first in range(len(wire)):
            for kinds in itertools.product((False, True), repeat=min(4, len(wire) - first - 1)):
                cuts = (first + 1 + number for number, cut in enumerate(kinds) if cut)
                reads = pieces(wire + follows, [first, *cuts])
                self.assertEqual((b"a", follows), read(*reads), reads)

    @given(
        st.lists(st.sampled_from([b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"a", b"\n", b"\r"]) | st.binary(max_size=20)),
        st.sampled_from([b"", b"T: v\r\n"]),
        st.binary(max_size=10),
        st.lists(st.integers(0, 300), max_size=10),
    )
    def test_any_split(self, parts: list[bytes], trailer: bytes, follows: bytes, cuts: list[int]) -> None:
        """However a body is cut into reads, the same data comes out and the same rest."""
        chunks = [part for part in parts if part]
        wire = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in chunks) + b"0\r\n" + trailer + b"\r\n"
        body = ChunkedBody()
        rest: bytes | None = None
        for piece in pieces(wire + follows, cuts):
            if rest is None:
                rest = body.feed(piece)
            else:
                rest += piece
        self.assertEqual((b"".join(chunks), follows), (body.take(), rest))


class SizedBodyTests(SynchronousTestCase):
    """Bodies whose length was said before."""

    def test_whole(self) -> None:
        """In one read or in many, the data is what was said, and what follows is left alone."""
        for reads in ([b"abcde", b"f+rest"], [b"abcdef+rest"], [b"a", b"b", b"cdef+rest"]):
            body = SizedBody(6)
            rests = [body.feed(data) for data in reads]
            self.assertEqual([None] * (len(reads) - 1) + [b"+rest"], rests)
            self.assertEqual((b"abcdef", 6), (body.take(), body.size))

    def test_growing(self) -> None:
        """It knows what it has so far."""
        body = SizedBody(6)
        body.feed(b"abc")
        self.assertEqual(3, body.size)


class DiscardedBodyTests(SynchronousTestCase):
    """Bodies that nobody wants."""

    def test_end(self) -> None:
        """What follows it comes out, wherever reads end."""
        body = DiscardedBody(6)
        self.assertEqual([None, b"", b"x"], [body.feed(b"abc"), body.feed(b"def"), DiscardedBody(1).feed(b"ax")])


class CountedBodyTests(SynchronousTestCase):
    """What a body takes of the room that is there."""

    def setUp(self) -> None:
        """Have room."""
        self.consumer = RecordingConsumer(Clock(), max_bytes=4 * SMALL_BODY)

    def body(self, length: int | None, limit: int = 10 * SMALL_BODY) -> CountedBody:
        """Return a body to come."""
        return CountedBody(length, limit, self.consumer)

    def assert_refused(self, reason: Reason, body: CountedBody, data: bytes) -> None:
        """That data is refused for that reason; what was counted before is still counted."""
        before = self.consumer.budget.bytes
        with self.assertRaises(RequestRefused) as caught:
            body.feed(data)
        self.assertEqual((reason, before), (caught.exception.reason, self.consumer.budget.bytes))

    def test_sized(self) -> None:
        """What has come is counted until the body is taken; what completes it is not counted any more."""
        body = self.body(6)
        for data, rest, counted in ((b"ab", None, 2), (b"cd", None, 4), (b"efPOST", b"POST", 4)):
            self.assertEqual((rest, counted), (body.feed(data), self.consumer.budget.bytes))
        self.assertEqual((b"abcdef", 0), (body.take(), self.consumer.budget.bytes))

    def test_chunked(self) -> None:
        """Of a chunked body the data is counted, not what is around it."""
        body = self.body(None)
        for data, rest, counted in ((b"3;x", None, 0), (b"=y\r\nab", None, 2), (b"c\r\n0\r\n\r\nPOST", b"POST", 2)):
            self.assertEqual((rest, counted), (body.feed(data), self.consumer.budget.bytes))
        self.assertEqual((b"abc", 0), (body.take(), self.consumer.budget.bytes))

    def test_forgotten(self) -> None:
        """A body that is given up takes no room, however often it is."""
        body = self.body(6)
        body.feed(b"ab")
        body.forget()
        body.forget()
        self.assertEqual(0, self.consumer.budget.bytes)

    def test_limit(self) -> None:
        """At its limit a body passes, and is refused one byte beyond."""
        body = self.body(None, limit=3)
        self.assertEqual(b"", body.feed(b"3\r\nabc\r\n0\r\n\r\n"))
        self.assert_refused(BODY_TOO_LARGE, self.body(None, limit=3), b"4\r\nabcd\r\n")

    def test_malformed(self) -> None:
        """What is no chunk is refused."""
        self.assert_refused(BAD_REQUEST, self.body(None), b"zz\r\n")

    def test_room(self) -> None:
        """
        Without room a body is refused as it grows; one that is small, or as long as it is, finds some where a large
        one finds none.
        """
        large = self.body(3 * SMALL_BODY)
        large.feed(b"x" * (2 * SMALL_BODY))
        self.assert_refused(NO_ROOM, large, b"x" * (SMALL_BODY - 1))
        for length in (SMALL_BODY, None):
            small = self.body(length)
            self.assertIsNone(small.feed(b"400\r\n" + b"x" * 1000))
            small.forget()
