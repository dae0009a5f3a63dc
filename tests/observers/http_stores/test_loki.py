"""
Loki: each answer of the push API, and the threads that tell how others lose entries.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.message.test_encoders import VALUES
from tests.observers.http_stores.fake_loki import TOO_FAR_BEHIND, TOO_LONG, TOO_OLD, FakeLoki, LokiEntry
from tests.observers.http_stores.played_http_store import HTTPStoreContract, Record, Row, answer, broken, cut
from webhookrx.errors import ConfigError, Rejected
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message, Value
from webhookrx.observers.http_stores.exchange import HTTPAnswer
from webhookrx.observers.http_stores.http import REDIRECTION_HINT
from webhookrx.observers.http_stores.loki import LOKI_SPEC, build_loki, read_loki
from webhookrx.observers.http_stores.store import Finding
from webhookrx.testing import RECEIVED, make_message

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.exchange import StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore

URL = "http://127.0.0.1:3100"

ROWS = (
    Row("204", answer(204), "stored"),
    *(
        Row(words[:40], answer(400, words.encode()), "rejected")
        for words in (
            TOO_OLD,
            TOO_LONG,
            TOO_FAR_BEHIND.format(1, 1),
            "entry with timestamp … ignored, reason: 'entry out of order' for stream: {}",
            "stream '{}' has label value too long: 'x'",
            "stream '{}' has structured metadata too large: '70000' bytes, limit: '65536' bytes. Please see …",
        )
    ),
    Row("413", answer(413, b"<html>413 Request Entity Too Large</html>"), "rejected"),
    *(
        Row(words[:40], answer(400, words.encode()), "later")
        for words in (
            "stream '{}' includes structured metadata, but this feature is disallowed. Please see `limits_config…",
            "entry for stream '{}' has 16 label names; limit 15",
            "missing required labels team for user fake",
            "ingestion blocked for user fake until '2026-12-01T00:00:00Z' with status code '400'",
            "entry for stream '{}' has timestamp too new: 2026-12-01T00:00:00Z",
            "<html>The plain HTTP request was sent to HTTPS port</html>",
        )
    ),
    Row("blocked", answer(260, b"ingestion blocked for user fake until 2026-12-01"), "later"),
    Row("rate limit", answer(429, b"Ingestion rate limit exceeded for user fake"), "later"),
    Row("rate limit of a stream", answer(429, b"Per stream rate limit exceeded (limit: 3MB/sec)"), "later"),
    Row("streams", answer(429, b"Maximum active stream limit exceeded", retry_after="3"), "later"),
    *(Row(f"{status}", answer(status), "later") for status in (200, 202, 302, 401, 403, 404, 405, 415, 422)),
    *(Row(f"{status}", answer(status), "later") for status in (500, 502, 503, 504)),
)


class LokiTests(HTTPStoreContract, SynchronousTestCase):
    """Each answer, what every store keeps to, and what others have reported."""

    url = URL
    spec = LOKI_SPEC
    rows = ROWS
    nonsense = (
        answer(999),
        answer(200, b"<html>Welcome</html>"),
        broken(answer(500)),
        broken(answer(400, TOO_OLD.encode())),
        cut(answer(400, TOO_OLD.encode())),
    )

    def setUp(self) -> None:
        """Make a server."""
        super().setUp()
        self.server = FakeLoki()
        self.server.judge = self.judge

    def judge(self, entry: LokiEntry) -> str:
        """Refuse what is to be refused."""
        return TOO_LONG if self.refused is not None and self.refused in entry.line else ""

    def read(self, args: Sequence[str], options: dict[str, str]) -> tuple[HTTPTarget, HTTPStore]:
        """Read the options."""
        return read_loki(args, options)

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """Let the server answer."""
        fields = {name.decode().lower(): value.decode() for name, value in self.client.headers[-1].items()}
        return answer(*self.server.handle(request.path, fields, request.content))

    def serve_half(self, request: StoreRequest) -> HTTPAnswer:
        """Let the first half of the entries be taken, and the rest be lost in an ingester."""
        whole = json.loads(request.content)
        for stream in whole["streams"]:
            stream["values"] = stream["values"][: len(stream["values"]) // 2]
        self.serve(request._replace(content=json.dumps(whole).encode()))
        return answer(500, b"at least 2 live replicas required, could only find 1")

    def stored_records(self) -> list[Record]:
        """Return the entries."""
        return [Record(dict(each.metadata)["id"], json.loads(each.line)["MESSAGE"]) for each in self.server.entries]

    # -- what others have reported ---------------------------------------------------------------------------------

    def test_late_entry(self) -> None:
        """
        One late entry does not make others be dropped: they are stored, once, and it is rejected with Loki's reason
        (vectordotdev/vector#20706, #3057 with its "2 out of 4"; fluent/fluent-bit#3785).
        """
        self.server.judge = lambda entry: TOO_FAR_BEHIND.format(2, 4) if "late" in entry.line else ""
        observer = self.opened_with()

        outcomes = self.outcomes(observer, "a", "late 1", "b", "late 2")

        self.assertEqual([type(None), Rejected] * 2, [type(each) for each in outcomes])
        self.assertIn("entry too far behind", str(outcomes[1]))
        self.assertEqual(["a", "b"], self.stored_texts())

    def test_limit_within_bad_request(self) -> None:
        """An entry for which there is no room now, beside a bad one, is not refused with it."""
        observer = self.opened_with(retry_for="0s")

        def serve(request: StoreRequest) -> HTTPAnswer:
            if b"BAD" in request.content:
                return answer(400, TOO_LONG.encode())
            return answer(429, b"Per stream rate limit exceeded (limit: 3MB/sec) while attempting to ingest")

        self.client.serve = serve

        self.assertEqual(["later", "rejected", "later"], self.fates_in_turn(observer, "a", "BAD", "b"))

    def fates_in_turn(self, observer: object, *texts: str) -> list[str]:
        """Return the fates of messages that are offered one by one, as far as one batch goes no further."""
        return [fate for text in texts for fate in self.fates(observer, text)]

    def test_blocked_with_260(self) -> None:
        """Loki's 260, by which it says that it drops everything, is no success."""
        self.answer_with(answer(260, b"ingestion blocked"))
        observer = self.opened_with(retry_for="0s")
        (outcome,) = self.outcomes(observer, "a")

        self.assertIn("260", str(outcome))
        self.assertIn("Loki answers 204 for what it takes", str(outcome))

    def test_no_structured_metadata(self) -> None:
        """Where structured metadata is not taken no message is refused, and the error says what to do."""
        self.server.allows_metadata = False
        observer = self.opened_with(retry_for="0s")
        outcomes = self.outcomes(observer, "a", "b")
        mended = self.opened_with(metadata="")

        self.assertIn("metadata= without a value sends none", str(outcomes[0]))
        self.assertIsNone(self.store(mended, "a", "b"))
        self.assertEqual(["a", "b"], [json.loads(each.line)["MESSAGE"] for each in self.server.entries])

    # -- what is sent ------------------------------------------------------------------------------------------------

    def test_streams(self) -> None:
        """One stream for each set of labels; entries in their order, with the time of receipt and the id."""
        observer = self.opened_with()
        messages = [
            make_message(text, {"SOURCE": source, "RCPTID": f"id {text}"}, RECEIVED + number)
            for number, (text, source) in enumerate((("a", "x"), ("b", "y"), ("c", "x")))
        ]

        self.assertIsNone(observer.store([observer.prepare(message) for message in messages]))

        (request,) = self.server.requests
        self.assertEqual(
            [{"source": "x", "host": "192.0.2.1"}, {"source": "y", "host": "192.0.2.1"}],
            [stream["stream"] for stream in request["streams"]],
        )
        values = request["streams"][0]["values"]
        assert isinstance(values, list)
        self.assertEqual([str(RECEIVED), str(RECEIVED + 2)], [value[0] for value in values])
        self.assertEqual([{"id": "id a"}, {"id": "id c"}], [value[2] for value in values])
        self.assertEqual("a", json.loads(values[0][1])["MESSAGE"])

    def test_router_form(self) -> None:
        """In the router form the labels are connector and host, and the time is still that of receipt."""
        observer = self.opened_with()
        meta = {"connector": {"name": "edge"}, "host": {"name": "web-1"}, "id": "id 1"}
        log = {"body": "x", "time_unix_nano": 5}

        self.assertIsNone(observer.store([observer.prepare(Message({"log": log, "meta": meta}, RECEIVED))]))

        (entry,) = self.server.entries
        self.assertEqual((("host", "web-1"), ("source", "edge")), entry.labels)
        self.assertEqual((str(RECEIVED), (("id", "id 1"),)), (entry.moment, entry.metadata))

    def test_labels(self) -> None:
        """Labels are templates, with commas in defaults; a value that is empty is left out, a long one is cut."""
        observer = self.opened_with(labels="a=${A},b=x${B:-1,2},c=${C}")
        for values in ({}, {"A": "é" * 3000}, {"C": "\n"}):
            self.assertIsNone(observer.store([observer.prepare(make_message("m", {"RCPTID": "1", **values}))]))

        self.assertEqual(
            [
                (("b", "x1,2"),),
                (("a", "é" * 1024), ("b", "x1,2")),
                (("b", "x1,2"), ("c", "\n")),
            ],
            [each.labels for each in self.server.entries],
        )

    def test_no_label(self) -> None:
        """Where all labels are empty the first is unknown: no message is without a stream."""
        observer = self.opened_with(labels="a=${A},b=${B}")

        self.assertIsNone(self.store(observer, "m"))
        self.assertEqual((("a", "unknown"),), self.server.entries[0].labels)

    def test_template(self) -> None:
        """With a template its text is the line."""
        observer = self.opened_with(template="${HOST} ${MESSAGE}", metadata="")

        self.assertIsNone(self.store(observer, "a\nb"))
        self.assertEqual(("192.0.2.1 a\\nb", ()), (self.server.entries[0].line, self.server.entries[0].metadata))

    def test_tenant(self) -> None:
        """The tenant goes with each request."""
        self.store(self.opened_with(tenant="team-a"), "a")
        self.store(self.opened_with(), "b")

        self.assertEqual(["team-a", None], self.server.tenants)

    def test_gzip(self) -> None:
        """A packed request holds the same."""
        self.assertIsNone(self.store(self.opened_with(gzip="yes"), "a"))
        self.assertEqual(["a"], self.stored_texts())

    def test_path(self) -> None:
        """The path of the API is put behind that of the URL, unless it is there."""
        for url, path in (
            (URL, "/loki/api/v1/push"),
            (f"{URL}/", "/loki/api/v1/push"),
            (f"{URL}/a/b/", "/a/b/loki/api/v1/push"),
            (f"{URL}/a/loki/api/v1/push", "/a/loki/api/v1/push"),
        ):
            self.assertEqual(path, read_loki((url,), {})[1].path)

    def test_hints(self) -> None:
        """A status is told with what an operator can look at."""
        _, store = read_loki((URL,), {})
        for status in (300, 302, 399):
            self.assertEqual(REDIRECTION_HINT, _finding(store.read(answer(status), 1)).code)
        for status, hint in (
            (401, "tenant="),
            (404, "/loki/api/v1/push"),
            (413, "batch_size="),
            (429, "ingestion_rate"),
        ):
            self.assertIn(hint, _finding(store.read(answer(status), 1)).code)
        for status in (400, 500):
            self.assertEqual("", _finding(store.read(answer(status), 1)).code)

    def test_kept(self) -> None:
        """What is kept of an answer holds an error with fifteen long labels, each byte as four; nothing is packed."""
        _, store = read_loki((URL,), {})

        self.assertGreater(store.keep, 15 * 2048 * 4)
        self.assertFalse(store.gzip)

    def test_promise(self) -> None:
        """Its word is "written", and why it is no more is said."""
        observer = self.make_observer()

        self.assertEqual("written", observer.promise)
        self.assertIn("write-ahead log", observer.promise_reason)


class EntryTests(SynchronousTestCase):
    """What an entry holds."""

    @given(st.dictionaries(st.text(), VALUES, max_size=5), st.dictionaries(st.text(), VALUES, max_size=5))
    def test_any_message(self, log: dict[str, Value], meta: dict[str, Value]) -> None:
        """Whatever messages hold, each is an entry that Loki takes, whose line is that of a file."""
        server = FakeLoki()
        _, store = read_loki((URL,), {"labels": "a=${a},b=${meta.b}"})
        messages = [Message(log, RECEIVED), Message({"log": log, "meta": meta}, RECEIVED + 1)]
        request = store.make([store.render(message) for message in messages])

        status, words = server.handle(request.path, {"content-type": store.content_type}, request.content)

        self.assertEqual((204, b""), (status, words))
        lines = {entry.moment: entry.line for entry in server.entries}
        self.assertEqual({str(each.received): encode_line(each)[:-1].decode() for each in messages}, lines)


def _finding(reading: object) -> Finding:
    assert isinstance(reading, Finding)
    return reading


class LokiMistakeTests(SynchronousTestCase):
    """Spec strings that can't be used."""

    def problem(self, **options: str) -> str:
        """Return what is said."""
        error = self.assertRaises(ConfigError, build_loki, "x", (URL,), options, "durable")
        return str(error)

    def test_labels(self) -> None:
        """Labels are told what they may be."""
        for labels, said in (
            ("", "at least one label"),
            ("source", "is not NAME=TEMPLATE"),
            ("a=1,", "is not NAME=TEMPLATE"),
            ("a.b=1", "a name has letters, digits and underscores"),
            ("1a=1", "a name has letters"),
            ("__a=1", "nor two underscores"),
            ("a=1,a=2", "is there twice"),
            ("a=${", "column 1"),
            (",".join(f"l{number}=x" for number in range(16)), "16 labels are more than the 15"),
        ):
            text = self.problem(labels=labels)
            self.assertIn("observer 'loki': labels=", text)
            self.assertIn(said, text)

    def test_most_labels(self) -> None:
        """Fifteen labels are taken."""
        build_loki("x", (URL,), {"labels": ",".join(f"l{number}=x" for number in range(15))}, "durable")

    def test_others(self) -> None:
        """Other wrong values are told."""
        for option, value in (
            ("tenant", "a\nb"),
            ("tenant", "é"),
            ("metadata", "x"),
            ("template", "${"),
            ("batch", "0"),
            ("batch_size", "0"),
        ):
            self.assertIn(f"{option}=", self.problem(**{option: value}))
