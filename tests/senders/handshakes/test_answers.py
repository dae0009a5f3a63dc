"""
Tests for L{webhookrx.senders.handshakes.answers}, and for the answers in C{webhookrx/senders/data}.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.handshakes.questions import DEFINITIONS, head_of
from tests.senders.requests import entry_of, evidence_of, known_of
from webhookrx.errors import BAD_PAYLOAD, BAD_SIGNATURE, NO_ROOM, OVER_QUOTA
from webhookrx.intake.reply import JSON, TEXT, Reply
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.handshakes import AnswerFailed, SenderAnswers

NOW = 1_578_090_903_599_123_456
REQUEST_ID = "ed4acda5-034f-9f42-bba1-f29aea6d7d8f"
FIREHOSE = {"requestId": REQUEST_ID, "timestamp": 1578090901599, "records": [{"data": "aGVsbG8="}]}


def answers_of(answer: Any, **settings: Any) -> SenderAnswers:
    """Return what a definition with this C{answer} answers."""
    declared = {name: {"meaning": "A code."} for name in settings}
    return SenderAnswers(entry_of(answer=answer, settings=declared), settings=settings)


class StoredTests(SynchronousTestCase):
    """Answers to messages."""

    def test_senders(self) -> None:
        """Each sender that wants another answer than ours has it, byte for byte."""
        protobuf = {"Content-Type": "application/x-protobuf"}
        rows: tuple[tuple[str, Any, dict[str, str], Reply], ...] = (
            (
                "aws-firehose",
                FIREHOSE,
                {},
                Reply(200, b'{"requestId":"%s","timestamp":1578090903599}' % REQUEST_ID.encode(), JSON),
            ),
            ("loki-push", {"streams": []}, {}, Reply(204, b"", "")),
            ("splunk-hec", {"event": "a"}, {}, Reply(200, b'{"text":"Success","code":0}', JSON)),
            ("otlp-logs", {"resourceLogs": []}, {"Content-Type": JSON}, Reply(200, b"{}", JSON)),
            ("otlp-logs", b"\n\0", protobuf, Reply(200, b"", "application/x-protobuf")),
            ("okta", {"eventType": "com.okta.event_hook"}, {}, Reply(204, b"", "")),
            ("airtable", {}, {}, Reply(204, b"", "")),
            ("adyen", {"notificationItems": []}, {}, Reply(200, b"[accepted]", TEXT)),
            ("xero", {"events": [{}]}, {}, Reply(200, b"", "")),
            ("slack", {"type": "event_callback"}, {}, Reply(200, b"", "")),
            ("discord", {"type": 1, "event": {}}, {}, Reply(204, b"", "")),
            (
                "adobe-sign",
                {},
                {"X-AdobeSign-ClientId": "CBJ"},
                Reply(200, b'{"xAdobeSignClientId":"CBJ"}', JSON, (("X-AdobeSign-ClientId", "CBJ"),)),
            ),
        )
        for sender, body, headers, reply in rows:
            answers = SenderAnswers(DEFINITIONS[sender])
            self.assertEqual(answers.stored(evidence_of(body, headers), NOW), reply, sender)
            self.assertTrue(answers)
        known = {definition.id for definition in builtin_definitions() if definition.answers}
        self.assertEqual(known, {sender for sender, *_ in rows})

    def test_ordinary(self) -> None:
        """A sender without an answer of its own gets ours, and so does a request that none of its answers is for."""
        self.assertFalse(SenderAnswers(DEFINITIONS["github"]))
        self.assertIsNone(SenderAnswers(DEFINITIONS["github"]).stored(evidence_of({}), NOW))
        answers = answers_of([{"when": {"headers": {"x-a": "*"}}, "text": "a"}])
        self.assertEqual(answers.stored(evidence_of({}, {"X-A": "1"}), NOW), Reply(200, b"a", TEXT))
        self.assertIsNone(answers.stored(evidence_of({}), NOW))

    def test_empty_place(self) -> None:
        """Where the answer can't be made, nothing is stored: that is said without a word of the request."""
        for body in (
            {},
            {"requestId": ""},
            {"requestId": None},
            {"requestId": [1]},
            [],
            b"",
            {"requestId": "x" * 1025},
        ):
            answers = SenderAnswers(DEFINITIONS["aws-firehose"])
            error = self.assertRaises(AnswerFailed, answers.stored, evidence_of(body), NOW)
            self.assertEqual(
                str(error), "The answer to this sender needs /requestId, which is missing, empty or too long."
            )
            self.assertIs(error.reason, BAD_PAYLOAD)

    def test_longest(self) -> None:
        """A value of 1,024 characters is answered."""
        reply = answers_of({"text": "{/a}"}).stored(evidence_of({"a": "x" * 1024}), NOW)
        self.assertEqual(reply, Reply(200, b"x" * 1024, TEXT))

    def test_response_splitting(self) -> None:
        """A value that can't be in a header makes no answer."""
        answers = answers_of({"reply": {"X-Id": "{/id}"}})
        for value, fits in (("a b", True), ("a\r\nX-B: c", False), ("a\n", False), (" a", False), ("ä", False)):
            if fits:
                self.assertEqual(
                    answers.stored(evidence_of({"id": value}), NOW), Reply(200, b"", "", (("X-Id", value),))
                )
            else:
                self.assertRaises(AnswerFailed, answers.stored, evidence_of({"id": value}), NOW)

    def test_values(self) -> None:
        """Texts hold values exactly as they came; a word for a number that stands alone is a number."""
        answer = {
            "json": {
                "text": " {/a} ",
                "number": "{/n}",
                "unix": "{now:unix}",
                "in": "at {now:unix-ms}",
                "moment": "{now:rfc3339}",
                "braces": "{{}}",
                "setting": "{setting:code}",
                "nested": {"a": ["{query:q}", 1, None, True]},
            }
        }
        evidence = evidence_of({"a": " b ", "n": 7}, query={"q": ["first", "second"]})
        reply = answers_of(answer, code="4711", other=["a"]).stored(evidence, NOW)
        assert reply is not None
        self.assertEqual(
            reply.body,
            b'{"text":"  b  ","number":"7","unix":1578090903,"in":"at 1578090903599",'
            b'"moment":"2020-01-03T22:35:03.599Z","braces":"{}","setting":"4711",'
            b'"nested":{"a":["first",1,null,true]}}',
        )

    def test_body_needed(self) -> None:
        """It is known whether a body has to be read for an answer."""
        for answer, asks in (
            ({"text": "a"}, False),
            ({"json": {"a": "{header:x}", "b": "{query:q}"}}, False),
            ({"json": {"a": ["{/x}"]}}, True),
            ({"reply": {"X-A": "{/x}"}}, True),
            ([{"when": {"body_keys": ["a"]}, "text": "a"}], True),
            ([{"when": {"content_type": "a/b"}, "text": "a"}], False),
        ):
            self.assertEqual(answers_of(answer).asks_bodies, asks, answer)


