"""
Elasticsearch and OpenSearch: each answer of the bulk API, and the threads that tell how others lose documents.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.message.test_encoders import VALUES
from tests.observers.http_stores.bulk_rows import CREATED, LATER, NONSENSE, REJECTED, STORED, Items, as_answer, failed
from tests.observers.http_stores.fake_elasticsearch import (
    PARSING,
    QUEUE_FULL,
    BulkError,
    FakeElasticsearch,
    whole_error,
)
from tests.observers.http_stores.played_http_store import HTTPStoreContract, Record, Row, answer, cut
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.message.message import Message, Value
from webhookrx.observers.http_stores.bulk_answers import read_bulk
from webhookrx.observers.http_stores.elasticsearch import (
    ELASTICSEARCH_SPEC,
    build_elasticsearch,
    document,
    read_elasticsearch,
)
from webhookrx.observers.http_stores.exchange import HTTPAnswer
from webhookrx.observers.http_stores.store import Verdict
from webhookrx.testing import RECEIVED, make_message

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.exchange import StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore

URL = "http://127.0.0.1:9200/logs"


class _Played(HTTPStoreContract):
    """Plays a server whose documents are in an index."""

    url = URL
    spec = ELASTICSEARCH_SPEC
    secret_option = "api_key_file"
    name = "elasticsearch"

    def setUp(self) -> None:
        """Make a server."""
        super().setUp()
        self.server = FakeElasticsearch()
        self.server.judge = self.judge

    def judge(self, index: str, own_id: str, document: dict[str, Any]) -> BulkError | None:
        """Refuse what is to be refused."""
        return PARSING if self.refused is not None and self.refused in document["MESSAGE"] else None

    def read(self, args: Sequence[str], options: dict[str, str]) -> tuple[HTTPTarget, HTTPStore]:
        """Read the options."""
        return read_elasticsearch(self.name, args, options)

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """Let the server answer."""
        fields = {name.decode().lower(): value.decode() for name, value in self.client.headers[-1].items()}
        return as_answer(self.server.handle(request.path, fields, request.content))

    def serve_half(self, request: StoreRequest) -> HTTPAnswer:
        """Let its write queue be full from the middle on."""
        half = request.content.count(b"\n") // 4
        self.server.judge = lambda *_: QUEUE_FULL if len(self.server.documents) >= half else None
        try:
            return self.serve(request)
        finally:
            self.server.judge = self.judge

    def stored_records(self) -> list[Record]:
        """Return the documents."""
        return [Record(own_id, each["MESSAGE"]) for (_, own_id), each in self.server.documents.items()]

    def answer_with(self, answer: Any) -> None:
        """Give one answer to each request, for as many documents as it has."""
        if not isinstance(answer, Items):
            super().answer_with(answer)
            return
        is_stored = any(row.answer is answer and row.fate == "stored" for row in self.rows)

        def give(request: StoreRequest) -> HTTPAnswer:
            if is_stored:
                self.serve(request)
            return answer.of(request.content.count(b"\n") // 2)

        self.client.serve = give


class _ThreadTests(_Played):
    """What others have reported, and what is prevented here."""

    def items(self, **errors: BulkError) -> None:
        """Let documents with these texts fail."""
        self.server.judge = lambda index, own_id, document: errors.get(document["MESSAGE"])

    def test_full_queue_in_200(self) -> None:
        """
        An answer 200 with 429 items loses none of them: they are sent again, without those that are stored
        (vectordotdev/vector#2968, #14891, #25799).
        """
        observer = self.opened_with()
        self.items(b=QUEUE_FULL, d=QUEUE_FULL)
        mend = self.time.at
        mend(1.0, lambda: self.items())

        self.assertIsNone(self.store(observer, *"abcde"))

        self.assertEqual([*"acebd"], self.stored_texts())
        self.assertEqual(5, self.client.requests[0].content.count(b'"MESSAGE"'))
        self.assertEqual(2, self.client.requests[-1].content.count(b'"MESSAGE"'))

    def test_queue_stays_full(self) -> None:
        """While the queue stays full these documents are kept by the caller, and the others are settled."""
        observer = self.opened_with(retry_for="2s")
        self.items(b=QUEUE_FULL)

        outcomes = self.outcomes(observer, *"abc")

        self.assertEqual([type(None), Unavailable, type(None)], [type(each) for each in outcomes])
        self.assertIn("429, es_rejected_execution_exception, its write queue is full", str(outcomes[1]))
        self.assertEqual([*"ac"], self.stored_texts())

    def test_one_bad_document(self) -> None:
        """
        One document that the mapping refuses is rejected with its reason at once; the others are stored, and none of
        them is sent twice (fluent/fluent-bit#4630, #4905, fluent-bit-docs#2691).
        """
        observer = self.opened_with()
        self.items(c=PARSING)

        outcomes = self.outcomes(observer, *"abcde")

        self.assertEqual([2], [place for place, each in enumerate(outcomes) if each is not None])
        self.assertIsInstance(outcomes[2], Rejected)
        self.assertIn("item 400, document_parsing_exception: [1:57] failed to parse field [n]", str(outcomes[2]))
        self.assertEqual(1, len(self.client.requests))
        self.assertEqual([*"abde"], self.stored_texts())

    def test_bad_and_busy(self) -> None:
        """A bad document among documents for which there is no room is settled, and is not sent again with them."""
        observer = self.opened_with()
        self.items(b=PARSING, c=QUEUE_FULL)
        self.time.at(1.0, lambda: self.items())

        outcomes = self.outcomes(observer, *"abc")

        self.assertEqual([type(None), Rejected, type(None)], [type(each) for each in outcomes])
        self.assertEqual([*"ac"], self.stored_texts())

    def test_document_fails_all(self) -> None:
        """
        With a pipeline one document that can't be read makes the whole request 400; only that one is refused
        (elastic/elasticsearch#138445).
        """
        observer = self.opened_with(pipeline="p")

        def fail_all(request: StoreRequest) -> HTTPAnswer:
            if b"BAD" in request.content:
                return as_answer(whole_error(400, "x_content_parse_exception", "[1:2] Duplicate field"))
            return self.serve(request)

        self.server.pipelines.add("p")
        self.client.serve = fail_all

        self.assertEqual(["BAD"], self.deliver(observer, "a", "b", "BAD", "c"))
        self.assertEqual(["a", "b", "c"], self.stored_texts())

    def test_missing_pipeline(self) -> None:
        """A pipeline that does not exist refuses no document: once it is made, all are stored."""
        observer = self.opened_with(pipeline="p", retry_for="1s")

        self.assertEqual(["later"] * 2, self.fates(observer, "a", "b"))
        self.server.pipelines.add("p")

        self.assertEqual([], self.deliver(observer, "a", "b"))
        self.assertEqual(["a", "b"], self.stored_texts())

    def test_known(self) -> None:
        """What was stored by a try whose answer got lost counts as known, and is there once."""
        observer = self.opened_with()
        self.lose_answer()

        self.assertIsNone(self.store(observer, "a", "b"))

        self.assertEqual(["a", "b"], self.stored_texts())
        self.assertEqual(2, observer.counts.take().known)

    def test_without_ids(self) -> None:
        """With id=off documents have ids of the server, and one whose answer got lost is there twice."""
        observer = self.opened_with(id="off")
        self.lose_answer()

        self.assertIsNone(self.store(observer, "a"))

        self.assertEqual(["a", "a"], self.stored_texts())
        self.assertNotIn(b'"_id"', self.client.requests[0].content)

    def test_conflict_without_ids(self) -> None:
        """Without ids of ours a conflict does not say that the document is ours."""
        findings = read_bulk(failed(409, "version_conflict_engine_exception").of(1), 1, has_ids=False)

        assert isinstance(findings, list)
        self.assertEqual([Verdict.LATER], [each.verdict for each in findings])

    def test_long_answer(self) -> None:
        """An answer that is too long to be kept is never believed: fewer documents are sent, and all are stored."""
        observer = self.opened_with()

        def answer_at_length(request: StoreRequest) -> HTTPAnswer:
            whole = self.serve(request)
            return cut(whole) if request.content.count(b"\n") > 4 else whole

        self.client.serve = answer_at_length

        self.assertIsNone(self.store(observer, *"abcdefgh"))
        self.assertEqual([*"abcdefgh"], self.stored_texts())


class _RequestTests(_Played):
    """What is sent."""

    def test_asks_for_little(self) -> None:
        """The answer is asked to hold a status for each document, and of errors what is looked at."""
        observer = self.opened_with()
        self.server.judge = lambda index, own_id, document: PARSING if document["MESSAGE"] == "b" else None
        seen: list[bytes] = []

        def note(request: StoreRequest) -> HTTPAnswer:
            given = self.serve(request)
            seen.append(given.beginning)
            return given

        self.client.serve = note
        self.outcomes(observer, "a", "b")

        error = {
            "type": PARSING.type,
            "reason": PARSING.reason,
            "caused_by": {"type": "illegal_argument_exception"},
        }
        self.assertEqual(
            {"items": [{"create": {"status": 201}}, {"create": {"status": 400, "error": error}}]}, json.loads(seen[0])
        )

    def test_paths(self) -> None:
        """A constant index is in the path; pipeline and copies are in the query, behind the path of the URL."""
        for url, options, path in (
            ("http://h:9200/logs", {}, "/logs/_bulk"),
            ("http://h:9200/es/a/logs-1", {}, "/es/a/logs-1/_bulk"),
            ("http://h:9200/logs-%Y", {}, "/_bulk"),
            ("http://h:9200/es/logs-${SOURCE}", {}, "/es/_bulk"),
            ("http://h:9200/logs", {"pipeline": "a/b c".replace(" ", "+")}, "/logs/_bulk"),
        ):
            target, store = read_elasticsearch("elasticsearch", (url,), options)
            made, _, query = store.make([b""]).path.partition("?")

            self.assertEqual(path, made)
            self.assertTrue(query.startswith("filter_path=items.create.status,"))
            self.assertNotIn("logs", target.url)
            self.assertEqual(bool(options), "pipeline=a%2Fb%2Bc" in query)

    def test_active_shards(self) -> None:
        """The copies that must be there are asked for."""
        for text in ("all", "2"):
            _, store = read_elasticsearch("elasticsearch", (URL,), {"active_shards": text})
            self.assertIn(f"&wait_for_active_shards={text}", store.make([b""]).path)

    def test_index_of_the_day(self) -> None:
        """The index has the date of receipt in UTC, and values in lower case without wildcards."""
        self.url = "http://127.0.0.1:9200/logs-${HOST}-${SOURCE:-none}-%Y.%m.%d-%H-%%"
        self.assertRaises(ConfigError, self.make_observer)
        self.url = "http://127.0.0.1:9200/logs-${HOST}-${SOURCE:-none}-%Y.%m.%d-%H"
        observer = self.opened_with()

        observer.store([observer.prepare(make_message("a", {"HOST": '../Ä*?"<>|, #:B%d', "RCPTID": "1"}))])

        ((index, own_id),) = self.server.documents
        self.assertEqual(("logs-..____________b_d-none-2026.01.02-03", "1"), (index, own_id))

    def test_long_index(self) -> None:
        """A value that makes the index too long is cut: the index is still one that can be."""
        self.url = "http://127.0.0.1:9200/logs-${HOST}"
        observer = self.opened_with()

        self.assertIsNone(observer.store([observer.prepare(make_message("a", {"HOST": "x" * 1000}))]))
        self.assertEqual([255], [len(index) for index, _ in self.server.documents])

    def test_hostile_ids(self) -> None:
        """An id by a template is one that the server takes: not too long, and none where it is empty."""
        observer = self.opened_with(id="${delivery}")
        for number, own in enumerate(("é" * 1000, "", 'a"\\\n\x00', "plain")):
            message = make_message(f"m{number}", {"delivery": own})
            self.assertIsNone(observer.store([observer.prepare(message)]), own)

        self.assertEqual(["m0", "m1", "m2", "m3"], self.stored_texts())
        self.assertEqual(["made-1", 'a"\\\\n\\x00', "plain"], [own_id for _, own_id in self.server.documents][1:])

    def test_data_stream(self) -> None:
        """A document has the date that a data stream needs."""
        self.server.data_streams.add("logs")
        observer = self.opened_with()

        self.assertIsNone(self.store(observer, "a"))
        self.assertEqual("2026-01-02T03:04:05.678901Z", next(iter(self.server.documents.values()))["@timestamp"])

    def test_gzip(self) -> None:
        """A packed request holds the same."""
        observer = self.opened_with(gzip="yes")

        self.assertIsNone(self.store(observer, "a", "b"))
        self.assertEqual(["a", "b"], self.stored_texts())

    def test_key(self) -> None:
        """An API key goes by its scheme, a token by that of OAuth."""
        path = self.secret_file("c2VjcmV0")
        for option, scheme in (("api_key_file", b"ApiKey "), ("token_file", b"Bearer ")):
            observer = self.opened_with(**{option: path})
            self.store(observer, option)

            self.assertEqual(scheme + b"c2VjcmV0", self.client.headers[-1][b"Authorization"])

    def test_no_words_with_a_key(self) -> None:
        """Once a key was sent no text of the server is quoted, not even the type of an exception that is not known."""
        observer = self.opened_with(api_key_file=self.secret_file("c2VjcmV0"), retry_for="0s")
        for response, shown in (
            (failed(400, "document_parsing_exception", "c2VjcmV0"), "item 400, document_parsing_exception"),
            (failed(400, "c2VjcmV0", "c2VjcmV0"), "item 400"),
            (as_answer(whole_error(403, "c2VjcmV0", "c2VjcmV0")), "it answers 403 Forbidden"),
        ):
            self.answer_with(response)
            (outcome,) = self.outcomes(observer, "a")

            self.assertIn(shown, str(outcome))
            self.assertNotIn("c2VjcmV0", str(outcome))


class ElasticsearchTests(_ThreadTests, _RequestTests, SynchronousTestCase):
    """Each answer, what every store keeps to, and the tests above."""

    rows = (
        *(Row(name, each, "stored") for name, each in STORED),
        *(Row(name, each, "rejected") for name, each in REJECTED),
        *(Row(name, each, "later") for name, each in LATER),
    )
    nonsense = NONSENSE


class OpenSearchTests(_Played, SynchronousTestCase):
    """The same by the other name, with a token."""

    name = "opensearch"
    secret_option = "token_file"
    rows = (Row("201", Items(CREATED), "stored"), *(Row(name, each, "rejected") for name, each in REJECTED[:3]))
    nonsense = (answer(200, b"{}"),)


class DocumentTests(SynchronousTestCase):
    """What a document holds."""

    def test_source_form(self) -> None:
        """It is the JSON line, with the time of receipt in front."""
        made = json.loads(document(make_message("hi", {"n": 1})))

        self.assertEqual(["@timestamp", "ISODATE", "HOST", "MESSAGE", "SOURCEIP", "n"], list(made))
        self.assertEqual("2026-01-02T03:04:05.678901Z", made["@timestamp"])

    def test_router_form(self) -> None:
        """In the router form the time is that of the message, if it says one."""
        for moment, shown in ((1_000_000_000, "1970-01-01T00:00:01.000000Z"), (0, "2026-01-02T03:04:05.678901Z")):
            made = json.loads(
                document(Message({"log": {"body": "x", "time_unix_nano": moment}, "meta": {"id": "1"}}, RECEIVED))
            )
            self.assertEqual(["@timestamp", "log", "meta"], list(made))
            self.assertEqual(shown, made["@timestamp"])

    def test_own_timestamp(self) -> None:
        """A sender's own @timestamp, which may be anything, is kept under another name."""
        message = make_message("hi", {"@timestamp": "hostile"})
        made = json.loads(document(message))

        self.assertEqual("2026-01-02T03:04:05.678901Z", made["@timestamp"])
        self.assertEqual("hostile", made["webhook.@timestamp"])
        self.assertEqual("hostile", message.values["@timestamp"])

    @given(st.dictionaries(st.text(), VALUES, max_size=5), st.dictionaries(st.text(), VALUES, max_size=5))
    def test_any_message(self, log: dict[str, Value], meta: dict[str, Value]) -> None:
        """Whatever messages hold, each is an action and a document that the server can read, with the date it needs."""
        server = FakeElasticsearch()
        server.data_streams.add("logs")
        _, store = read_elasticsearch("elasticsearch", (URL,), {})
        messages = [
            Message({**log, "RCPTID": "1"}, RECEIVED),
            Message({"log": log, "meta": {**meta, "id": "2"}}, RECEIVED),
        ]
        request = store.make([store.render(message) for message in messages])

        response = server.handle(request.path, {"content-type": store.content_type}, request.content)

        self.assertEqual({"items": [{"create": {"status": 201}}] * 2}, response.body)
        self.assertEqual(["1", "2"], [own_id for _, own_id in server.documents])

    def test_one_line(self) -> None:
        """Whatever a sender wrote, action and document are a line each."""
        _, store = read_elasticsearch("elasticsearch", ("http://h/logs-${HOST}",), {"id": "${HOST}"})
        made = store.render(make_message("a\nb\u2028\x85", {"HOST": "a\nb\u2028\x85\r"}))

        self.assertEqual(2, len(made.decode().splitlines()))
        self.assertEqual("a\nb\u2028\x85", json.loads(made.splitlines()[1])["MESSAGE"])


class MistakeTests(SynchronousTestCase):
    """Spec strings that can't be used."""

    def test_right(self) -> None:
        """One that can be used makes an observer, which tells a spool what it needs."""
        observer = build_elasticsearch("opensearch", "x", (URL,), {"batch": "7", "batch_size": "1GiB"}, "durable")

        self.assertEqual((7, 64 * 1024 * 1024, 0.0), observer.wants)
        self.assertEqual(("durable", ""), (observer.promise, observer.promise_reason))

    def problem(self, url: str, **options: str) -> str:
        """Return what is said."""
        error = self.assertRaises(ConfigError, build_elasticsearch, "opensearch", "x", (url,), options, "durable")
        return str(error)

    def test_no_index(self) -> None:
        """A URL without an index is told how to write one."""
        for url in ("", "http://h:9200", "http://h:9200/", "http://h:9200/logs/", "http://h/logs?pretty", "logs"):
            self.assertIn("takes the URL of a server and an index, such as opensearch:https://", self.problem(url))

    def test_index(self) -> None:
        """An index that no server takes is told, and which can be."""
        for name in ("Logs", "_logs", "-a", "${SOURCE}", "a,b", "a*", "logs-$(format-json)", "x" * 256, "%d-${X"):
            text = self.problem(f"http://h:9200/{name}")
            self.assertTrue(text.startswith("observer 'opensearch': the index "), text)

    def test_date(self) -> None:
        """Other parts of a date are refused, and those that can be are told."""
        self.assertIn("column 6: behind % comes a part of the date, %Y, %m", self.problem("http://h:9200/logs-%S"))

    def test_password(self) -> None:
        """A password in the URL is refused, and not quoted."""
        for url in ("http://user:pa55@h:9200/logs", "http://user:pa55@h/LOGS"):
            text = self.problem(url)
            self.assertIn("no user or password in the URL", text)
            self.assertNotIn("pa55", text)

    def test_options(self) -> None:
        """Wrong values are told with what is allowed."""
        for option, value in (
            ("active_shards", "0"),
            ("active_shards", "none"),
            ("pipeline", "a b"),
            ("id", "same"),
            ("id", "${"),
            ("batch", "0"),
            ("api_key_file", "/nonexistent/key"),
        ):
            self.assertIn(option, self.problem(URL, **{option: value}))

    def test_plaintext(self) -> None:
        """A key does not go unencrypted to another machine."""
        for option in ("api_key_file", "token_file", "headers_file"):
            text = self.problem("http://192.0.2.1:9200/logs", **{option: "key"})
            self.assertIn("would show its secret", text)

    def test_two_keys(self) -> None:
        """An API key and a token would both set the same field."""
        path = self.mktemp()
        with open(path, "w") as file:
            file.write("c2VjcmV0\n")

        text = self.problem(URL, api_key_file=path, token_file=path)

        self.assertIn("api_key_file= and token_file= both set Authorization", text)
