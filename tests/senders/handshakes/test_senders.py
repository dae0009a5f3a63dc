"""
Tests for the questions in C{webhookrx/senders/data}: each is answered as its sender wants it, byte for byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.handshakes.questions import DEFINITIONS, ask, head_of, secrets_of
from webhookrx.errors import BAD_HANDSHAKE, METHOD_NOT_ALLOWED
from webhookrx.intake.judge import Refused
from webhookrx.intake.reply import JSON, TEXT, Reply
from webhookrx.senders.handshakes import HandshakeAnswer, Handshakes

HOOK = "/hooks/acme"
GRAPH_TOKEN = "Validation: Testing client application reachability for subscription Request-Id: 00000000-f201"
GRAPH_QUERY = GRAPH_TOKEN.replace(" ", "+").replace(":", "%3A")
EVENT_GRID = {
    "id": "00000000-0000-0000-0000-00000000f105",
    "topic": "/subscriptions/00000000-0000-0000-0000-000000000001",
    "subject": "",
    "data": {
        "validationCode": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6",
        "validationUrl": "https://rp.eventgrid.azure.net/",
    },
    "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
    "eventTime": "2026-10-27T08:00:00Z",
    "metadataVersion": "1",
    "dataVersion": "2",
}
ORIGIN = {"WebHook-Request-Origin": "eventgrid.azure.net", "WebHook-Request-Rate": "120"}
ALLOWED = (("WebHook-Allowed-Origin", "eventgrid.azure.net"), ("WebHook-Allowed-Rate", "*"), ("Allow", "POST"))


class Question(NamedTuple):
    """
    A question of a sender, and its answer.

    @ivar signed_by: the name of the secret by which it is signed.
    """

    sender: str
    kind: str
    method: str
    target: str
    headers: dict[str, str]
    body: Any
    reply: Reply
    secrets: dict[str, str] = {}
    signed_by: str | None = None
    given: dict[str, Any] = {}


def json_reply(body: bytes, *headers: tuple[str, str], status: int = 200) -> Reply:
    """Return an answer of JSON."""
    return Reply(status, body, JSON, headers)


def text_reply(body: bytes) -> Reply:
    """Return an answer of plain text."""
    return Reply(200, body, TEXT)


def empty_reply(*headers: tuple[str, str], status: int = 200) -> Reply:
    """Return an answer without a body."""
    return Reply(status, b"", "", headers)


QUESTIONS = (
    Question(
        "okta",
        "verification",
        "GET",
        HOOK,
        {"X-Okta-Verification-Challenge": "my verification challenge"},
        b"",
        json_reply(b'{"verification":"my verification challenge"}'),
    ),
    Question(
        "azure-event-grid",
        "subscription_validation",
        "POST",
        HOOK,
        {"aeg-event-type": "SubscriptionValidation"},
        [EVENT_GRID],
        json_reply(b'{"validationResponse":"512d38b6-c7b8-40c8-89fe-f46f9e9622b6"}'),
    ),
    Question("azure-event-grid", "abuse_protection", "OPTIONS", HOOK, ORIGIN, b"", empty_reply(*ALLOWED)),
    Question("cloudevents", "abuse_protection", "OPTIONS", HOOK, ORIGIN, b"", empty_reply(*ALLOWED)),
    Question("cloudevents-binary", "abuse_protection", "OPTIONS", HOOK, ORIGIN, b"", empty_reply(*ALLOWED)),
    Question(
        "microsoft-graph",
        "validation",
        "POST",
        f"{HOOK}?validationToken={GRAPH_QUERY}",
        {"Content-Type": "text/plain; charset=utf-8", "Content-Length": "0"},
        b"",
        text_reply(GRAPH_TOKEN.encode()),
    ),
    Question(
        "microsoft-graph",
        "validation",
        "POST",
        f"{HOOK}?validationtoken=00000000-0000-0000-0000-00000000f202",
        {},
        b"",
        text_reply(b"00000000-0000-0000-0000-00000000f202"),
    ),
    Question("cloudflare-logpush", "probe", "POST", HOOK, {}, {"content": "tests"}, empty_reply()),
    Question("cloudflare-logpush-datasets", "probe", "POST", HOOK, {}, {"content": "tests"}, empty_reply()),
    Question("cloudflare-logpush-firewall", "probe", "POST", HOOK, {}, {"content": "tests"}, empty_reply()),
)


def answer_to(question: Question) -> HandshakeAnswer | Refused | None:
    """Return what becomes of a question."""
    return ask(
        DEFINITIONS[question.sender],
        question.method,
        question.target,
        question.headers,
        question.body,
        secrets=secrets_of(**question.secrets),
        signed_by=question.signed_by,
        **question.given,
    )


class QuestionTests(SynchronousTestCase):
    """What senders ask before they send."""

    def test_answers(self) -> None:
        """Each question is answered byte for byte, and nothing of it is stored."""
        for question in QUESTIONS:
            name = f"{question.sender} {question.kind}"
            self.assertEqual(answer_to(question), HandshakeAnswer(question.kind, question.reply), name)

    def test_complete(self) -> None:
        """Each kind of question that a definition has is among them."""
        known = {
            (name, handshake.kind) for name, definition in DEFINITIONS.items() for handshake in definition.handshake
        }
        self.assertEqual(known, {(question.sender, question.kind) for question in QUESTIONS})

    def test_other_methods(self) -> None:
        """A method without its question is not allowed, and what is says Allow."""
        for sender, method, headers, allow in (
            ("okta", "GET", {}, "GET, POST"),
            ("azure-event-grid", "OPTIONS", {}, "OPTIONS, POST"),
            ("cloudevents", "OPTIONS", {"Origin": "https://a.example"}, "OPTIONS, POST"),
            ("cloudevents", "GET", ORIGIN, "OPTIONS, POST"),
            ("microsoft-graph", "GET", {}, "POST"),
            ("github", "GET", {}, "POST"),
        ):
            answer = ask(DEFINITIONS[sender], method, HOOK, headers)
            self.assertEqual(
                answer, Refused(METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED.detail, "hooks", allow), f"{sender} {method}"
            )

    def test_messages(self) -> None:
        """What is no question is left to be judged as a message."""
        validation = "?validationToken=1"
        for sender, target, headers, body in (
            ("azure-event-grid", HOOK, {"aeg-event-type": "SubscriptionValidation"}, [EVENT_GRID, EVENT_GRID]),
            ("azure-event-grid", HOOK, {"aeg-event-type": "SubscriptionValidation"}, []),
            ("azure-event-grid", HOOK, {"aeg-event-type": "Notification"}, [EVENT_GRID]),
            ("azure-event-grid", HOOK, {"aeg-event-type": "SubscriptionValidation"}, [{"data": {}}]),
            ("microsoft-graph", HOOK + validation, {}, {"value": []}),
            ("microsoft-graph", HOOK, {}, b""),
            ("cloudflare-logpush", HOOK, {}, {"content": "tests", "RayID": "1"}),
            ("cloudflare-logpush", HOOK, {}, {"content": "test"}),
            ("cloudflare-logpush", HOOK, {}, [{"content": "tests"}, {"content": "tests"}]),
            ("cloudflare-logpush", HOOK, {}, b'{"content":"tests"}\n{"content":"tests"}\n'),
        ):
            self.assertIsNone(ask(DEFINITIONS[sender], "POST", target, headers, body), f"{sender} {target} {body!r}")

    def test_chunked(self) -> None:
        """A request whose body is still to come is no question without one."""
        answer = ask(
            DEFINITIONS["microsoft-graph"], "POST", f"{HOOK}?validationToken=1", {"Transfer-Encoding": "chunked"}
        )
        self.assertIsNone(answer)

    def test_long(self) -> None:
        """A challenge of more than 1,024 characters is refused, not answered."""
        for length, answered in ((1024, True), (1025, False), (8192, False)):
            answer = ask(DEFINITIONS["okta"], "GET", HOOK, {"X-Okta-Verification-Challenge": "x" * length})
            if answered:
                assert isinstance(answer, HandshakeAnswer)
                self.assertEqual(answer.reply.body, b'{"verification":"%s"}' % (b"x" * length))
            else:
                assert isinstance(answer, Refused)
                self.assertIs(answer.reason, BAD_HANDSHAKE)

    def test_inert(self) -> None:
        """Markup in a challenge is plain text, or a string of JSON."""
        markup = "<script>alert(1)</script>"
        answer = ask(
            DEFINITIONS["microsoft-graph"], "POST", f"{HOOK}?validationToken=%3Cscript%3Ealert(1)%3C/script%3E"
        )
        self.assertEqual(answer, HandshakeAnswer("validation", text_reply(markup.encode())))
        answer = ask(DEFINITIONS["okta"], "GET", HOOK, {"X-Okta-Verification-Challenge": f'{markup}"}}'})
        self.assertEqual(
            answer, HandshakeAnswer("verification", json_reply(b'{"verification":"<script>alert(1)</script>\\"}"}'))
        )

    def test_response_splitting(self) -> None:
        """No line end, control character or byte beyond ASCII of a request gets into a header of its answer."""
        definition = DEFINITIONS["cloudevents"]
        for text, shown in (
            (b"a\r\nSet-Cookie: b=c", "a  Set-Cookie: b=c"),
            (b"a\nb", "a b"),
            (b"a\rb", "a b"),
            (b"a\0b", None),
            (b"a\x0bb", None),
            (b"a\tb", None),
            (b"a\x7f", None),
            (b"a\x85b", None),
            ("a\u2028b".encode(), None),
            ("\u00e9".encode(), None),
            (b"\xff", None),
            (b"", None),
        ):
            # A parser that lets all of this through would be another's.
            head = msgspec.structs.replace(
                head_of("OPTIONS", HOOK), headers=[(b"webhook-request-origin", text)], prefetched={}
            )
            answer = Handshakes(definition, ()).by_head(head, {}, 0.0)
            if shown is None:
                self.assertIsInstance(answer, Refused, repr(text))
            else:
                assert isinstance(answer, HandshakeAnswer)
                self.assertEqual(answer.reply.headers[0], ("WebHook-Allowed-Origin", shown))

    def test_encoded_line_ends(self) -> None:
        """Those that come percent-encoded in a query are refused, too."""
        for text in ("a%0d%0ab", "a%00", "%c3%a9"):
            answer = ask(DEFINITIONS["microsoft-graph"], "POST", f"{HOOK}?validationToken={text}")
            assert isinstance(answer, Refused)
            self.assertIs(answer.reason, BAD_HANDSHAKE)
