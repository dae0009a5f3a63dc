"""
Tests for L{webhookrx.intake.head}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.head import Head, HeaderLines, Peer


class PeerTests(SynchronousTestCase):
    """The other end of a connection."""

    def test_name(self) -> None:
        """Its address names it in a log line, and C{unix} where it has none."""
        self.assertEqual("192.0.2.7", str(Peer("192.0.2.7", 40000, True)))
        self.assertEqual("unix", str(Peer("127.0.0.1", None, False)))


class HeadTests(SynchronousTestCase):
    """The head of a request."""

    def test_values(self) -> None:
        """The values of all lines of a name are found, in their order, whether they were collected before or not."""
        lines = HeaderLines(b"POST / HTTP/1.1\r\nX-One: 1\r\nAuthorization: a\r\nx-one:2 \r\n\r\n")
        self.assertEqual([(b"x-one", b"1"), (b"authorization", b"a"), (b"x-one", b"2")], list(lines))
        for prefetched in (None, {b"authorization": [b"a"]}):
            head = Head(b"POST", b"/", None, lines, Peer("192.0.2.7", 40000, True), prefetched)
            self.assertEqual([b"a"], head.values(b"authorization"))
            self.assertEqual([b"1", b"2"], head.values(b"x-one"))
            self.assertEqual([], head.values(b"x-forwarded-for"))
