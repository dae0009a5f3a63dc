"""
Tests for L{webhookrx.intake.reply}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.reply import Reply, is_header_value


class ReplyTests(SynchronousTestCase):
    """An answer to one request."""

    def test_header_values(self) -> None:
        """A header holds printable ASCII with nothing around it, and no end of a line."""
        for text, fits in (
            ("", True),
            ("a", True),
            ("https://a.example, *", True),
            (" a", False),
            ("a ", False),
            ("a\tb", False),
            ("a\r\nX-Other: b", False),
            ("a\nb", False),
            ("a\0", False),
            ("a\x7f", False),
            ("ä", False),
            ("a\u2028b", False),
        ):
            self.assertEqual(is_header_value(text), fits, repr(text))

    def test_no_second_line(self) -> None:
        """No answer can be made whose header or content type would end its line."""
        for made in (
            lambda: Reply(200, headers=(("X-A", "b\r\nX-C: d"),)),
            lambda: Reply(200, headers=(("X-A", "b"), ("X-B", "c\n"))),
            lambda: Reply(200, content_type="text/plain\r\nX-C: d"),
        ):
            self.assertRaises(ValueError, made)
        self.assertEqual(Reply(200, headers=(("X-A", "b"),)).headers, (("X-A", "b"),))
