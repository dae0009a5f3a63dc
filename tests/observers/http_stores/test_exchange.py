"""What is known of an answer, and how it is told."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.excerpts import EXCERPT
from webhookrx.observers.http_stores.exchange import CutAnswer, Extent, HTTPAnswer, UnreadableAnswer


class BodyTests(SynchronousTestCase):
    """What decides by a body gets all of it, or none."""

    def test_whole(self) -> None:
        """A whole body is there, and as JSON."""
        answer = HTTPAnswer(200, beginning=b'{"a":[1,null]}')

        self.assertEqual((b'{"a":[1,null]}', {"a": [1, None]}), (answer.body, answer.json()))

    def test_not_whole(self) -> None:
        """One that is longer than what is kept, or breaks off, is not, though its beginning may be JSON."""
        for extent, error in ((Extent.LONG, CutAnswer), (Extent.BROKEN, UnreadableAnswer)):
            answer = HTTPAnswer(400, beginning=b"{}", extent=extent)
            with self.subTest(extent):
                self.assertRaises(error, lambda answer=answer: answer.body)
                self.assertRaises(error, answer.json)

    def test_not_json(self) -> None:
        """What is not JSON is an error that quotes none of it."""
        for body in (b"", b"hunter2", b'{"a":1}{"b":2}', b"[" * 100_000, b'"\xff"', b"{'a':1}", b"NaN"):
            with self.subTest(body[:20]):
                error = self.assertRaises(UnreadableAnswer, HTTPAnswer(502, beginning=body).json)

                self.assertEqual("it answers 502 Bad Gateway, but not in JSON", str(error))


class DescribeTests(SynchronousTestCase):
    """One line for an operator."""

    def test_phrase(self) -> None:
        """The phrase is the standard's; a status that it does not have stands alone."""
        self.assertEqual("it answers 503 Service Unavailable", HTTPAnswer(503).describe())
        self.assertEqual("it answers 599", HTTPAnswer(599).describe())

    def test_excerpt(self) -> None:
        """The beginning of its body follows, on one line, without control characters."""
        text = HTTPAnswer(400).describe(words=b'{"error":\r\n  "\x1b[2J\xff\x00bad\xe2\x80\xae"}')

        self.assertEqual(r'it answers 400 Bad Request: {"error": "\u001b[2J\xff\u0000bad\u202e"}', text)

    def test_long_excerpt(self) -> None:
        """A long body is cut off."""
        text = HTTPAnswer(400).describe(words=b"a" * 4096)

        self.assertTrue(text.endswith(": " + "a" * EXCERPT + "…"))

    def test_hint_first(self) -> None:
        """What an operator can check stands before the words of the server."""
        self.assertEqual("it answers 403 Forbidden (code 7): no", HTTPAnswer(403).describe("code 7", "no"))
