"""The plain http observer as a store: nothing is lost, and nothing is refused that is good."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twisted.trial.unittest import SynchronousTestCase

from tests.observers.http_stores.played_http_store import HTTPStoreContract, Record, Row, answer, broken
from webhookrx.observers.http_stores.exchange import HTTPAnswer, NoAnswer
from webhookrx.observers.http_stores.http import HTTP_SPEC, PlainHTTP, read_http
from webhookrx.observers.http_stores.store import Verdict

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.exchange import StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore


LINES = [b'{"MESSAGE":"one"}\n', b'{"MESSAGE":"two"}\n']


class PlainStoreTests(HTTPStoreContract, SynchronousTestCase):
    """A server of which nothing is known but HTTP."""

    url = "http://127.0.0.1:8080/in"
    spec = HTTP_SPEC
    once = False
    rows = (
        *(Row(f"{status}", answer(status), "stored") for status in (200, 201, 202, 204)),
        *(Row(f"{status}", answer(status), "rejected") for status in (400, 413, 422)),
        *(Row(f"{status}", answer(status), "later") for status in (302, 401, 403, 404, 405, 415, 429, 500, 503)),
        Row("503 with Retry-After", answer(503, retry_after="20"), "later"),
    )
    nonsense = (answer(999), broken(answer(503)))

    def read(self, args: Sequence[str], options: dict[str, str]) -> tuple[HTTPTarget, HTTPStore]:
        """Read the options."""
        return read_http(args, options)

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """Store lines of JSON."""
        lines = [json.loads(line) for line in request.content.splitlines()]
        if self.refused is not None and any(self.refused in line["MESSAGE"] for line in lines):
            return answer(400, b"no")
        self.records += [Record(line["RCPTID"], line["MESSAGE"]) for line in lines]
        return answer(204)

    def serve_half(self, request: StoreRequest) -> HTTPAnswer:
        """Store the first half of the lines."""
        lines = request.content.splitlines(keepends=True)
        self.serve(request._replace(content=b"".join(lines[: len(lines) // 2])))
        raise NoAnswer("the connection was closed without an answer")


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
