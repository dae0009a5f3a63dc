"""
Tests for L{webhookrx.intake.encodings}.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import random
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache

import brotli
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import (
    BAD_COMPRESSION,
    BODY_TOO_LARGE,
    UNPACK_RATIO,
    UNSUPPORTED_ENCODING,
    Reason,
    RequestRefused,
)
from webhookrx.intake import encodings as content_encoding
from webhookrx.intake.encodings import ALWAYS_UNPACKED, check_encoding

MiB = 1024 * 1024
LIMIT = 10 * MiB
TEXT = b'{"MESSAGE": "text that repeats, text that repeats", "n": 12345}' * 30


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def zstd_stream(data: bytes) -> bytes:
    """Make a frame as a streaming sender does: without size and checksum, in blocks of all lengths."""
    packer = zstandard.ZstdCompressor(write_content_size=False, write_checksum=False).compressobj()
    half = len(data) // 2
    first = packer.compress(data[:half]) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return first + packer.compress(data[half:]) + packer.flush()


def unpack(body: bytes, codings: list[bytes], limit: int) -> bytes:
    """Unpack whatever its ratio."""
    return content_encoding.unpack(body, codings, limit, LIMIT)


PACKERS: list[tuple[bytes, Callable[[bytes], bytes]]] = [
    (b"gzip", gzip.compress),
    (b"x-gzip", gzip.compress),
    (b"deflate", zlib.compress),
    (b"deflate", raw_deflate),
    (b"zstd", zstandard.compress),
    (b"zstd", zstd_stream),
    (b"br", brotli.compress),
]


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@cache
def bomb(coding: bytes, mebibytes: int = 600) -> bytes:
    """Pack that many mebibytes of zeros."""
    zeros = bytes(MiB)
    if coding == b"br":
        packer = brotli.Compressor(quality=5)
        return b"".join([packer.process(zeros) for _ in range(mebibytes)]) + packer.finish()
    if coding == b"zstd":
        packer = zstandard.ZstdCompressor(level=1).compressobj()
    else:
        packer = zlib.compressobj(1, zlib.DEFLATED, {b"gzip": 31, b"deflate": 15}[coding])
    return b"".join([packer.compress(zeros) for _ in range(mebibytes)]) + packer.flush()


class CheckEncodingTests(SynchronousTestCase):
    def test_known(self) -> None:
        """Each coding is known by its names in any case; identity and empty elements are nothing."""
        table: list[tuple[list[bytes], str]] = [
            ([], ""),
            ([b""], ""),
            ([b"identity"], ""),
            ([b"identity", b"Identity"], ""),
            ([b", ,"], ""),
            ([b"gzip"], "gzip"),
            ([b"GZIP"], "gzip"),
            ([b"X-GZip"], "gzip"),
            ([b" gzip\t"], "gzip"),
            ([b"deflate"], "deflate"),
            ([b"zstd"], "zstd"),
            ([b"Br"], "br"),
            ([b"identity, gzip"], "gzip"),
            ([b"identity", b"gzip,"], "gzip"),
            ([b"gzip,deflate"], "gzip deflate"),
            ([b"deflate", b"identity", b"x-gzip"], "deflate gzip"),
            ([b"gzip, gzip"], "gzip gzip"),
            ([b"zstd, gzip"], "zstd gzip"),
        ]
        for values, coding in table:
            self.assertEqual((values, coding), (values, " ".join(check_encoding(values))))

    def test_unknown(self) -> None:
        """A coding that is not known is refused, and its name is not repeated to the sender."""
        for value in (b"compress", b"x-deflate", b"gzip;q=1", b"utf-8", b"aws-chunked", b"gz\xff", b"*", b"none"):
            refused = self.assertRaises(RequestRefused, check_encoding, [value])

            self.assertEqual((value, UNSUPPORTED_ENCODING), (value, refused.reason))
            self.assertEqual(UNSUPPORTED_ENCODING.detail, refused.detail)

    def test_too_many(self) -> None:
        """Three codings are refused, in one line or in several; so are two of which one is unknown or shows nothing."""
        for values, words in (
            ([b"gzip, gzip, gzip"], "at most two"),
            ([b"gzip", b"deflate", b"zstd"], "at most two"),
            ([b"gzip,br"], "br only alone"),
            ([b"br", b"br"], "br only alone"),
            ([b"gzip, x"], UNSUPPORTED_ENCODING.detail),
        ):
            refused = self.assertRaises(RequestRefused, check_encoding, values)

            self.assertEqual((values, UNSUPPORTED_ENCODING), (values, refused.reason))
            self.assertIn(words, refused.detail)


class UnpackTests(SynchronousTestCase):
    def assert_refused(self, reason: Reason, body: bytes, coding: bytes, limit: int = LIMIT) -> RequestRefused:
        refused = self.assertRaises(RequestRefused, unpack, body, [coding], limit)
        self.assertEqual((coding, reason), (coding, refused.reason))
        return refused

    def test_plain(self) -> None:
        """A body without a coding comes back as it is, up to the limit."""
        for values in ([], [b""], [b"identity"]):
            self.assertIs(TEXT, unpack(TEXT, values, len(TEXT)))
        self.assert_refused(BODY_TOO_LARGE, TEXT, b"identity", len(TEXT) - 1)

    def test_codings(self) -> None:
        """Each coding is undone, whatever the size of the body is to the buffers inside."""
        sizes = [1, 2, 100, 4095, 4096, 65535, 65536, 65537, 131072, 262144 + 1]
        bodies = [TEXT, *map(bytes, sizes), *map(noise, sizes)]
        for coding, pack in PACKERS:
            for body in bodies:
                unpacked = unpack(pack(body), [coding.upper()], LIMIT)
                self.assertTrue(body == unpacked, (coding, len(body), len(unpacked)))

    def test_empty_body(self) -> None:
        """An empty body stays empty with any coding; so does one that packs nothing."""
        for coding, pack in PACKERS:
            self.assertEqual(b"", unpack(b"", [coding], 0))
            self.assertEqual(b"", unpack(pack(b""), [coding], 0))

    def test_two(self) -> None:
        """Of two codings each is undone that was applied, one, both or none, in whatever order they are named."""
        gz, zl, zs = gzip.compress(TEXT), zlib.compress(TEXT), zstandard.compress(TEXT)
        for named in (b"gzip,deflate", b"deflate, gzip"):
            for body in (gz, zl, TEXT, zlib.compress(gz), gzip.compress(zl)):
                self.assertEqual(TEXT, unpack(body, [named], LIMIT), (named, body[:4]))
        for body in (gz, zs, gzip.compress(zs), zstandard.compress(gz), b"\x50\x2a\x4d\x18\x00\x00\x00\x00" + zs):
            self.assertEqual(TEXT, unpack(body, [b"gzip", b"zstd"], LIMIT))
        self.assertEqual(TEXT, unpack(gzip.compress(gz), [b"gzip,gzip"], LIMIT))
        # Each is undone once.
        self.assertEqual(gz, unpack(gzip.compress(gz), [b"gzip,deflate"], LIMIT))
        self.assertEqual(b"", unpack(b"", [b"gzip,deflate"], LIMIT))
        for body in (gz[:-9], zl[:-2], zlib.compress(gz[:-9])):
            refused = self.assertRaises(RequestRefused, unpack, body, [b"gzip,deflate"], LIMIT)
            self.assertEqual(BAD_COMPRESSION, refused.reason)

    def test_limits_of_two(self) -> None:
        """The limit holds for what comes out of each, and the ratio is that of the last to what came by the wire."""
        body = bytes(2 * MiB)
        once = gzip.compress(body)
        twice = zlib.compress(once)
        self.assertEqual(len(body), len(unpack(twice, [b"gzip,deflate"], len(body))))
        for packed, limit, ratio, reason in (
            (twice, len(body) - 1, LIMIT, BODY_TOO_LARGE),
            (twice, LIMIT, len(body) // len(twice) - 1, UNPACK_RATIO),
            (TEXT, len(TEXT) - 1, LIMIT, BODY_TOO_LARGE),
        ):
            refused = self.assertRaises(
                RequestRefused, content_encoding.unpack, packed, [b"gzip,deflate"], limit, ratio
            )
            self.assertEqual(reason, refused.reason)
        # By its own size the inner one would be allowed.
        self.assertGreater(len(body) // len(twice), len(body) // len(once))
        self.assertEqual(body, content_encoding.unpack(once, [b"gzip"], LIMIT, len(body) // len(once) + 1))

    def test_unknown_coding(self) -> None:
        """A coding that is not known is refused here too, even with an empty body."""
        self.assert_refused(UNSUPPORTED_ENCODING, b"", b"compress")

    def test_limit(self) -> None:
        """As much as the limit may come out, and not one byte more."""
        for coding, pack in PACKERS:
            for body in (TEXT, noise(200_000)):
                packed = pack(body)

                self.assertTrue(body == unpack(packed, [coding], len(body)))
                refused = self.assert_refused(BODY_TOO_LARGE, packed, coding, len(body) - 1)
                self.assertIn("unpacks to more", refused.detail)

    def test_several_parts(self) -> None:
        """Gzip members and zstd frames follow each other; skippable zstd frames give nothing."""
        parts = [b"first", b"", noise(70_000), b"last"]
        skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"

        self.assertTrue(b"".join(parts) == unpack(b"".join(map(gzip.compress, parts)), [b"gzip"], LIMIT))
        for pack in (zstandard.compress, zstd_stream):
            packed = skippable + skippable.join(map(pack, parts)) + skippable
            self.assertTrue(b"".join(parts) == unpack(packed, [b"zstd"], LIMIT))

    def test_limit_over_several_parts(self) -> None:
        """The limit is for all parts together."""
        for coding, pack in ((b"gzip", gzip.compress), (b"zstd", zstandard.compress)):
            self.assertEqual(b"x" * 100, unpack(pack(b"x" * 10) * 10, [coding], 100))
            self.assert_refused(BODY_TOO_LARGE, pack(b"x" * 10) * 11, coding, 100)

    def test_cut_short(self) -> None:
        """A body that ends too early is refused, wherever it was cut; none of it becomes a message."""
        for coding, pack in PACKERS:
            for body in (b"x", TEXT, noise(5000)):
                packed = pack(body)
                for end in {*range(1, min(len(packed), 40)), *range(max(1, len(packed) - 20), len(packed))}:
                    self.assert_refused(BAD_COMPRESSION, packed[:end], coding)

    def test_last_part_cut_short(self) -> None:
        """A whole part does not make up for a cut one."""
        for coding, pack in ((b"gzip", gzip.compress), (b"zstd", zstandard.compress), (b"zstd", zstd_stream)):
            whole = pack(TEXT)
            for end in range(1, len(whole)):
                self.assert_refused(BAD_COMPRESSION, whole + whole[:end], coding)
        self.assert_refused(BAD_COMPRESSION, zstandard.compress(b"x") + b"\x50\x2a\x4d\x18\x09\0\0\0", b"zstd")

    def test_goes_on_after_the_end(self) -> None:
        """Anything after the end is refused, next to it or in a later slice."""
        for coding, pack in PACKERS:
            for body in (b"", TEXT, noise(4096 * 3)):
                for junk in (b"x", b"\0", b"\0" * 5000, noise(9000), b"\n"):
                    self.assert_refused(BAD_COMPRESSION, pack(body) + junk, coding)

    def test_one_stream_only(self) -> None:
        """Deflate and brotli bodies are one stream."""
        for coding, pack in ((b"deflate", zlib.compress), (b"deflate", raw_deflate), (b"br", brotli.compress)):
            self.assert_refused(BAD_COMPRESSION, pack(TEXT) * 2, coding)

    def test_corrupt(self) -> None:
        """A changed byte where a checksum watches, or bytes that were never packed, are refused."""
        frame = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
        for coding, packed in ((b"gzip", gzip.compress(TEXT)), (b"deflate", zlib.compress(TEXT)), (b"zstd", frame)):
            for place in (len(packed) // 2, -3):
                changed = bytearray(packed)
                changed[place] ^= 0x55
                self.assert_refused(BAD_COMPRESSION, bytes(changed), coding)
        for coding in (b"gzip", b"deflate", b"zstd", b"br"):
            self.assert_refused(BAD_COMPRESSION, b'{"MESSAGE": "not packed at all"}', coding)

    def test_each_coding_takes_its_own(self) -> None:
        """The wrapper of another coding is refused."""
        self.assert_refused(BAD_COMPRESSION, zlib.compress(TEXT), b"gzip")
        self.assert_refused(BAD_COMPRESSION, gzip.compress(TEXT), b"deflate")
        self.assert_refused(BAD_COMPRESSION, gzip.compress(TEXT), b"zstd")

    def test_zlib_dictionary(self) -> None:
        """A zlib stream that asks for a preset dictionary can't be unpacked."""
        packer = zlib.compressobj(zdict=b"text that repeats")
        self.assert_refused(BAD_COMPRESSION, packer.compress(TEXT) + packer.flush(), b"deflate")

    def test_zstd_window(self) -> None:
        """A zstd frame may ask for a window of 8 MiB and no more."""
        for window_log, accepted in ((23, True), (24, False)):
            parameters = zstandard.ZstdCompressionParameters.from_level(
                1, window_log=window_log, write_content_size=False
            )
            packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
            packed = packer.compress(TEXT) + packer.flush()

            if accepted:
                self.assertEqual(TEXT, unpack(packed, [b"zstd"], LIMIT))
            else:
                self.assert_refused(BAD_COMPRESSION, packed, b"zstd")

    def test_refusal_leaves_nothing_behind(self) -> None:
        """A good body is unpacked after any bad one: no decoder keeps a part of it."""
        for coding, pack in PACKERS:
            good = pack(TEXT)
            for bad, limit in ((good[:-1], LIMIT), (good + b"junk", LIMIT), (good, 10), (b"junk" * 9, LIMIT)):
                self.assertRaises(RequestRefused, unpack, bad, [coding], limit)
                self.assertEqual(TEXT, unpack(good, [coding], LIMIT))

    def test_threads(self) -> None:
        """Several threads unpack at once without harm to each other."""
        bodies = [noise(300_000) + bytes([number]) for number in range(4)]
        results: list[bool] = []

        def work(body: bytes) -> None:
            results.extend(unpack(pack(body), [coding], LIMIT) == body for coding, pack in PACKERS if coding != b"br")

        threads = [threading.Thread(target=work, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        self.assertEqual([True] * 24, results)

    @given(
        st.binary(max_size=3000) | st.text(max_size=500).map(str.encode), st.sampled_from(PACKERS), st.integers(1, 9)
    )
    def test_round_trip(self, body: bytes, packer: tuple[bytes, Callable[[bytes], bytes]], times: int) -> None:
        """What a sender packs comes out as it was."""
        coding, pack = packer

        self.assertEqual(body * times, unpack(pack(body * times), [coding], LIMIT))

    @given(st.binary(max_size=300), st.sampled_from([b"gzip", b"deflate", b"zstd", b"br"]), st.integers(0, 5000))
    def test_any_bytes(self, body: bytes, coding: bytes, limit: int) -> None:
        """Whatever bytes come, they are unpacked within the limit or refused for one of two reasons."""
        try:
            self.assertLessEqual(len(unpack(body, [coding], limit)), limit)
        except RequestRefused as refused:
            self.assertIn(refused.reason, (BAD_COMPRESSION, BODY_TOO_LARGE))


class RatioTests(SynchronousTestCase):
    """How many times its size a body may unpack to."""

    def refused(self, body: bytes, coding: bytes, limit: int, ratio: int) -> Reason:
        refusal = self.assertRaises(RequestRefused, content_encoding.unpack, body, [coding], limit, ratio)
        return refusal.reason  # type: ignore[no-any-return]  # trial does not say what it returns

    def test_always_allowed(self) -> None:
        """Some size is allowed however small the body is on the wire, and not a byte more."""
        for coding, pack in PACKERS:
            self.assertEqual(
                ALWAYS_UNPACKED, len(content_encoding.unpack(pack(bytes(ALWAYS_UNPACKED)), [coding], LIMIT, 1))
            )
            self.assertIs(UNPACK_RATIO, self.refused(pack(bytes(ALWAYS_UNPACKED + 1)), coding, LIMIT, 1), coding)

    def test_ratio(self) -> None:
        """Beyond that, the ratio decides."""
        for coding, pack in PACKERS:
            packed = pack(noise(4000) * 400)
            needed = -(-1_600_000 // len(packed))
            self.assertEqual(1_600_000, len(content_encoding.unpack(packed, [coding], LIMIT, needed)))
            self.assertIs(UNPACK_RATIO, self.refused(packed, coding, LIMIT, needed - 1), coding)

    def test_limit(self) -> None:
        """A body beyond its limit is too large, whatever its ratio would allow; one beyond both is told the lower."""
        for coding, pack in PACKERS:
            self.assertIs(BODY_TOO_LARGE, self.refused(pack(bytes(1000)), coding, 999, 1), coding)
            self.assertIs(BODY_TOO_LARGE, self.refused(pack(bytes(LIMIT + 1)), coding, LIMIT, LIMIT), coding)
            self.assertIs(UNPACK_RATIO, self.refused(pack(bytes(LIMIT + 1)), coding, LIMIT, 1), coding)

    def test_found_while_unpacking(self) -> None:
        """Not much more is unpacked than what is allowed."""
        for coding in (b"gzip", b"deflate", b"zstd", b"br"):
            packed = bomb(coding)
            began = time.process_time()
            self.assertIs(UNPACK_RATIO, self.refused(packed, coding, 600 * MiB, 1), coding)
            # All of it would take some tenths of a second.
            self.assertLess(time.process_time() - began, 0.1, coding)

    def test_nothing_stays(self) -> None:
        """What a refused body has unpacked to is let go of at once, without a collection of cycles."""
        gc.disable()
        self.addCleanup(gc.enable)
        for coding in (b"gzip", b"deflate", b"zstd", b"br"):
            packed = dict(PACKERS)[coding](bytes(4 * ALWAYS_UNPACKED))
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for limit, ratio in ((LIMIT, 1), (ALWAYS_UNPACKED // 2, 10**6)) * 10:
                with contextlib.suppress(RequestRefused):
                    content_encoding.unpack(packed, [coding], limit, ratio)
            kept = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            self.assertLess(kept, ALWAYS_UNPACKED, coding)

    def test_pieces(self) -> None:
        """Others get their turn often while a body is unpacked."""
        for coding, pack in PACKERS:
            turns = self.patched_turns()
            content_encoding.unpack(pack(bytes(MiB)), [coding], LIMIT, LIMIT)
            self.assertGreaterEqual(len(turns), 8, coding)

    def patched_turns(self) -> list[None]:
        turns: list[None] = []
        self.patch(content_encoding, "yield_point", lambda: turns.append(None))
        return turns


class BombTests(SynchronousTestCase):
    """
    C{tracemalloc} sees what zlib and brotli give out, and the buffer it is gathered in. The windows inside the
    decoders have limits of their own.
    """

    def peak(self, body: bytes, coding: bytes, limit: int) -> int:
        """Return the bytes held at most while unpacking."""
        tracemalloc.start()
        try:
            unpack(body, [coding], limit)
        except RequestRefused as refused:
            self.assertEqual(BODY_TOO_LARGE, refused.reason)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return peak

    def test_bombs(self) -> None:
        """600 MiB of zeros are refused when the limit is reached, without holding more than little over it."""
        for coding in (b"gzip", b"deflate", b"zstd", b"br"):
            body = bomb(coding)
            self.assertLess(len(body), 4 * MiB)

            for limit in (10_000, MiB, LIMIT):
                peak = self.peak(body, coding, limit)
                self.assertLess(peak, limit * 1.25 + MiB, (coding, limit))

    def test_one_copy(self) -> None:
        """A body that fills the limit is held once and not twice."""
        packers = [*PACKERS[:-1], (b"br", lambda data: brotli.compress(data, quality=1))]
        for coding, pack in packers:
            body = pack(noise(MiB) * 10)

            self.assertLess(self.peak(body, coding, LIMIT), LIMIT * 1.4, coding)

    def test_measure_can_fail(self) -> None:
        """The measure of these tests sees a body that is unpacked whole."""
        body = bomb(b"gzip", 40)
        tracemalloc.start()
        zlib.decompress(body, 31)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        self.assertGreater(peak, 40 * MiB)

    def test_time(self) -> None:
        """A bomb takes far less than what unpacking all of it would: 200 ms is allowed."""
        for coding in (b"gzip", b"deflate", b"zstd", b"br"):
            body = bomb(coding)
            spent = []
            for _ in range(3):
                started = time.process_time()
                self.assertRaises(RequestRefused, unpack, body, [coding], LIMIT)
                spent.append(time.process_time() - started)

            self.assertLess(min(spent), 0.2, coding)

    def test_many_parts(self) -> None:
        """Ten times as many empty parts take about ten times as long, not a hundred times."""
        frame = zstandard.ZstdCompressor(write_content_size=False).compress(b"")
        for coding, part in ((b"gzip", gzip.compress(b"")), (b"zstd", frame)):
            spent = []
            for count in (8_000, 80_000):
                started = time.process_time()
                self.assertEqual(b"", unpack(part * count, [coding], LIMIT))
                spent.append(time.process_time() - started)

            self.assertLess(spent[1], max(spent[0], 0.001) * 30, coding)

    def test_tiny_pieces(self) -> None:
        """A stream that gives one byte at a time is gathered without a piece for each."""
        for coding, pack in ((b"gzip", gzip.compress), (b"zstd", zstandard.compress)):
            body = pack(b"x") * 20_000

            self.assertLess(self.peak(body, coding, LIMIT), 200_000, coding)
