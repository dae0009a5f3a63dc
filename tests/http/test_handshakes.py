"""
Tests for questions of senders over the wire: what they are told, and that nothing becomes of them.
"""

from __future__ import annotations

import gzip
import json

import msgspec
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Site as StockSite

from tests.http.guarded_wire import GuardedWire, handshakes_of
from tests.http.wire import Response, post
from tests.senders.handshakes.questions import DEFINITIONS, NOW, secrets_of
from tests.senders.handshakes.test_senders import (
    DISCORD,
    PING,
    QUESTIONS,
    SECRET,
    SLACK,
    XERO,
    Question,
    base64,
    code,
    discord_headers,
    slack_headers,
)
from tests.senders.requests import entry_of
from webhookrx.intake.tokens import NamedToken, TokenCheck

#: Headers that all answers have.
COMMON = {"server", "date", "x-content-type-options", "cache-control"}


def site_of(sender: str, secrets: dict[str, str], **given: object) -> GuardedWire:
    """Return a site that hears one sender at any path."""
    named = secrets_of(**secrets)
    handshakes = handshakes_of(DEFINITIONS[sender], named, **given)
    values = {secret.name: secret.value for secret in named}
    site = GuardedWire(DEFINITIONS[sender], None, pattern="/.*", handshakes=handshakes)
    if any(not secret.is_verify_token for secret in named) and DEFINITIONS[sender].schemes:
        site = GuardedWire(DEFINITIONS[sender], values, pattern="/.*", handshakes=handshakes)
    site.now = NOW
    return site


