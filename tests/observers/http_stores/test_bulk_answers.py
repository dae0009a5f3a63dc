"""
What is said of answers of the bulk API; what each means is in C{test_elasticsearch}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.observers.http_stores.bulk_rows import Items, as_answer, failed
from tests.observers.http_stores.fake_elasticsearch import whole_error
from tests.observers.http_stores.played_http_store import answer
from webhookrx.observers.http_stores.bulk_answers import read_bulk
from webhookrx.observers.http_stores.elasticsearch import read_elasticsearch
from webhookrx.observers.http_stores.exchange import HTTPAnswer, UnreadableAnswer
from webhookrx.observers.http_stores.http import REDIRECTION_HINT
from webhookrx.observers.http_stores.store import Finding, Verdict

URL = "http://127.0.0.1:9200/logs"


class HintTests(SynchronousTestCase):
    """What is said of an answer."""

    def finding(self, given: HTTPAnswer) -> Finding:
        """Return what is found of one document."""
        found = read_bulk(given, 1, has_ids=True)
        return found if isinstance(found, Finding) else found[0]

    def test_statuses(self) -> None:
        """A status without words of the API is told with what an operator can look at."""
        for status in (300, 302, 399):
            self.assertEqual(REDIRECTION_HINT, self.finding(answer(status)).code)
        for status, hint in (
            (401, "api_key_file="),
            (403, "rights"),
            (404, "URL"),
            (413, "batch_size="),
            (415, "gzip="),
        ):
            self.assertIn(hint, self.finding(answer(status)).code)
        for status in (299, 400, 500):
            self.assertEqual("", self.finding(answer(status)).code)

    def test_whole(self) -> None:
        """An error of the whole request is told by its type, if that is known, and in the server's words."""
        known = self.finding(as_answer(whole_error(429, "circuit_breaking_exception", "Data too large")))
        unknown = self.finding(as_answer(whole_error(401, "exception_of_tomorrow", "why")))

        self.assertEqual("circuit_breaking_exception, the server is short of memory", known.code)
        self.assertEqual("Data too large", known.words)
        self.assertEqual("look at api_key_file=, token_file= and headers_file=", unknown.code)
        self.assertEqual("why", unknown.words)

    def test_items(self) -> None:
        """An error of a document is told by status, type and what to look at, and in the server's words."""
        missing = self.finding(failed(404, "index_not_found_exception", "no such index [logs]").of(1))
        bare = self.finding(Items({"status": 400, "error": {"type": "document_parsing_exception"}}).of(1))

        self.assertIn("item 404, index_not_found_exception, the index does not exist", missing.code)
        self.assertEqual("no such index [logs]", missing.words)
        self.assertEqual(Finding(Verdict.REFUSED, "item 400, document_parsing_exception", ""), bare)

    def test_nonsense(self) -> None:
        """An answer 200 that is none of the bulk API is told as that, and nothing of it is quoted."""
        for content in (
            b"",
            b"<html>secret</html>",
            b'{"items":[{"create":{"status":"secret"}}]}',
            b"\xff",
            b"[" * 100_000,
        ):
            error = self.assertRaises(UnreadableAnswer, self.finding, answer(200, content))

            self.assertEqual("it answers 200 OK, but not as the bulk API does", str(error))

    def test_kept(self) -> None:
        """What is kept of an answer holds one for 5,000 documents that all fail with a long reason."""
        _, store = read_elasticsearch("elasticsearch", (URL,), {})
        longest = failed(400, "document_parsing_exception", "x" * 700).of(store.limits.messages)

        self.assertGreater(store.keep, len(longest.beginning))
        self.assertFalse(store.gzip)
