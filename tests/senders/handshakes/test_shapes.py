"""
Tests for L{webhookrx.senders.handshakes.shapes}.
"""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.handshake_definition import HARMLESS
from webhookrx.senders.handshakes.shapes import LONGEST, Shape, why_not_for_proofs

#: What signed bytes are made with, and a few texts that make them.
FORBIDDEN = ':{.= \t\r\n"}'
SIGNED = ("v0:1:{}", "{}", '{"a":1}', "1.{}", "hmacsha256={}", "a b", "a\n", "{", ":", ".", "=", "1", "")


class ShapeTests(SynchronousTestCase):
    """What is answered at all."""

    def test_usual(self) -> None:
        """Without a pattern, a value is printable ASCII, up to 1,024 characters of it."""
        shape = Shape()
        for text, fits in (
            ("a", True),
            ("Validation: testing <script>alert(1)</script>", True),
            ("x" * LONGEST, True),
            ("x" * (LONGEST + 1), False),
            ("", False),
            ("a\r\nb", False),
            ("a\n", False),
            ("\x7f", False),
            ("é", False),
        ):
            self.assertEqual(shape.fits(text), fits, repr(text[:20]))

    def test_whole(self) -> None:
        """A pattern is for the whole of a value, however it is written."""
        for pattern in ("^[a-z]{1,4}$", "[a-z]{1,4}", "[a-c]{4}|[a-z]{1,4}"):
            shape = Shape(pattern)
            for text, fits in (("abcd", True), ("abcd\n", False), ("abcde", False), (" abc", False), ("a.b", False)):
                self.assertEqual(shape.fits(text), fits, (pattern, text))

    def test_flags(self) -> None:
        """No pattern gets out of what is put around it."""
        self.assertRaises(ValueError, Shape, "a)|(.*")
        self.assertFalse(Shape("(?m)^a$").fits("a\nb"))

    def test_length(self) -> None:
        """No pattern lets a value be longer than is answered."""
        self.assertFalse(Shape("a*").fits("a" * (LONGEST + 1)))


class ProofShapeTests(SynchronousTestCase):
    """Which shapes a proof may have."""

    def test_safe(self) -> None:
        """Rows of characters and classes without what JSON and signed texts have."""
        for pattern in (
            "^[A-Za-z0-9_-]{1,128}$",
            "^[A-Za-z0-9+/]{1,512}$",
            "[0-9a-f]{8}-[0-9a-f]{4}",
            "^id_[a-z]{4}[0-9]{2,9}$",
            "^a$",
        ):
            self.assertIsNone(why_not_for_proofs(pattern), pattern)

    def test_unsafe(self) -> None:
        """All others, above all those that only look safe."""
        for pattern in (
            "",
            "^$",
            ".*",
            "^.{1,128}$",
            r"^\w{1,128}$",
            r"^\S{1,128}$",
            r"^[\w]{1,8}$",
            "^[^:{.= ]{1,128}$",
            "^[A-Za-z0-9._-]{1,128}$",
            "^[A-Za-z0-9:]{1,128}$",
            "^[A-Za-z0-9=]{1,128}$",
            "^[A-z]{1,8}$",
            "^[+-9]{1,8}$",
            "^[ -~]{1,8}$",
            "^[a-\u00ff]{1,8}$",
            "^[a-z]{1,8}|.$",
            "^[a-z]+$",
            "^[a-z]*$",
            "^[a-z]{1,}$",
            "^[a-z]{,8}$",
            "^[a-z]{1,1025}$",
            "^[a-z]{1,1000}[a-z]{1,1000}$",
            "^([a-z]{1,8})$",
            "(?i)^k{1,8}$",
            "(?s)^[a-z]$",
            "^[[:print:]]{1,8}$",
            "^[a-z]{8}{8}$",
            "^a b$",
            "^a.b$",
            "^a\\.b$",
            "^a$b$",
            "^[a-z]{1,8}\n$",
        ):
            self.assertIsNotNone(why_not_for_proofs(pattern), pattern)

    @given(st.from_regex(r"\A\^?(\[[ -~é]{1,6}\]|[ -~]){1,3}(\{[0-9,]{1,4}\})?\$?\Z"), st.text(max_size=8))
    def test_construction(self, pattern: str, text: str) -> None:
        """Whatever a pattern looks like: if it may be used for proofs, no text with a forbidden character fits it."""
        if why_not_for_proofs(pattern) is not None:
            return
        try:
            shape = Shape(pattern)
        except ValueError:
            return
        for sample in (text, *SIGNED, *(text + character for character in FORBIDDEN)):
            if shape.fits(sample):
                self.assertLessEqual(set(sample), HARMLESS, pattern)
        for character in map(chr, range(0x250)):
            if character not in HARMLESS:
                self.assertFalse(shape.fits(character), (pattern, character))

    def test_classes(self) -> None:
        """Of all classes of up to four characters, those that are said to be safe allow harmless ones alone."""
        safe = 0
        for size in range(1, 5):
            for items in map("".join, itertools.product("aZ9:-=.+ ", repeat=size)):
                if why_not_for_proofs(f"[{items}]") is not None:
                    continue
                safe += 1
                try:
                    shape = Shape(f"[{items}]")
                except ValueError:
                    continue  # a range that goes backwards can't be a shape
                allowed = set(filter(shape.fits, map(chr, range(0x80))))
                self.assertLessEqual(allowed, HARMLESS, items)
        self.assertGreater(safe, 500)
        for items in ("a:", ":a", "aa:", "a-Z:", "A-Z:-a", "a-z.", "a-z-z=", "+-9", "aZ9."):
            self.assertIsNotNone(why_not_for_proofs(f"^[{items}]{{1,8}}$"), items)

    def test_longest(self) -> None:
        """As many characters as are answered, and not one more."""
        for pattern, safe in (
            ("[a-z]{1,1000}[a-z]{24}", True),
            ("[a-z]{1,1000}[a-z]{25}", False),
            ("[a-z]{0}", False),
            ("a", True),
        ):
            self.assertEqual(why_not_for_proofs(pattern) is None, safe, pattern)

    def test_every_character(self) -> None:
        """In the shape that most have, no other character than the harmless ones has a place."""
        pattern = "^[A-Za-z0-9_+/-]{1,512}$"
        self.assertIsNone(why_not_for_proofs(pattern))
        shape = Shape(pattern)
        fitting = {chr(code) for code in range(0x11_0000) if not 0xD800 <= code < 0xE000 and shape.fits(chr(code))}
        self.assertEqual(fitting, set(HARMLESS))
        self.assertFalse(HARMLESS.intersection(FORBIDDEN))
        self.assertIsNone(re.search(r"[\s:{.=]", "".join(HARMLESS)))