def request_of(question: Question) -> bytes:
    """Return a question as it comes by the wire."""
    body = question.body if isinstance(question.body, bytes) else msgspec.json.encode(question.body)
    headers = {"Host": "hooks.example.com", **question.headers}
    if question.method == "POST":
        headers["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{question.method} {question.target} HTTP/1.1\r\n{lines}\r\n".encode() + body


def lines_of(headers: dict[str, str]) -> bytes:
    """Return headers as they come by the wire."""
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


class QuestionTests(SynchronousTestCase):
    """Questions to a source that hears one sender."""

    def test_answers(self) -> None:
        """Each question of each sender is answered byte for byte and counted, and nothing is stored."""
        for question in QUESTIONS:
            name = f"{question.sender} {question.kind} {question.method}"
            site = site_of(question.sender, question.secrets, **question.given)
            answer = site.ask(request_of(question))
            reply = question.reply
            expected = {key.lower(): value for key, value in reply.headers}
            if reply.status != 204:
                expected["content-length"] = str(len(reply.body))
            if reply.content_type:
                expected["content-type"] = reply.content_type
            own = {key: value for key, value in answer.headers.items() if key not in COMMON}
            self.assertEqual((reply.status, reply.body, expected), (answer.status, answer.body, own), name)
            self.assertEqual("nosniff", answer.headers["x-content-type-options"])
            self.assertEqual("no-store", answer.headers["cache-control"])
            self.assertEqual(([], []), (site.messages, site.traffic.refused_by), name)
            self.assertEqual([("guarded", question.kind)], site.traffic.questions, name)

    def test_token(self) -> None:
        """A source with a token asks a question for it, too, unless the answer is the same for anyone."""
        for sender, target, status in (
            ("fastly", "/.well-known/fastly/logging/challenge", 200),
            ("fastly", "/logs", 405),
            ("vercel", "/", 403),
        ):
            handshakes = handshakes_of(DEFINITIONS[sender], [], settings={"verify_code": "x"})
            check = TokenCheck([NamedToken("edge", b"t0ken")])
            site = GuardedWire(DEFINITIONS[sender], None, pattern="/.*", handshakes=handshakes, tokens=check)
            answer = site.ask(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            self.assertEqual(status, answer.status, target)
            self.assertEqual(403, site.ask(post(b"{}", target.encode())).status)
            self.assertEqual([], site.messages)

    def test_pieces(self) -> None:
        """A question that comes in pieces is answered once it is there."""
        for question in QUESTIONS:
            site = site_of(question.sender, question.secrets, **question.given)
            request = request_of(question)
            sender = site.connect()
            for start in range(0, len(request), 7):
                sender.send(request[start : start + 7])
            self.assertIn(question.reply.body, sender.transport.written, question.sender)
            self.assertEqual([], site.messages)

    def test_stock_site(self) -> None:
        """Under a C{Site} of C{twisted.web}'s own they are answered with the same bytes, but for its own headers."""
        for question in QUESTIONS:
            site = site_of(question.sender, question.secrets, **question.given)
            stock = StockSite(site.root, reactor=Clock())
            transport = StringTransport(peerAddress=IPv4Address("TCP", "192.0.2.7", 4711))
            protocol = stock.buildProtocol(transport.getPeer())
            protocol.makeConnection(transport)
            protocol.dataReceived(request_of(question))
            site.settle()
            head, _, body = transport.value().partition(b"\r\n\r\n")
            reply, name = question.reply, f"{question.sender} {question.kind}"
            self.assertTrue(head.startswith(b"HTTP/1.1 %d " % reply.status), name)
            self.assertEqual(reply.body, body, name)
            lines = {line.partition(b": ")[0].lower(): line.partition(b": ")[2] for line in head.split(b"\r\n")[1:]}
            self.assertEqual(reply.content_type.encode() or None, lines.get(b"content-type"), name)
            for key, value in reply.headers:
                self.assertEqual(value.encode(), lines[key.lower().encode()], name)
            self.assertEqual(([], 1), (site.messages, len(site.traffic.questions)), name)

    def test_kept(self) -> None:
        """A question that its entry keeps is a message, too; it is answered once that is safe, and counted."""
        definition = entry_of(
            handshake=[{"kind": "confirm", "when": {"only_keys": ["a"]}, "signed": False, "text": "{/a}", "keep": True}]
        )
        site = GuardedWire(definition)
        sender = site.connect()
        sender.send(post(b'{"a":"b"}', b"/in"))
        self.assertEqual([], sender.responses())
        site.settle()
        (answer,) = sender.responses()
        self.assertEqual((200, b"b", 1), (answer.status, answer.body, len(site.messages)))
        self.assertEqual([("guarded", "confirm")], site.traffic.questions)

    def test_connection_goes_on(self) -> None:
        """After a question, also a HEAD, the connection takes the next request."""
        site = site_of("trello", {})
        sender = site.connect()
        sender.send(b"HEAD /hooks HTTP/1.1\r\nHost: a\r\n\r\n")
        sender.send(b"HEAD /hooks HTTP/1.1\r\nHost: a\r\n\r\n")
        sender.send(post(b'{"action":{}}', b"/hooks"))
        site.settle()
        self.assertEqual([200, 200, 200], sender.statuses())
        self.assertEqual(1, len(site.messages))

    def assert_refused(self, site: GuardedWire, answer: Response, status: int, reason: str) -> None:
        """Fail unless a request was refused for this reason, and nothing became of it."""
        self.assertEqual((status, reason), (answer.status, json.loads(answer.body)["reason"]))
        self.assertEqual(
            ([], [("guarded", reason)], []), (site.messages, site.traffic.refused_by, site.traffic.questions)
        )

    def test_methods(self) -> None:
        """OPTIONS without an origin, and methods that nobody asks with, get 405 with what the path takes."""
        for request, sender, allow in (
            (b"OPTIONS /hooks HTTP/1.1\r\nHost: a\r\n\r\n", "cloudevents", "OPTIONS, POST"),
            (b"OPTIONS /hooks HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\n\r\n", "azure-event-grid", "OPTIONS, POST"),
            (b"GET /hooks HTTP/1.1\r\nHost: a\r\n\r\n", "trello", "HEAD, POST"),
            (b"GET /hooks HTTP/1.1\r\nHost: a\r\n\r\n", "fastly", "POST"),
            (b"DELETE /hooks HTTP/1.1\r\nHost: a\r\n\r\n", "okta", "GET, POST"),
            (b"GET /hooks HTTP/1.1\r\nHost: a\r\n\r\n", "slack", "POST"),
        ):
            site = site_of(sender, {})
            answer = site.ask(request)
            self.assert_refused(site, answer, 405, "method_not_allowed")
            self.assertEqual(allow, answer.headers["allow"], sender)

    def test_wrong_token(self) -> None:
        """A wrong verify token is refused, with nothing of what was asked."""
        site = site_of("meta", {"app": SECRET, "verify_token": "right"})
        target = b"/hooks?hub.mode=subscribe&hub.challenge=4711&hub.verify_token=wrong"
        answer = site.ask(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % target)
        self.assert_refused(site, answer, 403, "bad_handshake")
        self.assertNotIn(b"4711", answer.body)
        self.assertNotIn("right", " ".join(site.traffic.details))

    def test_xero(self) -> None:
        """Of Xero's four requests, those with a right signature get 200, the others 401, all without a body."""
        site = site_of("xero", {"key": SECRET})
        statuses = []
        for entropy, key in ((b"A", SECRET), (b"B", "another"), (b"C", SECRET), (b"D", SECRET + " ")):
            body = XERO.replace(b"S0m3r4Nd0mt3xt", entropy)
            answer = site.ask(post(body, b"/hooks", b"x-xero-signature: %s\r\n" % base64(code(key, body)).encode()))
            statuses.append(answer.status)
            self.assertEqual(b"", answer.body)
            self.assertNotIn("set-cookie", answer.headers)
        self.assertEqual(([200, 401, 200, 401], []), (statuses, site.messages))

    def test_discord(self) -> None:
        """Discord's probe with a wrong signature gets 401, which says by what it is to be signed."""
        site = site_of("discord", DISCORD)
        headers = discord_headers(PING) | {"X-Signature-Ed25519": "0" * 128}
        answer = site.ask(post(PING, b"/hooks", lines_of(headers)))
        self.assert_refused(site, answer, 401, "bad_signature")
        self.assertEqual("Signature", answer.headers["www-authenticate"])

    def test_unsigned(self) -> None:
        """A question that must be signed is refused without a signature."""
        site = site_of("slack", {"app": SECRET})
        self.assert_refused(site, site.ask(post(SLACK, b"/hooks")), 401, "signature_missing")

    def test_large(self) -> None:
        """A body of more than 64 KiB is a message, whatever else it looks like."""
        site = site_of("slack", {"app": SECRET})
        for blanks, messages in ((60_000, 0), (70_000, 1)):
            body = SLACK[:-1] + b" " * blanks + b"}"
            answer = site.ask(post(body, b"/hooks", lines_of(slack_headers(body))))
            self.assertEqual((200, messages), (answer.status, len(site.messages)))

    def test_compressed(self) -> None:
        """The probe of Logpush comes compressed, and is told from its logs."""
        site = site_of("cloudflare-logpush", {})
        for body, messages in ((b'{"content":"tests"}', 0), (b'{"EdgeStartTimestamp":1}', 1)):
            answer = site.ask(post(gzip.compress(body), b"/hooks", b"Content-Encoding: gzip\r\n"))
            self.assertEqual((200, messages), (answer.status, len(site.messages)))

    def test_over_quota(self) -> None:
        """The eleventh question within a second is refused with 429; messages are not."""
        site = site_of("slack", {"app": SECRET})
        headers = lines_of(slack_headers(SLACK))
        self.assertEqual([200] * 10, [site.ask(post(SLACK, b"/hooks", headers)).status for _ in range(10)])
        answer = site.ask(post(SLACK, b"/hooks", headers))
        self.assertEqual((429, "1"), (answer.status, answer.headers["retry-after"]))
        self.assertEqual([("guarded", "over_quota")], site.traffic.refused_by)
        body = b'{"type":"event_callback"}'
        self.assertEqual(200, site.ask(post(body, b"/hooks", lines_of(slack_headers(body)))).status)
        site.clock.advance(0.1)
        self.assertEqual(200, site.ask(post(SLACK, b"/hooks", headers)).status)
        self.assertEqual(1, len(site.messages))

    def test_guessing(self) -> None:
        """Wrong tokens count, too, so that nobody guesses more than ten a second."""
        site = site_of("meta", {"verify_token": "right"})
        asked = b"GET /hooks?hub.mode=subscribe&hub.challenge=1&hub.verify_token=%d HTTP/1.1\r\nHost: a\r\n\r\n"
        self.assertEqual([403] * 10 + [429] * 2, [site.ask(asked % number).status for number in range(12)])

    def test_long_challenge(self) -> None:
        """A challenge of 8 KiB is refused, not echoed."""
        site = site_of("dropbox", {})
        answer = site.ask(b"GET /hooks?challenge=%s HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * 7000))
        self.assert_refused(site, answer, 403, "bad_handshake")

    def test_inert(self) -> None:
        """Markup in a challenge comes back as plain text, which no browser reads as anything else."""
        site = site_of("dropbox", {})
        answer = site.ask(b"GET /hooks?challenge=%3Cscript%3Ealert(1)%3C/script%3E HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual((200, b"<script>alert(1)</script>"), (answer.status, answer.body))
        self.assertEqual("text/plain; charset=utf-8", answer.headers["content-type"])
        self.assertEqual("nosniff", answer.headers["x-content-type-options"])

    def test_splitting(self) -> None:
        """Line ends in what is echoed add no header to an answer."""
        site = site_of("cloudevents", {})
        for value in (b"a\x0bX-B: c", b"a\x00", b"\xc4\x8a"):
            request = b"OPTIONS /hooks HTTP/1.1\r\nHost: a\r\nWebHook-Request-Origin: %s\r\n\r\n" % value
            self.assertIn(site.ask(request).status, (400, 403))
        site = site_of("dropbox", {})
        answer = site.ask(b"GET /hooks?challenge=a%0d%0aSet-Cookie:%20b=c HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(403, answer.status)
        self.assertNotIn("set-cookie", answer.headers)


class SenderAnswerTests(SynchronousTestCase):
    """What senders hear of messages."""

    ID = "ed4acda5-034f-9f42-bba1-f29aea6d7d8f"

    def test_firehose(self) -> None:
        """Firehose hears its own id and the time once its records are safe."""
        site = GuardedWire(DEFINITIONS["aws-firehose"])
        answer = site.ask(post(json.dumps({"requestId": self.ID, "records": []}).encode(), b"/in"))
        self.assertEqual(
            (200, {"requestId": self.ID, "timestamp": site.now * 1000}), (answer.status, json.loads(answer.body))
        )
        self.assertEqual(1, len(site.messages))

    def test_not_made(self) -> None:
        """Where the answer can't be made, nothing is stored, and the refusal is in Firehose's words."""
        site = GuardedWire(DEFINITIONS["aws-firehose"])
        answer = site.ask(post(b'{"records":[]}', b"/in", b"X-Amz-Firehose-Request-Id: %s\r\n" % self.ID.encode()))
        said = json.loads(answer.body)
        self.assertEqual((400, self.ID), (answer.status, said["requestId"]))
        self.assertTrue(said["errorMessage"].startswith("bad_payload: The answer to this sender needs /requestId"))
        self.assertEqual(([], [("guarded", "bad_payload")]), (site.messages, site.traffic.refused_by))

    def test_empty(self) -> None:
        """Loki's clients hear 204 without a body or its length."""
        site = GuardedWire(DEFINITIONS["loki-push"])
        answer = site.ask(post(b'{"streams":[]}', b"/in"))
        self.assertEqual((204, b"", 1), (answer.status, answer.body, len(site.messages)))
        self.assertNotIn("content-length", answer.headers)
        self.assertNotIn("content-type", answer.headers)

    def test_otlp(self) -> None:
        """Clients of OTLP hear the empty response in the encoding that they have sent."""
        site = GuardedWire(DEFINITIONS["otlp-logs"])
        for kind, body, said in (
            ("application/json", b'{"resourceLogs":[]}', b"{}"),
            ("application/x-protobuf", b"", b""),
        ):
            answer = site.ask(post(body, b"/in", b"Content-Type: %s\r\n" % kind.encode()))
            self.assertEqual((200, said, kind), (answer.status, answer.body, answer.headers["content-type"]))
