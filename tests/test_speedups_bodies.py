"""
Tests for the functions of L{webhookrx.speedups} that work on whole bodies and texts: the same as in Python, byte for
byte, and never a read behind the end.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import sys
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from benchmarks.hostile_bodies import SHAPES
from tests import sanitizers
from webhookrx.intake import json_body
from webhookrx.message import encoders, escapes
from webhookrx.message.encoders import encode_line, encode_stored
from webhookrx.message.escapes import MISLEADING, encode, escape_misleading
from webhookrx.message.message import Message, Value
from webhookrx.speedups import Compiled, compiled
from webhookrx.yield_point import PIECE

#: Bytes at which what may follow in UTF-8 changes, and some between them.
EDGES = bytes.fromhex("00 22 41 5c 7f 80 8f 90 9f a0 a8 bf c0 c1 c2 c3 d8 df e0 e1 e2 ec ed ee ef f0 f1 f3 f4 f5 ff")

#: Sizes around the widths of vectors, and around what is done without the interpreter's lock.
SIZES = (*range(101), *range(PIECE - 17, PIECE + 18), 2 * PIECE + 5)

#: Each kind of escape, and each length in UTF-8.
CHARACTERS = 'a"\\\n\x01\x7f\x80é\u061c\u2028\u2027\u200f…\ud7ff\uffff😀'
BODIES = st.lists(
    st.tuples(
        st.sampled_from([*(char.encode() for char in CHARACTERS), b"\xff", b"\xe2\x80", b"\xf0\x9f\x98", b"[", b","]),
        st.integers(1, 20),
    )
).map(lambda parts: b"".join(unit * times for unit, times in parts))


class CompiledCase(SynchronousTestCase):
    """A case that needs the compiled path."""

    def setUp(self) -> None:
        if compiled is None:
            raise SkipTest("the compiled path is not in use")
        self.compiled: Compiled = compiled

    def check(self, body: bytes) -> None:
        """Check what is made of a body, and of its text."""
        self.check_plain(body)
        text = body.decode("utf-8", "replace")
        json = encode(text)
        cleaned = escape_misleading(json)
        self.assertEqual(b"<" + cleaned + b">", self.compiled.escape_text(json, b"<", b">", False, True))
        self.assertEqual(cleaned, self.compiled.escape_text(text.encode(), b'"', b'"', True, True))
        self.assertEqual(json, self.compiled.escape_text(text.encode(), b'"', b'"', True, False))

    def check_plain(self, body: bytes) -> None:
        """Check that a body is taken as text just if it is UTF-8 without misleading characters."""
        try:
            is_plain = set(MISLEADING).isdisjoint(body.decode())
        except UnicodeDecodeError:
            is_plain = False
        self.assertEqual(is_plain, self.compiled.line(body, *[b""] * 8, b"", b"", 0, True) is not None, body[-99:])


class CharactersTests(CompiledCase):
    """Whatever the bytes are, they become what Python makes of them."""

    def test_one_and_two_bytes(self) -> None:
        """All of them."""
        for first in range(256):
            self.check(bytes((first,)))
            for second in range(256):
                body = bytes((first, second))
                self.check_plain(body)

    def test_three_and_four_bytes(self) -> None:
        """All three at which the rules of UTF-8 change, and four that begin like four, with something behind."""
        lead = [byte for byte in EDGES if byte >= 0xE0]
        for body in (
            *map(bytes, itertools.product(EDGES, repeat=3)),
            *(bytes((*parts, 0x41)) for parts in itertools.product(lead, EDGES[4:], EDGES[4:], EDGES[4:])),
        ):
            self.check_plain(body)

    def test_each_character(self) -> None:
        """All there are, among those of the same length and on their own."""
        for start in range(0, sys.maxunicode, 64):
            text = "".join(chr(code) for code in range(start, start + 64) if not 0xD800 <= code < 0xE000)
            self.check(text.encode())
        for char in (*map(chr, range(0x3000)), "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"):
            self.check(char.encode())

    def test_not_utf_8(self) -> None:
        """What is no character stays as it is, though no caller gives that to be escaped."""
        for body in (b"\xff", b"\xe2\x80", b'"\xc2\x7f', b"\xed\xa0\x80\xe2\x80\xa8"):
            expected = body.replace(b"\x7f", rb"\u007f").replace("\u2028".encode(), rb"\u2028")
            self.assertEqual(expected, self.compiled.escape_text(body, b"", b"", False, True))

    @given(BODIES)
    def test_mixtures(self, body: bytes) -> None:
        """Whatever stands beside each other."""
        self.check(body)


class SizesTests(CompiledCase):
    """Where a text ends, or what is special in it stands, makes no difference."""

    def test_places(self) -> None:
        """Each character at the beginning and at the end of texts of each size."""
        for size in SIZES:
            for char in CHARACTERS if size <= 101 else '"\x7f\u2028😀':
                self.check(b"x" * size + char.encode())
                self.check(char.encode() + b"x" * size)

    def test_cut_characters(self) -> None:
        """A character that is cut at the end is not UTF-8, behind texts of each size."""
        for size in SIZES:
            for char in "é…😀":
                for cut in range(1, len(char.encode())):
                    body = b"x" * size + char.encode()[:cut]
                    self.check_plain(body)


class EndsTests(CompiledCase):
    """Nothing is read behind the end: the next page may not be touched, and a read there would end this process."""

    def setUp(self) -> None:
        super().setUp()
        if sanitizers.MODULE in os.environ:
            raise SkipTest("sanitizers look at each read themselves, and at addresses that no object has")
        self._pages: list[object] = []  # as long as an object may be in them

    def at_page_end(self, value: bytes) -> bytes:
        """Return an object that is equal to another but ends where a page does, without a NUL."""
        size = sys.getsizeof(value) - 1  # the NUL
        first = ctypes.c_char.from_buffer(mmap.mmap(-1, 2 * mmap.PAGESIZE))
        self._pages.append(first)
        guard = ctypes.addressof(first) + mmap.PAGESIZE
        self.assertEqual(0, ctypes.CDLL(None).mprotect(ctypes.c_void_p(guard), mmap.PAGESIZE, 0))
        ctypes.memmove(guard - size, id(value), size)
        copied = ctypes.cast(guard - size, ctypes.py_object).value
        self.assertEqual(value, copied)
        return cast(bytes, copied)

    def test_ends(self) -> None:
        """Texts of each size around the width of vectors, whole and cut, with each character at their end."""
        for size in range(50):
            for char in CHARACTERS:
                encoded = b"x" * size + char.encode()
                for cut in range(len(char.encode())):
                    body = self.at_page_end(encoded[: len(encoded) - cut] or b"x")
                    for option in (False, True):
                        self.compiled.escape_text(body, body, body, True, option)
                        self.compiled.escape_text(body, b"", b"", False, option)
                    self.compiled.compact_object(body)
                    for special in (b"", bytes(4096)):
                        self.compiled.line(body, *[body] * 7, b"id", b"", special, 0, True)

    def test_room_for_escapes(self) -> None:
        """A line has room for exactly what the escapes of its text take, whatever their sizes and places."""
        every = bytes(range(0x7F)) + "é€😀".encode()
        for size in range(100):
            for start in range(0, len(every), 7):
                body = (every[start:] + every)[:size].decode(errors="ignore").encode()
                line = self.compiled.line(body, *[b""] * 8, b"", b"", 0, True)
                text = escapes.encode_json(body.decode())
                self.assertEqual(b'000000,"MESSAGE":%b%d"}\n' % (text, len(body)), line)


class SameTests(CompiledCase):
    """With and without the compiled path, the same is made of large bodies."""

    def pure(self) -> None:
        """From now on, do all in Python."""
        for module in (escapes, encoders):
            self.patch(module, "compiled", None)

    def everything(self, body: bytes) -> tuple[object, ...]:
        """Return all that is made of a body, as a message."""
        text, is_exact = json_body.body_text(body)
        values: dict[str, Value] = {"ISODATE": "now", "HOST": "é\u2028", "MESSAGE": text, "TAGS": ".source.\x7f"}
        message = Message(values, 1)
        routed = Message({"log": {"body": text}, "meta": {"a": "\u2028"}}, 1)
        return (
            text,
            is_exact,
            encode_line(message),
            encode_stored(message),
            encode_line(routed),
            encode_stored(routed),
        )

    def test_hostile_bodies(self) -> None:
        """Each of the most expensive bodies."""
        bodies = {name: shape(5 * PIECE) for name, shape in SHAPES.items()}
        made = {name: self.everything(body) for name, body in bodies.items()}
        self.pure()
        for name, body in bodies.items():
            for compiled_part, pure_part in zip(made[name], self.everything(body), strict=True):
                self.assertTrue(compiled_part == pure_part, name)

    def test_linear(self) -> None:
        """Ten mebibytes are done as fast as ten times one; a square of them would not end today."""
        for unit in ('"', "\\", "[", "\u2028", "a😀"):
            body = unit.encode() * (10 * 1024 * 1024 // len(unit.encode()))
            text, _, line, *_ = self.everything(body)
            self.assertEqual(len(body), len(cast(str, text).encode()))
            self.assertGreater(len(cast(bytes, line)), len(body))


class ArgumentsTests(CompiledCase):
    """What is no argument of theirs is an error, as in Python."""

    def test_types(self) -> None:
        """Another type, or one too many."""
        for call in (
            lambda: self.compiled.compact_object("a"),  # type: ignore[arg-type]
            lambda: self.compiled.escape_text(b"", "", b"", True, True),  # type: ignore[arg-type]
            lambda: self.compiled.escape_text(b"", b"", b"", True),  # type: ignore[call-arg]
        ):
            self.assertRaises(TypeError, call)
