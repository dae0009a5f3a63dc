"""
Tests for the questions in C{webhookrx/senders/data}: each is answered as its sender wants it, byte for byte.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.handshakes.questions import DEFINITIONS, NOW, any_number, ask, head_of, secrets_of
from webhookrx.errors import BAD_HANDSHAKE, METHOD_NOT_ALLOWED
from webhookrx.intake.judge import Refused
from webhookrx.intake.reply import JSON, TEXT, Reply
from webhookrx.senders.handshakes import HandshakeAnswer, Handshakes
from webhookrx.senders.signatures.named_secrets import NamedSecret

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
    """A question of a sender, and its answer."""

    sender: str
    kind: str
    method: str
    target: str
    headers: dict[str, str]
    body: Any
    reply: Reply
    secrets: dict[str, str] = {}
    given: dict[str, Any] = {}


def code(secret: str, text: str | bytes, algorithm: str = "sha256") -> bytes:
    """Return an HMAC, as a sender makes it."""
    return hmac.new(secret.encode(), text.encode() if isinstance(text, str) else text, algorithm).digest()


def base64(raw: bytes) -> str:
    """Return bytes in Base64."""
    return b64encode(raw).decode()


def json_reply(body: bytes, *headers: tuple[str, str], status: int = 200) -> Reply:
    """Return an answer of JSON."""
    return Reply(status, body, JSON, headers)


def text_reply(body: bytes) -> Reply:
    """Return an answer of plain text."""
    return Reply(200, body, TEXT)


def empty_reply(*headers: tuple[str, str], status: int = 200) -> Reply:
    """Return an answer without a body."""
    return Reply(status, b"", "", headers)


SECRET = "a secret that nobody has"
STAMP = str(NOW)
SLACK = b'{"token":"Jhj5dZrVaK7ZwHHjRyZWjbDl","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",\
"type":"url_verification"}'
#: Secret, token and what they come to, as elastic/beats has them in x-pack/filebeat/input/http_endpoint/crc_test.go.
ZOOM_SECRET = "secretValueTest"
ZOOM_PROOF = b"70c1f2e2e6ca2d39297490d1f9142c7d701415ea8e6151f6562a08fa657a40ff"
ZOOM_TOKEN = "qgg8vlvZRS6UYooatFL8Aw"
ZOOM = (
    b'{"event":"endpoint.url_validation","payload":{"plainToken":"%s"},"event_ts":1654503849680}' % ZOOM_TOKEN.encode()
)
TWITCH_ID = "e76c6bd4-55c9-4987-8304-da1588d8988b"
TWITCH_TIME = datetime.fromtimestamp(NOW, UTC).isoformat().replace("+00:00", "Z")
TWITCH = (
    b'{"challenge":"pogchamp-kappa-360noscope-vohiyo","subscription":{"id":"f1c2a387-161a-49f9-a165-0f21d7a4e1c4"}}'
)
XERO = b'{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}'
LINE = b'{"destination":"xxxxxxxxxx","events":[]}'
ASANA = b'{"events":[]}'
FRONT = b'{"type":"sync","authorization":{"id":"cmp_abc"}}'
SMARTCAR = b'{"eventId":"52f6e0bb","eventType":"VERIFY","data":{"challenge":"3a5f0c9e"},"meta":{"version":"4.0"}}'
TEBEX = b'{"id":"5df8c2d9-3a71-4ba5-8a4c-000000000002","type":"validation.webhook","date":"2026-03-02T08:15:00+00:00",\
"subject":{}}'
EBAY_TOKEN = "0123456789abcdef0123456789abcdef"
EBAY = (
    sha256(f"a8628072-3d33-45ee-9004-bee86830a22d{EBAY_TOKEN}https://hooks.example.com/hooks/acme".encode())
    .hexdigest()
    .encode()
)
DISCORD_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
DISCORD = {"public": DISCORD_KEY.public_key().public_bytes_raw().hex()}
PING = b'{"version":1,"application_id":"1234560123453231555","type":1,"token":"unique_interaction_token"}'
EVENTS_PING = b'{"version":1,"application_id":"1234560123453231555","type":0}'


def discord_headers(body: bytes) -> dict[str, str]:
    """Return the headers by which Discord signs a body."""
    signature = DISCORD_KEY.sign(STAMP.encode() + body)
    return {"X-Signature-Ed25519": signature.hex(), "X-Signature-Timestamp": STAMP}


def slack_headers(body: bytes, secret: str = SECRET) -> dict[str, str]:
    """Return the headers by which Slack signs a body."""
    signature = code(secret, b"v0:%d:%s" % (NOW, body)).hex()
    return {"X-Slack-Signature": f"v0={signature}", "X-Slack-Request-Timestamp": STAMP}


def zoom_headers(body: bytes, secret: str = SECRET) -> dict[str, str]:
    """Return the headers by which Zoom signs a body."""
    signature = code(secret, b"v0:%d:%s" % (NOW, body)).hex()
    return {"x-zm-signature": f"v0={signature}", "x-zm-request-timestamp": STAMP}


def twitch_headers(body: bytes, kind: str = "webhook_callback_verification") -> dict[str, str]:
    """Return the headers by which Twitch signs a body."""
    signature = code(SECRET, f"{TWITCH_ID}{TWITCH_TIME}".encode() + body).hex()
    return {
        "Twitch-Eventsub-Message-Id": TWITCH_ID,
        "Twitch-Eventsub-Message-Timestamp": TWITCH_TIME,
        "Twitch-Eventsub-Message-Type": kind,
        "Twitch-Eventsub-Message-Signature": f"sha256={signature}",
    }


QUESTIONS = (
    Question(
        "slack",
        "url_verification",
        "POST",
        HOOK,
        slack_headers(SLACK),
        SLACK,
        json_reply(b'{"challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}'),
        {"app": SECRET},
    ),
    Question(
        "zoom",
        "url_validation",
        "POST",
        HOOK,
        zoom_headers(ZOOM, ZOOM_SECRET),
        ZOOM,
        json_reply(b'{"plainToken":"%s","encryptedToken":"%s"}' % (ZOOM_TOKEN.encode(), ZOOM_PROOF)),
        {"app": SECRET, "new": ZOOM_SECRET},
    ),
    Question(
        "meta",
        "subscribe",
        "GET",
        f"{HOOK}?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meatyhamhock",
        {},
        b"",
        text_reply(b"1158201444"),
        {"app": SECRET, "verify_token": "meatyhamhock"},
    ),
    Question(
        "twitch",
        "callback_verification",
        "POST",
        HOOK,
        twitch_headers(TWITCH),
        TWITCH,
        text_reply(b"pogchamp-kappa-360noscope-vohiyo"),
        {"app": SECRET},
    ),
    Question(
        "x",
        "challenge_response_check",
        "GET",
        f"{HOOK}?crc_token=2f0a3c7e-7a1b-4c55-9d3c-6a3a8e0f9b1c&nonce=MTU1",
        {},
        b"",
        json_reply(
            b'{"response_token":"sha256=%s"}' % base64(code(SECRET, "2f0a3c7e-7a1b-4c55-9d3c-6a3a8e0f9b1c")).encode()
        ),
        {"verify_token": "no key", "app": SECRET, "old": "another"},
    ),
    Question(
        "discord", "interactions_ping", "POST", HOOK, discord_headers(PING), PING, json_reply(b'{"type":1}'), DISCORD
    ),
    Question(
        "discord",
        "events_ping",
        "POST",
        HOOK,
        discord_headers(EVENTS_PING),
        EVENTS_PING,
        Reply(204, b"", JSON),
        DISCORD,
    ),
    Question("dropbox", "challenge", "GET", f"{HOOK}?challenge=abc123", {}, b"", text_reply(b"abc123")),
    Question("trello", "head", "HEAD", HOOK, {}, b"", empty_reply()),
    Question(
        "xero",
        "intent_to_receive",
        "POST",
        HOOK,
        {"x-xero-signature": base64(code(SECRET, XERO))},
        XERO,
        empty_reply(),
        {"key": SECRET},
    ),
    Question(
        "line",
        "url_check",
        "POST",
        HOOK,
        {"X-Line-Signature": base64(code(SECRET, LINE))},
        LINE,
        empty_reply(),
        {"key": SECRET},
    ),
    Question(
        "asana",
        "heartbeat",
        "POST",
        HOOK,
        {"X-Hook-Signature": code(SECRET, ASANA).hex()},
        ASANA,
        empty_reply(),
        {"key": SECRET},
    ),
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
        "front",
        "challenge",
        "POST",
        HOOK,
        {
            "X-Front-Challenge": "8c3f7a",
            "X-Front-Request-Timestamp": f"{NOW}000",
            "X-Front-Signature": base64(code(SECRET, f"{NOW}000:".encode() + FRONT)),
        },
        FRONT,
        text_reply(b"8c3f7a"),
        {"app": SECRET},
    ),
    Question(
        "linkedin",
        "challenge",
        "GET",
        f"{HOOK}?challengeCode=890e4665-4dfe-4ab1-b689-ed553bceeed0",
        {},
        b"",
        json_reply(
            b'{"challengeCode":"890e4665-4dfe-4ab1-b689-ed553bceeed0","challengeResponse":"%s"}'
            % code(SECRET, "890e4665-4dfe-4ab1-b689-ed553bceeed0").hex().encode()
        ),
        {"app": SECRET},
    ),
    Question(
        "smartcar",
        "verify",
        "POST",
        HOOK,
        {"SC-Signature": code(SECRET, SMARTCAR).hex()},
        SMARTCAR,
        json_reply(b'{"challenge":"%s"}' % code(SECRET, "3a5f0c9e").hex().encode()),
        {"app": SECRET},
    ),
    Question(
        "tebex",
        "validation",
        "POST",
        HOOK,
        {"X-Signature": code(SECRET, sha256(TEBEX).hexdigest()).hex()},
        TEBEX,
        json_reply(b'{"id":"5df8c2d9-3a71-4ba5-8a4c-000000000002"}'),
        {"app": SECRET},
    ),
    Question(
        "ebay",
        "challenge",
        "GET",
        f"{HOOK}?challenge_code=a8628072-3d33-45ee-9004-bee86830a22d",
        {},
        b"",
        json_reply(b'{"challengeResponse":"%s"}' % EBAY),
        {"verify_token": "no key", "app": EBAY_TOKEN},
        {"public_url": "https://hooks.example.com"},
    ),
    Question(
        "ebay",
        "challenge",
        "GET",
        "/another/path?challenge_code=a8628072-3d33-45ee-9004-bee86830a22d",
        {},
        b"",
        json_reply(b'{"challengeResponse":"%s"}' % EBAY),
        {"app": EBAY_TOKEN},
        {"public_url": "https://hooks.example.com/hooks/acme"},
    ),
    Question(
        "monday", "challenge", "POST", HOOK, {}, {"challenge": "3eZbrw1a"}, json_reply(b'{"challenge":"3eZbrw1a"}')
    ),
    Question(
        "strava",
        "subscribe",
        "GET",
        f"{HOOK}?hub.verify_token=STRAVA&hub.challenge=15f7d1a91c1f40f8a748fd134752feb3&hub.mode=subscribe",
        {},
        b"",
        json_reply(b'{"hub.challenge":"15f7d1a91c1f40f8a748fd134752feb3"}'),
        {"verify_token": "STRAVA"},
    ),
    Question("mailchimp", "check", "GET", HOOK, {}, b"", empty_reply()),
    Question(
        "adobe-sign",
        "verification",
        "GET",
        HOOK,
        {"X-AdobeSign-ClientId": "CBJCHBCAABAA"},
        b"",
        empty_reply(("X-AdobeSign-ClientId", "CBJCHBCAABAA")),
        {"client": "CBJCHBCAABAA", "verify_token": "CBJCHBCAABAA"},
    ),
    Question(
        "ringcentral",
        "validation",
        "POST",
        HOOK,
        {"Validation-Token": "e3b0c442-98fc-1c14", "Content-Length": "0"},
        b"",
        empty_reply(("Validation-Token", "e3b0c442-98fc-1c14")),
    ),
    Question("fastly", "challenge", "GET", "/.well-known/fastly/logging/challenge", {}, b"", text_reply(b"*")),
    Question(
        "vercel",
        "ownership",
        "GET",
        HOOK,
        {},
        b"",
        empty_reply(("x-vercel-verify", "6ebf4087434daf81")),
        {"drain": SECRET},
        {"settings": {"verify_code": "6ebf4087434daf81"}},
    ),
    Question(
        "vercel",
        "ownership",
        "POST",
        HOOK,
        {},
        b"",
        empty_reply(("x-vercel-verify", "6ebf4087434daf81")),
        {"drain": SECRET},
        {"settings": {"verify_code": "6ebf4087434daf81"}},
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
            ("vercel", "HEAD", {}, "GET, POST"),
            ("fastly", "GET", {}, "POST"),
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
            ("monday", HOOK, {}, {"challenge": "1", "event": {}}),
            ("ringcentral", HOOK, {"Validation-Token": "1"}, {"uuid": "1"}),
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
            answer = Handshakes(definition, (), take=any_number).by_head(head, {}, 0.0)
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

    def test_wrong_signatures(self) -> None:
        """A question that must be signed is refused with 401 when it is not, or by nobody that is known here."""
        for sender, headers, body in (
            ("slack", slack_headers(SLACK, "another"), SLACK),
            ("slack", {}, SLACK),
            ("zoom", zoom_headers(ZOOM, "another"), ZOOM),
            ("twitch", twitch_headers(TWITCH + b" "), TWITCH),
            ("xero", {"x-xero-signature": base64(code("another", XERO))}, XERO),
            ("xero", {"x-xero-signature": base64(code(SECRET, b""))}, XERO),
            ("line", {"X-Line-Signature": base64(code("another", LINE))}, LINE),
        ):
            answer = ask(DEFINITIONS[sender], "POST", HOOK, headers, body, secrets=secrets_of(app=SECRET))
            assert isinstance(answer, Refused), sender
            self.assertEqual(answer.reason.status, 401, sender)

    def test_discord_probe(self) -> None:
        """The ping by which Discord tests whether signatures are looked at at all gets 401."""
        headers = discord_headers(PING) | {"X-Signature-Ed25519": "0" * 128}
        answer = ask(DEFINITIONS["discord"], "POST", HOOK, headers, PING, secrets=secrets_of(**DISCORD))
        assert isinstance(answer, Refused)
        self.assertEqual(answer.reason.status, 401)

    def test_xero_series(self) -> None:
        """Of the four requests by which Xero asks, the two that are signed get 200 without a body, the others 401."""
        statuses = []
        for entropy, key in (("A", SECRET), ("B", "another"), ("C", SECRET), ("D", SECRET + " ")):
            body = XERO.replace(b"S0m3r4Nd0mt3xt", entropy.encode())
            headers = {"x-xero-signature": base64(code(key, body))}
            answer = ask(DEFINITIONS["xero"], "POST", HOOK, headers, body, secrets=secrets_of(app=SECRET))
            assert answer is not None
            if isinstance(answer, HandshakeAnswer):
                self.assertEqual(answer.reply, empty_reply())
            statuses.append(answer.reason.status if isinstance(answer, Refused) else answer.reply.status)
        self.assertEqual(statuses, [200, 401, 200, 401])

    def test_signed_messages(self) -> None:
        """Signed messages that resemble a question are messages."""
        for sender, headers, body in (
            ("slack", slack_headers(SLACK.replace(b"url_verification", b"event_callback")), None),
            ("twitch", twitch_headers(TWITCH, "revocation"), TWITCH),
            ("discord", None, PING.replace(b'"type":1', b'"type":1,"event":{"type":"APPLICATION_AUTHORIZED"}')),
            ("discord", None, PING.replace(b'"type":1', b'"type":2')),
            ("xero", None, XERO.replace(b"[]", b'[{"resourceId":"1"}]')),
            ("line", None, LINE.replace(b"[]", b'[{"type":"message"}]')),
        ):
            body = SLACK.replace(b"url_verification", b"event_callback") if body is None else body
            if sender == "discord":
                headers = discord_headers(body)
            elif headers is None:
                name = "x-xero-signature" if sender == "xero" else "x-line-signature"
                headers = {name: base64(code(SECRET, body))}
            secrets = secrets_of(**(DISCORD if sender == "discord" else {"app": SECRET}))
            self.assertIsNone(ask(DEFINITIONS[sender], "POST", HOOK, headers, body, secrets=secrets), sender)

    def test_verify_tokens(self) -> None:
        """A subscription is confirmed to whoever shows one of our verify tokens, and to nobody else."""
        secrets = secrets_of(app=SECRET, verify_token="first")
        secrets += [NamedSecret("verify-token.next", b"second")]
        for query, answered in (
            ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=first", True),
            ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=second", True),
            ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=third", False),
            (f"hub.mode=subscribe&hub.challenge=1&hub.verify_token={SECRET.replace(' ', '+')}", False),
            ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=", False),
            ("hub.mode=subscribe&hub.challenge=1", False),
            ("hub.mode=subscribe&hub.challenge=&hub.verify_token=first", False),
        ):
            answer = ask(DEFINITIONS["meta"], "GET", f"{HOOK}?{query}", secrets=secrets)
            if answered:
                self.assertEqual(answer, HandshakeAnswer("subscribe", text_reply(b"1")), query)
            else:
                assert isinstance(answer, Refused)
                self.assertIs(answer.reason, BAD_HANDSHAKE, query)

    def test_no_token(self) -> None:
        """Without a verify token in the file, nothing is confirmed."""
        query = "hub.mode=subscribe&hub.challenge=1&hub.verify_token="
        for shown in ("", "verify-token", SECRET.replace(" ", "+")):
            answer = ask(DEFINITIONS["meta"], "GET", f"{HOOK}?{query}{shown}", secrets=secrets_of(app=SECRET))
            assert isinstance(answer, Refused)
            self.assertIs(answer.reason, BAD_HANDSHAKE)

    def test_without_signatures(self) -> None:
        """Where an operator has signatures not checked, questions are answered; but none with a proof."""
        answer = ask(DEFINITIONS["slack"], "POST", HOOK, {}, SLACK, secrets=secrets_of(app=SECRET), verify=False)
        self.assertIsInstance(answer, HandshakeAnswer)
        answer = ask(DEFINITIONS["zoom"], "POST", HOOK, {}, ZOOM, secrets=secrets_of(app=SECRET), verify=False)
        assert isinstance(answer, Refused)
        self.assertIs(answer.reason, BAD_HANDSHAKE)

    def test_client_ids(self) -> None:
        """Adobe's question is answered for our client id alone, and its header holds nothing else."""
        for shown in ("CBJCHBCAABAB", "", "CBJCHBCAABAA, CBJCHBCAABAB"):
            answer = ask(
                DEFINITIONS["adobe-sign"],
                "GET",
                HOOK,
                {"X-AdobeSign-ClientId": shown},
                secrets=secrets_of(client="CBJCHBCAABAA", verify_token="CBJCHBCAABAA"),
            )
            self.assertIsInstance(answer, Refused, shown)

    def test_setting(self) -> None:
        """An answer with a setting that is not given is refused."""
        answer = ask(DEFINITIONS["vercel"], "GET", HOOK)
        assert isinstance(answer, Refused)
        self.assertIs(answer.reason, BAD_HANDSHAKE)

    def test_fastly_path(self) -> None:
        """Fastly's question has a path of its own; elsewhere a GET is not allowed."""
        path = "/.well-known/fastly/logging/challenge"
        self.assertEqual(
            Handshakes(DEFINITIONS["fastly"], (), take=any_number).allow(head_of("GET", path)), "GET, POST"
        )
        self.assertFalse(Handshakes(DEFINITIONS["fastly"], (), take=any_number).takes(head_of("GET", HOOK)))
        for other in (f"{path}/", f"/x{path}"):
            self.assertIsInstance(ask(DEFINITIONS["fastly"], "GET", other), Refused, other)