class RefusedTests(SynchronousTestCase):
    """Answers to refused requests."""

    def test_firehose(self) -> None:
        """Firehose gets its id back, with the reason and the status that it has."""
        answers = SenderAnswers(DEFINITIONS["aws-firehose"])
        head = head_of("POST", "/", {"X-Amz-Firehose-Request-Id": REQUEST_ID})
        reply = answers.refused(head, {}, OVER_QUOTA, "There is too much.", NOW)
        message = "over_quota: There is too much."
        body = b'{"requestId":"%s","timestamp":1578090903599,"errorMessage":"%s"}' % (
            REQUEST_ID.encode(),
            message.encode(),
        )
        self.assertEqual(reply, Reply(429, body, JSON))

    def test_without_id(self) -> None:
        """Without an id there is only the ordinary answer."""
        answers = SenderAnswers(DEFINITIONS["aws-firehose"])
        self.assertIsNone(answers.refused(head_of("POST", "/"), {}, NO_ROOM, "", NOW))

    def test_empty(self) -> None:
        """Xero's refusals have no body."""
        answers = SenderAnswers(DEFINITIONS["xero"])
        reply = answers.refused(head_of("POST", "/"), {}, BAD_SIGNATURE, BAD_SIGNATURE.detail, NOW)
        self.assertEqual(reply, Reply(401, b"", ""))

    def test_ordinary(self) -> None:
        """Who wants nothing else gets our refusals; so does a request that the answer is not for."""
        head = head_of("POST", "/", {"X-A": "1"})
        self.assertIsNone(SenderAnswers(DEFINITIONS["splunk-hec"]).refused(head, {}, NO_ROOM, "", NOW))
        answers = answers_of([{"when": {"headers": {"x-b": "*"}}, "refused": {"json": {"a": "{reason}"}}}])
        self.assertIsNone(answers.refused(head, {}, NO_ROOM, "", NOW))
        head = head_of("POST", "/", {"X-B": "1"})
        self.assertEqual(answers.refused(head, {}, NO_ROOM, "", NOW), Reply(503, b'{"a":"no_room"}', JSON))

    def test_costly(self) -> None:
        """A request that is too much to look at gets ours, and its answer raises nothing."""
        answers = answers_of([{"when": {"headers": {"x-a": "(a?){200}b"}}, "text": "a"}])
        head = head_of("POST", "/", {"X-A": "a" * 400_000})
        self.assertIsNone(answers.stored(known_of(head, {}, b"{}"), NOW))
