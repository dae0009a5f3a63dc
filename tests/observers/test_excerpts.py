"""What another machine says, as it may be quoted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests import examples  # noqa: F401
from webhookrx.observers.excerpts import EXCERPT, excerpt_of


class ExcerptTests(SynchronousTestCase):
    """Its beginning, on one line."""

    def test_table(self) -> None:
        """White space is a blank; what can't be printed, or is not UTF-8, is an escape."""
        table: dict[bytes | str, str] = {
            "": "",
            " \r\n\t ": "",
            "no\r\n  such\ttopic": "no such topic",
            "a\x00b\x1b[2Jc\u202e": "a\\u0000b\\u001b[2Jc\\u202e",
            b"caf\xc3\xa9 \xff": "café \\xff",
            "x" * EXCERPT: "x" * EXCERPT,
            "x" * (EXCERPT + 1): "x" * EXCERPT + "…",
        }
        for words, shown in table.items():
            self.assertEqual(shown, excerpt_of(words))

    @given(st.binary(max_size=400) | st.text(max_size=400))
    def test_one_line(self, words: bytes | str) -> None:
        """Whatever was said, it is one short line that can be printed."""
        shown = excerpt_of(words)

        self.assertTrue(shown.isprintable())
        self.assertLessEqual(len(shown), 6 * EXCERPT + 1)
