"""
Texts as JSON strings, in pieces or not.
"""

from __future__ import annotations

import json

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.http_stores.json_texts import json_pieces, json_text, raw_text, text_pieces
from webhookrx.yield_point import PIECE

SHORT = 'a"\\\n\x00\x7f é\u2028😀'
LONG = SHORT * (PIECE // 2)


class TextTests(SynchronousTestCase):
    """Every way is valid JSON of the text."""

    def test_texts(self) -> None:
        """Short and long ones, and those as long as one piece, come back as they were."""
        for text in ("", SHORT, LONG, "x" * PIECE, "x" * (PIECE + 1), "é" * PIECE):
            self.assertEqual(text, json.loads(json_text(text)))
            self.assertEqual(text, json.loads(b"".join(text_pieces(text))))
            self.assertEqual(text, json.loads(b"".join(json_pieces(text.encode()))))
            self.assertEqual([text], json.loads(msgspec.json.encode([raw_text(text)])))

    def test_raw(self) -> None:
        """Only a long text is JSON already."""
        self.assertIs(SHORT, raw_text(SHORT))
        self.assertIsInstance(raw_text(LONG), msgspec.Raw)

    def test_pieces(self) -> None:
        """A long text is in pieces that are worked on one by one, none of them cut within a character."""
        for pieces in (text_pieces(LONG), json_pieces(LONG.encode())):
            self.assertGreater(len(pieces), 5)
            self.assertLess(max(map(len, pieces)), 7 * PIECE)
            for piece in pieces:
                piece.decode()
