"""
Tests for L{webhookrx.intake.head}.
"""

from __future__ import annotations

import random

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

    def test_as_lines(self) -> None:
        """What is found by its name is what going through all lines finds, whatever is like it elsewhere."""
        chance = random.Random(14)
        names = [b"A", b"a", b"A-B", b"B", b"a_b"]
        found = 0
        for _ in range(2000):
            lines = [
                chance.choice(names)
                + b":"
                + b"".join(chance.choices([b" ", b"a:", b"\t", b"B", b"\xc3", b"a-b:"], k=3))
                for _ in range(chance.randrange(5))
            ]
            headers = HeaderLines(b"\r\n".join([b"POST /?a:=b: HTTP/1.1", *lines, b"", b""]))
            for name in (b"a", b"a-b", b"b", b"-b"):
                expected = [value for key, value in headers if key == name]
                self.assertEqual(expected, headers.values(name), headers.block)
                found += len(expected)
        self.assertGreater(found, 1000)
