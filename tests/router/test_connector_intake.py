"""Tests for L{webhookrx.router.connector_intake}."""

from __future__ import annotations

import gzip
import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import BAD_COMPRESSION, BODY_TOO_LARGE
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Accepted, Admission, Dropped, Receipt, Refused, admit, unpacked
from webhookrx.intake.provenance import ClientIdentity
from webhookrx.message.encoders import encode_line
from webhookrx.router.connector_intake import ConnectorRules, judge_connector
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import Preprocessing, Regex, SetField, Step
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definition import SenderDefinition, When

RECEIVED = 1_700_000_000_123_456_789


class JudgeConnectorTests(SynchronousTestCase):
    """From requests to messages of the router form."""

    def rules(self, *steps: Step, headers: bool = False, **options: Any) -> ConnectorRules:
        return ConnectorRules(
            "edge-1-hooks-in",
            port=8443,
            labels={"product": "webhook", "vendor": "generic", "team": "secops"},
            router="edge-1",
            router_labels={"site": "fra"},
            processing=Processing(Preprocessing(steps=steps, **options), Classifier(())),
            include_request_headers=headers,
            body_limit=1000,
            unpack_ratio=100,
        )

    def judge(
        self,
        body: bytes,
        rules: ConnectorRules | None = None,
        *,
        path: bytes = b"/events",
        query: bytes = b"",
        groups: dict[str, bytes] | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        port: int | None = 40000,
        secure: bool = True,
        client: ClientIdentity | None = None,
    ) -> Accepted | Dropped | Refused:
        head = Head(b"POST", path, query, headers, Peer("192.0.2.1", port, secure, client))
        admission = admit(head, rules or self.rules(), groups or {})
        assert isinstance(admission, Admission)
        plain = unpacked(admission, body)
        if isinstance(plain, Refused):
            return plain
        return judge_connector(head, admission, plain, Receipt(RECEIVED, "id-1"))

    def record(self, body: bytes, rules: ConnectorRules | None = None, **request: Any) -> dict[str, Any]:
        verdict = self.judge(body, rules, **request)
        assert isinstance(verdict, Accepted)
        record: dict[str, Any] = json.loads(encode_line(verdict.message))
        return record

    def test_client(self) -> None:
        """Conditions of steps can ask whom the client certificate of the connection names."""
        client = ClientIdentity("relay-7", ("a.shippers.example", "ops@shippers.example"), "CN=Our CA", "ab" * 32)
        cases = {
            "meta.connection.client.cn = relay-7": True,
            "meta.connection.client.cn = relay-8": False,
            'meta.connection.client.san = "a.shippers.example"': True,
            'meta.connection.client.san = "b.shippers.example"': False,
            'meta.connection.client.issuer =* "our ca"': True,
            f"meta.connection.client.fingerprint = {'ab' * 32}": True,
        }
        for condition, matches in cases.items():
            rules = self.rules(Step(set=SetField("meta.seen", "yes"), condition=condition))
            for each, expected in ((client, matches), (None, False)):
                record = self.record(b"{}", rules, client=each)
                self.assertEqual(expected, "seen" in record["meta"], condition)
                self.assertEqual(each is not None, "client" in record["meta"]["connection"])

    def test_whole(self) -> None:
        """A message has the body, and what the router knows beside it."""
        self.assertEqual(
            {
                "log": {
                    "body": {"action": "opened"},
                    "attributes": {"webhook.query.a": "1", "webhook.query.b": ["2", "3"]},
                    "observed_time_unix_nano": RECEIVED,
                    "time_unix_nano": 0,
                    "severity_number": 0,
                    "severity_text": "",
                },
                "meta": {
                    "connector": {
                        "type": "webhook",
                        "name": "edge-1-hooks-in",
                        "port": 8443,
                        "labels": {"product": "webhook", "vendor": "generic", "team": "secops"},
                    },
                    "connection": {"src_ip": "192.0.2.1", "src_port": 40000, "transport": "https", "bytes": 19},
                    "router": {"name": "edge-1", "labels": {"site": "fra"}},
                    "host": {"name": "192.0.2.1"},
                    "id": "id-1",
                },
            },
            self.record(b'{"action":"opened"}', query=b"a=1&b=2&b=3"),
        )

    def test_line(self) -> None:
        """It is written as one line that begins with the body."""
        verdict = self.judge(b'{"a":1}')
        assert isinstance(verdict, Accepted)
        self.assertTrue(encode_line(verdict.message).startswith(b'{"log":{"body":{"a":1},'))

    def test_bodies(self) -> None:
        """A JSON object is an object, exactly; all else is text, as it came."""
        for body, expected in [
            (b'{"a": {"b": [1, null, true]}}', {"a": {"b": [1, None, True]}}),
            (b' \r\n\t{"a":1} \n', {"a": 1}),
            (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
            (b"{}", {}),
            (b'{"a":1,"a":2}', {"a": 2}),
            (b"[1]", "[1]"),
            (b"[]", "[]"),
            (b"12", "12"),
            (b"null", "null"),
            (b'"text"', '"text"'),
            (b"{'a':1}", "{'a':1}"),
            (b'{"a":1', '{"a":1'),
            (b'{"a":1}{"a":2}', '{"a":1}{"a":2}'),
            (b"", ""),
            (b"   ", "   "),
            (b"<13>host app: text\n", "<13>host app: text\n"),
            ("žluťoučký".encode(), "žluťoučký"),
            (b'{"a":"\xff"}', '{"a":"\ufffd"}'),
        ]:
            with self.subTest(body=body):
                self.assertEqual(expected, self.record(body)["log"]["body"])

    def test_numbers(self) -> None:
        """Numbers in an object keep their text."""
        verdict = self.judge(b'{"a":1.10,"b":1e400,"c":123456789012345678901234567890}')
        assert isinstance(verdict, Accepted)
        self.assertIn(b'{"a":1.10,"b":1e400,"c":123456789012345678901234567890}', encode_line(verdict.message))

    def test_not_utf8(self) -> None:
        """Bytes that are no text are kept exactly, beside the text."""
        record = self.record(b"a\xffb")
        self.assertEqual(
            ("a\ufffdb", "Yf9i"), (record["log"]["body"], record["log"]["attributes"]["webhook.body_base64"])
        )

    def test_notes(self) -> None:
        """It is worth counting that a body was no object."""
        for body, notes in [(b"{}", ()), (b"[]", ("text_body",))]:
            verdict = self.judge(body)
            assert isinstance(verdict, Accepted)
            self.assertEqual(notes, verdict.notes)

    def test_host(self) -> None:
        """The group HOST names the host; without it, or when it is empty, the host is who has sent."""
        for groups, host in [
            ({"HOST": b"web%2D1"}, "web-1"),
            ({"HOST": b""}, "192.0.2.1"),
            ({}, "192.0.2.1"),
        ]:
            with self.subTest(groups=groups):
                self.assertEqual({"name": host}, self.record(b"{}", groups=groups)["meta"]["host"])

    def test_groups(self) -> None:
        """Other groups of the path are attributes: no group can change what the router says of itself."""
        record = self.record(b"{}", groups={"tenant": b"acme", "HOST": b"web-1", "SOURCE": b"x"})
        self.assertEqual({"webhook.path.tenant": "acme", "webhook.path.SOURCE": "x"}, record["log"]["attributes"])

    def test_headers(self) -> None:
        """Headers are an attribute when the rule wants them: as sources have them, credentials masked."""
        headers = ((b"x-github-event", b"push"), (b"x-a", b"1"), (b"x-a", b"2"), (b"authorization", b"Bearer CANARY"))
        self.assertEqual(
            {"webhook.headers": {"X-Github-Event": ["push"], "X-A": ["1", "2"], "Authorization": ["***"]}},
            self.record(b"{}", self.rules(headers=True), headers=headers)["log"]["attributes"],
        )
        self.assertEqual({}, self.record(b"{}", headers=headers)["log"]["attributes"])

    def test_headers_before_steps(self) -> None:
        """Conditions, expressions and other steps find the headers; what a step removes of them is gone."""
        rules = self.rules(
            Step(set=SetField("meta.a", 1), condition="log.attributes.webhook.headers.X-Kind = deploy"),
            Step(expression='meta.b = log.attributes["webhook.headers"]["X-Kind"][0];'),
            Step(regex=Regex("(?P<c>dep)", "log.attributes.webhook.headers.X-Kind.0", "meta.found")),
            Step(unset="log.attributes.webhook.headers"),
            headers=True,
        )
        record = self.record(b"{}", rules, headers=((b"x-kind", b"deploy"),))
        meta = record["meta"]
        self.assertEqual((1, "deploy", {"c": "dep"}), (meta["a"], meta["b"], meta["found"]))
        self.assertEqual({}, record["log"]["attributes"])
        other = self.record(b"{}", rules, headers=((b"x-kind", b"other"),))
        self.assertEqual((None, "other"), (other["meta"].get("a"), other["meta"]["b"]))

    def test_cloud_events(self) -> None:
        """What a CloudEvent in binary mode says of itself is an attribute, whether the rule wants headers or not."""
        headers = ((b"ce-specversion", b"1.0"), (b"ce-type", b"com.example.alert"), (b"x-a", b"1"))
        expected = {"ce-specversion": "1.0", "ce-type": "com.example.alert"}
        self.assertEqual(expected, self.record(b"{}", headers=headers)["log"]["attributes"])
        self.assertEqual({}, self.record(b"{}", headers=headers[1:])["log"]["attributes"])

    def test_connection(self) -> None:
        """Plain HTTP says so, and a UNIX socket has no port."""
        connection = self.record(b"{}", port=None, secure=False)["meta"]["connection"]
        self.assertEqual({"src_ip": "192.0.2.1", "transport": "http", "bytes": 2}, connection)

    def test_packed(self) -> None:
        """A packed body is unpacked, and one that does not unpack or is too large is refused."""
        encoded = ((b"content-encoding", b"gzip"),)
        record = self.record(gzip.compress(b'{"a":1}'), headers=encoded)
        self.assertEqual(({"a": 1}, 7), (record["log"]["body"], record["meta"]["connection"]["bytes"]))
        for body, reason in [(b"no gzip", BAD_COMPRESSION), (gzip.compress(b"x" * 2000), BODY_TOO_LARGE)]:
            refused = self.judge(body, headers=encoded)
            assert isinstance(refused, Refused)
            self.assertEqual((reason, "edge-1-hooks-in"), (refused.reason, refused.source))

    def test_steps(self) -> None:
        """Messages go through the steps of the rule, and what these do to one message does not show in the next."""
        rules = self.rules(
            *(
                Step(set=SetField(field=f"meta.{path}.seen", value="yes"), condition="log.body.first EXISTS")
                for path in ("connector", "connector.labels", "router", "router.labels")
            ),
            Step(probe="here"),
        )
        first, second = self.record(b'{"first":1}', rules)["meta"], self.record(b"{}", rules)["meta"]
        for name in ("connector", "router"):
            self.assertEqual(("yes", "yes"), (first[name]["seen"], first[name]["labels"]["seen"]))
            self.assertNotIn("seen", second[name])
            self.assertNotIn("seen", second[name]["labels"])
        verdict = self.judge(b"{}", rules)
        assert isinstance(verdict, Accepted)
        self.assertEqual((("probe", "here"),), verdict.events)

    def test_dropped(self) -> None:
        """What a step does not want is no message."""
        rules = self.rules(Step(select="log.body.level = error", label="errors only"))
        verdict = self.judge(b'{"level":"debug"}', rules)
        assert isinstance(verdict, Dropped)
        self.assertEqual((("dropped", "errors only"),), verdict.events)
        self.assertIsInstance(self.judge(b'{"level":"error"}', rules), Accepted)


class KnownSenderTests(SynchronousTestCase):
    """What Classify and Parse are given of a request."""

    def meta(
        self, when: When, body: bytes = b"{}", *, query: bytes = b"", groups: dict[str, bytes] | None = None
    ) -> dict[str, Any]:
        """Return C{meta} of a message that goes through Classify and Parse, which know one entry."""
        entry = SenderDefinition("acme", "acme", "anvil", when, service="{/name}", host=("{/host}",))
        rules = ConnectorRules(
            "in",
            port=8443,
            labels={},
            router="edge-1",
            router_labels={},
            processing=Processing(Preprocessing(classify=True, parse=True), Classifier([entry])),
            body_limit=1000,
            unpack_ratio=100,
        )
        head = Head(b"POST", b"/events", query, ((b"x-acme", b"1"),), Peer("192.0.2.1", 40000, True))
        admission = admit(head, rules, groups or {})
        assert isinstance(admission, Admission)
        verdict = judge_connector(head, admission, body, Receipt(RECEIVED, "id-1"))
        assert isinstance(verdict, Accepted)
        meta: Any = verdict.message.values["meta"]
        return dict(meta)

    def test_evidence(self) -> None:
        """They see the headers, the query, and the body, be it an object, an array, or text with objects in it."""
        for when, request in [
            (When(headers={"x-acme": "*"}), {"body": b"text"}),
            (When(query={"k": "^v$"}), {"query": b"k=v"}),
            (When(body_keys=("name",)), {"body": b'{"name":"n"}'}),
            (When(body_keys=("name",)), {"body": b' {"name":"n"}'}),
            (When(body_keys=("name",)), {"body": b'[{"name":"n"}]'}),
            (When(body_keys=("name",)), {"body": b'\n[{"name":"n"}]'}),
            (When(body_keys=("name",)), {"body": b'{"name":"n"}\n{"name":"o"}'}),
        ]:
            with self.subTest(**request):
                meta = self.meta(when, **request)  # type: ignore[arg-type]
                self.assertEqual("acme", meta.get("vendor"))
                self.assertEqual("n" if when.body_keys else "", meta["service"])

    def test_none(self) -> None:
        """Who is not known is not named."""
        self.assertNotIn("vendor", self.meta(When(query={"k": "*"})))

    def test_host(self) -> None:
        """What the path says of the host counts more than what the body says; an empty group says nothing."""
        for groups, host in [
            ({"HOST": b"by-path"}, "by-path"),
            ({"HOST": b""}, "by-body"),
            ({"tenant": b"a"}, "by-body"),
            ({}, "by-body"),
        ]:
            with self.subTest(groups=groups):
                meta = self.meta(When(headers={"x-acme": "*"}), b'{"host":"by-body"}', groups=groups)
                self.assertEqual({"name": host}, meta["host"])

    def test_text(self) -> None:
        """Where the body is text, or an object that is no object for the entry, its text is there for Parse."""
        entry = SenderDefinition("acme", "acme", "anvil", When(headers={"x-acme": "*"}), format="text")
        rules = ConnectorRules(
            "in", port=1, labels={}, router="", router_labels={}, body_limit=1000,
            unpack_ratio=100,
            processing=Processing(Preprocessing(classify=True, parse=True), Classifier([entry])),
        )  # fmt: skip
        head = Head(b"POST", b"/", b"", ((b"x-acme", b"1"),), Peer("192.0.2.1", 1, True))
        for body, text in [(b'{"a": 1}', '{"a": 1}'), (b"[1]", "[1]"), (b"a\xff", "a\ufffd"), (b"", "")]:
            admission = admit(head, rules, {})
            assert isinstance(admission, Admission)
            verdict = judge_connector(head, admission, body, Receipt(RECEIVED, "id-1"))
            assert isinstance(verdict, Accepted)
            log: Any = verdict.message.values["log"]
            self.assertEqual({"message": text}, log["body"])
