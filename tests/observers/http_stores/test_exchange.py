"""How messages are divided into requests, what their bodies are, and what an answer means."""

from __future__ import annotations

import gzip
import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.http_stores.exchange import EXCERPT, HTTPAnswer
from webhookrx.observers.http_stores.http import PlainHTTP
from webhookrx.observers.http_stores.store import BatchLimits, Verdict

LINES = [b'{"MESSAGE":"one"}\n', b'{"MESSAGE":"two"}\n']

_lines = st.lists(st.binary(max_size=40).map(lambda text: text.replace(b"\n", b"") + b"\n"), max_size=40)


class CutTests(SynchronousTestCase):
    """By count and by size."""

    def test_count(self) -> None:
        """No request has more messages than it may."""
        self.assertEqual([(0, 2), (2, 4), (4, 5)], list(BatchLimits(messages=2).cut([b"x\n"] * 5)))

    def test_size(self) -> None:
        """No request is larger than it may be, unless one message is."""
        lines = [b"a" * 6, b"b" * 4, b"c", b"d" * 30, b"e", b"f"]

        self.assertEqual([(0, 2), (2, 3), (3, 4), (4, 6)], list(BatchLimits(size=10).cut(lines)))

    def test_nothing(self) -> None:
        """Without messages there is no request."""
        self.assertEqual([], list(BatchLimits().cut([])))

    @given(_lines, st.integers(1, 10), st.integers(1, 100))
    def test_all_in_order(self, lines: list[bytes], messages: int, size: int) -> None:
        """Each message is in one request, in order, within the limits; the rest after any request is cut the same."""
        bodies = BatchLimits(messages, size)
        cuts = list(bodies.cut(lines))

        self.assertEqual(lines, [line for begin, end in cuts for line in lines[begin:end]])
        for place, (begin, end) in enumerate(cuts):
            self.assertTrue(0 < end - begin <= messages)
            self.assertTrue(end - begin == 1 or sum(map(len, lines[begin:end])) <= size)
            again = [(begin + first, begin + last) for first, last in bodies.cut(lines[begin:])]
            self.assertEqual(cuts[place:], again)


class MakeTests(SynchronousTestCase):
    """Bodies by their format."""

    def test_ndjson(self) -> None:
        """One object a line."""
        self.assertEqual(b'{"MESSAGE":"one"}\n{"MESSAGE":"two"}\n', PlainHTTP().make(LINES).content)

    def test_json(self) -> None:
        """An array of objects."""
        content = PlainHTTP(format="json").make(LINES).content

        self.assertEqual([{"MESSAGE": "one"}, {"MESSAGE": "two"}], json.loads(content))
        self.assertNotIn(b"\n", content)

    def test_each(self) -> None:
        """One object, without a line end."""
        self.assertEqual(b'{"MESSAGE":"one"}', PlainHTTP(format="each").make(LINES[:1]).content)

    def test_lines(self) -> None:
        """Rendered texts, one a line."""
        self.assertEqual(b"one\ntwo\n", PlainHTTP(format="lines").make([b"one\n", b"two\n"]).content)

    def test_gzip(self) -> None:
        """A packed body unpacks to the same, and is the same each time."""
        packed = PlainHTTP(gzip=True).make(LINES)

        self.assertEqual(b"".join(LINES), gzip.decompress(packed.content))
        self.assertEqual(packed, PlainHTTP(gzip=True).make(LINES))


def key_of(store: PlainHTTP, lines: list[bytes]) -> bytes | None:
    """Return the idempotency key of a request."""
    return dict(store.make(lines).headers).get(b"Idempotency-Key")


class KeyTests(SynchronousTestCase):
    """The key names the messages."""

    def test_stable(self) -> None:
        """It is the same for the same messages, packed or not, today and after a restart."""
        key = b'"2b85fb9e605dc7db5a0135cccb6943f21e7d789525e08d97dcecdb115b10485d"'

        self.assertEqual([key] * 2, [key_of(PlainHTTP(gzip=packed), LINES) for packed in (False, True)])

    def test_different(self) -> None:
        """Other messages, fewer, or the same in another order have another key."""
        lines = [LINES, LINES[:1], LINES[1:], LINES[::-1]]

        self.assertEqual(4, len({key_of(PlainHTTP(), each) for each in lines}))

    def test_not_distinct(self) -> None:
        """If different messages may have the same text there is no key: the second would be taken for a duplicate."""
        self.assertIsNone(key_of(PlainHTTP(format="lines", distinct=False), [b"same\n"]))


class VerdictTests(SynchronousTestCase):
    """Stored, refused for good, or to be tried again."""

    def test_each_status(self) -> None:
        """2xx is stored; 400, 413 and 422 speak of the messages; all others may be mended by somebody."""
        for status in range(200, 600):
            with self.subTest(status):
                if status < 300:
                    expected = Verdict.STORED
                else:
                    expected = Verdict.REFUSED if status in (400, 413, 422) else Verdict.LATER

                self.assertIs(expected, PlainHTTP().read(HTTPAnswer(status), 2).verdict)


class DescribeTests(SynchronousTestCase):
    """One line for an operator."""

    def test_phrase(self) -> None:
        """The phrase is the standard's; a status that it does not have stands alone."""
        self.assertEqual("it answers 503 Service Unavailable", HTTPAnswer(503).describe())
        self.assertEqual("it answers 599", HTTPAnswer(599).describe())

    def test_hint(self) -> None:
        """Where an operator must do something the option is named."""
        for status, word in [
            (401, "token_file="),
            (403, "cert_file="),
            (404, "URL"),
            (415, "gzip="),
            (302, "redirect"),
        ]:
            with self.subTest(status):
                self.assertIn(word, PlainHTTP().read(HTTPAnswer(status), 2).code)

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
