"""
OTLP over HTTP in both encodings: each answer, and what a partial success means for messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twisted.trial.unittest import SynchronousTestCase

from tests.observers.http_stores.fake_collector import FakeCollector
from tests.observers.http_stores.played_http_store import HTTPStoreContract, Record, Row, answer, broken, cut
from webhookrx.errors import ConfigError, Rejected
from webhookrx.observers import packages
from webhookrx.observers.http_stores.exchange import HTTPAnswer, UnreadableAnswer
from webhookrx.observers.http_stores.http import REDIRECTION_HINT
from webhookrx.observers.http_stores.otlp import OTLP_SPEC, build_otlp, read_otlp
from webhookrx.observers.http_stores.store import Finding
from webhookrx.testing import make_message

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.exchange import StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore

URL = "http://127.0.0.1:4318"

STATUSES = (
    Row("204", answer(204), "stored"),
    Row("400", answer(400, b"\x08\x03\x12\x08bad data"), "rejected"),
    Row("413", answer(413), "rejected"),
    Row("400 of a proxy", answer(400, b"\r\n<html>The plain HTTP request was sent to HTTPS port"), "later"),
    Row("429", answer(429, retry_after="5"), "later"),
    *(Row(f"{status}", answer(status), "later") for status in (502, 503, 504, 500, 501, 401, 403, 404, 405, 415)),
    *(Row(f"{status}", answer(status), "later") for status in (201, 202, 302, 408, 422)),
)


class _Played(HTTPStoreContract):
    """Plays a collector."""

    url = URL
    spec = OTLP_SPEC
    once = False
    encoding: str

    def setUp(self) -> None:
        """Make a server."""
        super().setUp()
        self.server = FakeCollector()
        self.server.is_bad = lambda record: self.refused is not None and self.refused in record.body.string_value

    def read(self, args: Sequence[str], options: dict[str, str]) -> tuple[HTTPTarget, HTTPStore]:
        """Read the options."""
        return read_otlp(args, {"encoding": self.encoding, **options})

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """Let the server answer."""
        fields = {name.decode().lower(): value.decode() for name, value in self.client.headers[-1].items()}
        return answer(*self.server.handle(request.path, fields, request.content))

    def serve_half(self, request: StoreRequest) -> HTTPAnswer:
        """Let a part be taken before the rest fails."""
        half = len(self.server.records) + 3
        self.server.rejects = lambda record: len(self.server.records) >= half
        try:
            self.serve(request)
        finally:
            self.server.rejects = lambda record: False
        return answer(503)

    def stored_records(self) -> list[Record]:
        """Return the records."""
        return [
            Record(_attribute(record, "log.record.uid"), record.body.string_value) for record in self.server.records
        ]

    # -- partial success -----------------------------------------------------------------------------------------------

    def test_partial_success(self) -> None:
        """
        Where a server rejects some records without telling which, all of that request are rejected with its words, and
        nothing is sent again (opentelemetry-proto#404, #470; opentelemetry-collector#9243, #9260).
        """
        self.server.rejects = lambda record: record.body.string_value == "b"
        self.server.message = "timestamp too old"
        observer = self.opened_with(batch="3")

        outcomes = self.outcomes(observer, *"abcdef")

        self.assertEqual([Rejected] * 3 + [type(None)] * 3, [type(each) for each in outcomes])
        self.assertIn("1 of 3 records rejected, not told which: timestamp too old", str(outcomes[0]))
        self.assertEqual([3, 3], self.server.sizes)
        self.assertEqual([*"acdef"], self.stored_texts())

    def test_warning(self) -> None:
        """A partial success that rejects none is a success with a warning."""
        self.server.message = "slow down"
        observer = self.opened_with()

        self.assertIsNone(self.store(observer, "a", "b"))
        self.assertEqual(["a", "b"], self.stored_texts())

    def test_retry_after(self) -> None:
        """
        After 429, 502, 503 and 504 records are sent again, when Retry-After says so and not before
        (U{https://github.com/open-telemetry/opentelemetry-python/pull/5460}).
        """
        for status in (429, 502, 503, 504):
            with self.subTest(status):
                self.setUp()
                observer = self.opened_with()
                self.answer_with(answer(status, retry_after="4"))
                self.time.at(1.0, self.mend)
                began = self.time.now

                self.assertIsNone(self.store(observer, "a", "b"))

                self.assertEqual(2, len(self.client.requests))
                self.assertGreaterEqual(self.time.now - began, 4.0)
                self.assert_stored("a", "b")

    def test_small_requests(self) -> None:
        """No request has more than a hundred records, however many are to be sent."""
        observer = self.opened_with()

        self.assertIsNone(self.store(observer, *map(str, range(250))))
        self.assertEqual([100, 100, 50], self.server.sizes)

    # -- what is sent --------------------------------------------------------------------------------------------------

    def test_resource(self) -> None:
        """The resource is made by templates; records of one stay in their order."""
        observer = self.opened_with(resource="service.name=x,host.name=${HOST}")
        batch = [
            observer.prepare(make_message(text, {"HOST": host, "RCPTID": text}))
            for text, host in (("a", "one"), ("b", "two"), ("c", "one"))
        ]

        self.assertIsNone(observer.store(batch))

        self.assertEqual(["a", "c", "b"], self.stored_texts())
        self.assertEqual(
            [{"service.name": "x", "host.name": host} for host in ("one", "one", "two")], self.server.resources
        )

    def test_default_resource(self) -> None:
        """Without the option the service is this program; with an empty one there are no attributes."""
        self.store(self.opened_with(), "a")
        self.store(self.opened_with(resource=""), "b")

        self.assertEqual([{"service.name": "webhookrx"}, {}], self.server.resources)

    def test_own_id(self) -> None:
        """An id by a template is in its attribute."""
        observer = self.opened_with(id="${delivery}")

        self.assertIsNone(observer.store([observer.prepare(make_message("a", {"delivery": "77"}))]))
        self.assertEqual("77", _attribute(self.server.records[0], "log.record.uid"))

    def test_gzip(self) -> None:
        """A packed request holds the same."""
        self.assertIsNone(self.store(self.opened_with(gzip="yes"), "a", "b"))
        self.assertEqual(["a", "b"], self.stored_texts())


class JSONTests(_Played, SynchronousTestCase):
    """The JSON encoding."""

    encoding = "json"
    rows = (
        *STATUSES,
        Row("200", answer(200, {}), "stored"),
        Row("200 without a body", answer(200), "stored"),
        Row("200 with an empty partial success", answer(200, {"partialSuccess": {}}), "stored"),
        Row("warning", answer(200, {"partialSuccess": {"errorMessage": "slow down"}}), "stored"),
        Row("rejected", answer(200, {"partialSuccess": {"rejectedLogRecords": "1", "errorMessage": "x"}}), "rejected"),
    )
    nonsense = (
        answer(999),
        answer(200, b"<html>Welcome</html>"),
        answer(200, b"ok"),
        answer(200, []),
        answer(200, {"partialSuccess": {"rejectedLogRecords": 100_000}}),
        answer(200, {"partialSuccess": {"rejectedLogRecords": -1}}),
        answer(200, {"partialSuccess": {"rejectedLogRecords": "x"}}),
        cut(answer(200, {"partialSuccess": {"rejectedLogRecords": 1}})),
        broken(answer(200, {})),
        broken(answer(400, b"bad data")),
    )


class ProtobufTests(_Played, SynchronousTestCase):
    """The binary encoding."""

    encoding = "protobuf"
    rows = (
        *STATUSES,
        Row("200", answer(200), "stored"),
        Row("warning", answer(200, b"\x0a\x03\x12\x01x"), "stored"),
        Row("rejected", answer(200, b"\x0a\x05\x08\x01\x12\x01x"), "rejected"),
    )
    nonsense = (
        answer(200, {}),
        answer(200, b"<html>Welcome</html>"),
        answer(200, b"ok"),
        answer(200, b"\x0a\x03\x08\xe8\x07"),
        cut(answer(200, b"\x0a\x05\x08\x01\x12\x01x")),
        broken(answer(200)),
        broken(answer(400, b"bad data")),
    )


class OptionTests(SynchronousTestCase):
    """What is read of a spec string."""

    def problem(self, **options: str) -> str:
        """Return what is said."""
        error = self.assertRaises(ConfigError, build_otlp, "x", (URL,), options, "durable")
        return str(error)

    def test_promise(self) -> None:
        """The word of the next hop is "queued", unless the operator vouches for more."""
        for word in ("queued", "written", "durable"):
            _, store = read_otlp((URL,), {"next": word})
            self.assertEqual(word, store.promise)
            self.assertEqual(word == "durable", not store.promise_reason)
        _, store = read_otlp((URL,), {})
        self.assertEqual("queued", store.promise)
        self.assertIn("next=durable", store.promise_reason)

    def test_path(self) -> None:
        """The path of logs is put behind that of the URL, unless it is there."""
        for url, path in (
            (URL, "/v1/logs"),
            (f"{URL}/otlp", "/otlp/v1/logs"),
            (f"{URL}/otlp/", "/otlp/v1/logs"),
            (f"{URL}/x/v1/logs", "/x/v1/logs"),
        ):
            self.assertEqual(path, read_otlp((url,), {})[1].path)

    def test_hints(self) -> None:
        """A status is told with what an operator can look at."""
        _, store = read_otlp((URL,), {})
        for status in (300, 302, 399):
            self.assertEqual(REDIRECTION_HINT, _finding(store.read(answer(status), 1)).code)
        for status, hint in ((401, "token_file="), (404, "/v1/logs"), (413, "batch_size="), (415, "encoding=")):
            self.assertIn(hint, _finding(store.read(answer(status), 1)).code)
        for status in (400, 500):
            self.assertEqual("", _finding(store.read(answer(status), 1)).code)

    def test_defaults(self) -> None:
        """Nothing is packed; a partial success that says something of each record is kept whole."""
        for given in ({}, {"encoding": "protobuf"}):
            _, store = read_otlp((URL,), given)

            self.assertFalse(store.gzip)
            self.assertGreater(store.keep, 100 * 2000)

    def test_mistakes(self) -> None:
        """Wrong values are told with what is allowed."""
        for option, value, said in (
            ("batch", "101", "at most 100"),
            ("batch_size", "0", "1B or more"),
            ("encoding", "grpc", "json or protobuf"),
            ("next", "safe", "queued, written or durable"),
            ("resource", "x", "is not NAME=TEMPLATE"),
            ("resource", "a b=1", "a name has letters, digits and _ . / -"),
            ("id", "same", "a template with a macro"),
            ("token_file", "/nonexistent/token", "/nonexistent/token"),
        ):
            text = self.problem(**{option: value})
            self.assertIn(f"observer 'otlp': {option}", text)
            self.assertIn(said, text)

    def test_no_package(self) -> None:
        """Without the package, or with an old one, the JSON encoding works, and for the other there is a sentence."""

        def missing(name: str) -> str:
            raise packages.metadata.PackageNotFoundError(name)

        for version, said in ((missing, "needs the package"), (lambda name: "1.2", "needs a newer")):
            self.patch(packages.metadata, "version", version)
            build_otlp("x", (URL,), {}, "durable")
            text = self.problem(encoding="protobuf")

            self.assertIn(f"observer 'otlp': encoding=protobuf {said}", text)
            self.assertIn("pip install 'opentelemetry-proto>=1.45'", text)

    def test_unreadable_is_later(self) -> None:
        """An answer that can't be read is told in words of ours."""
        _, store = read_otlp((URL,), {})
        error = self.assertRaises(UnreadableAnswer, store.read, answer(200, b"secret"), 1)

        self.assertEqual("it answers 200 OK, but it is no JSON", str(error))


def _finding(reading: object) -> Finding:
    assert isinstance(reading, Finding)
    return reading


def _attribute(record: Any, name: str) -> str:
    (value,) = (each.value.string_value for each in record.attributes if each.key == name)
    assert isinstance(value, str)
    return value
