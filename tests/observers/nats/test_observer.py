"""The nats observer keeps to the contracts of stores, with a JetStream that is played in place of the link to it."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.fake_time import FakeTime
from tests.contracts.store_contract import Record, Row, StoreContract
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.item_outcomes import Ack, Outcome
from webhookrx.observers.nats.client import reason_of
from webhookrx.observers.nats.observer import NatsObserver
from webhookrx.observers.nats.options import NatsSecrets, NatsTarget, read_nats
from webhookrx.observers.nats.publisher import Outgoing, read_ack

URL = "nats://127.0.0.1:4222/logs.${SOURCE:-none}"
PUB_ACK = (None, b'{"stream":"LOGS","seq":7}')


def refusal(code: int, err_code: int, description: str) -> tuple[None, bytes]:
    """Return an answer of JetStream that is an error."""
    error = {"code": code, "err_code": err_code, "description": description}
    return None, json.dumps({"type": "io.nats.jetstream.api.v1.pub_ack_response", "error": error}).encode()


class PlayedLink:
    """A JetStream with one stream, behind the link that the observer uses."""

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self.records: list[Record] = []
        self.answer: tuple[str | None, bytes] | None = None
        self.play: Callable[[Sequence[Outgoing]], Sequence[Outcome]] | None = None
        self.is_away = self.is_stalled = False
        self.refused = ""
        self.secrets = NatsSecrets()
        self.shown: str | None = None
        self.excerpt = True

    def use(self, secrets: NatsSecrets, context: ssl.SSLContext | None) -> None:
        """Use these secrets from now on."""
        self.secrets = secrets

    def close(self) -> None:
        """Do nothing."""

    def publish(self, messages: Sequence[Outgoing], steps: Iterable[float]) -> Sequence[Outcome]:
        """Answer as was told."""
        if self.is_away:
            return [Unavailable("127.0.0.1:4222: Connection refused")] * len(messages)
        self.shown = self.secrets.password
        if self.is_stalled:
            for step in steps:
                self.time.sleep(step)
            return [Unavailable("no PubAck in time")] * len(messages)
        play, self.play = self.play, None
        if play is not None:
            return play(messages)
        return [self.take(message) for message in messages]

    def take(self, message: Outgoing) -> Outcome:
        """Store one message, unless told otherwise."""
        if len(message.value) > 1024 * 1024:
            return Rejected("10485800 bytes with its header are more than max_payload, 1048576")
        text = json.loads(message.value)["MESSAGE"]
        answer = self.answer
        if self.refused and self.refused in text:
            answer = refusal(400, 10054, "message size exceeds maximum allowed")
        outcome = read_ack(*(answer or PUB_ACK), "LOGS", excerpt=self.excerpt)
        if isinstance(outcome, Ack):
            record = Record(message.id, text)
            if record in self.records:
                return Ack.KNOWN
            self.records.append(record)
        return outcome


class NatsTests(StoreContract, SynchronousTestCase):
    """The observer."""

    rows = (
        Row("PubAck", PUB_ACK, "stored"),
        Row("PubAck, duplicate", (None, b'{"stream":"LOGS","seq":7,"duplicate":true}'), "stored"),
        Row("message over max_msg_size", refusal(400, 10054, "message size exceeds maximum allowed"), "rejected"),
        Row("no responders", ("503", b""), "later"),
        Row("stream full, discard new", refusal(503, 10077, "maximum messages exceeded"), "later"),
        Row("another stream", refusal(400, 10060, "expected stream does not match"), "later"),
        Row("no JetStream", refusal(503, 10076, "JetStream not enabled"), "later"),
        Row("no JetStream for the account", refusal(503, 10039, "JetStream not enabled for account"), "later"),
        Row("no resources", refusal(503, 10023, "insufficient resources"), "later"),
        Row("no space", refusal(500, 10047, "insufficient storage resources available"), "later"),
        Row("sealed", refusal(400, 10109, "invalid operation on sealed stream"), "later"),
        Row("no leader", refusal(503, 10008, "JetStream system temporarily unavailable"), "later"),
        Row("duplicate in process", refusal(409, 10158, "duplicate message id is in process"), "later"),
        Row("error without a number", (None, b'{"error":{"description":"message size exceeds maximum"}}'), "later"),
    )
    nonsense = (
        (None, b""),
        (None, b"{}"),
        (None, b"[]"),
        (None, b"+OK"),
        (None, b'{"stream":"LOGS","seq":7'),
        (None, b'{"stream":"LOGS"}'),
        (None, b'{"stream":"LOGS","seq":0}'),
        (None, b'{"stream":"LOGS","seq":"7"}'),
        (None, b'{"seq":7}'),
        (None, b'{"stream":"OTHERS","seq":7}'),
        (None, b'{"stream":"LOGS","seq":7,"error":{"code":500}}'),
        (None, b"\xff\xfe"),
        ("100", b'{"stream":"LOGS","seq":7}'),
    )
    large = "rejected"

    def setUp(self) -> None:
        """Make a JetStream."""
        super().setUp()
        self.link = PlayedLink(self.time)

    def make_observer(self, **given: str) -> NatsObserver:
        """Make one with these options."""
        target = read_nats([URL], given)
        self.link.excerpt = not target.servers.sends_secret

        def make_link(target: NatsTarget, on_connected: object) -> PlayedLink:
            return self.link

        return NatsObserver("nats:…", target, make_link, self.time, lambda: 1.0, self.time)

    def make_secret_observer(self, path: str) -> NatsObserver:
        """Make one with a password."""
        return self.make_observer(user="me", password_file=path)

    def shown_secret(self) -> str:
        """Return the password."""
        assert self.link.shown is not None
        return self.link.shown

    def stored_records(self) -> list[Record]:
        """Return what the stream has."""
        return self.link.records

    def answer_with(self, answer: Any) -> None:
        """Answer so to each message."""
        self.link.answer = answer

    def mend(self) -> None:
        """Do as it should."""
        self.link.answer = self.link.play = None
        self.link.is_away = self.link.is_stalled = False
        self.link.refused = ""

    def break_observer(self) -> None:
        """Let no server be there."""
        self.link.is_away = True

    def stall(self) -> None:
        """Never answer."""
        self.link.is_stalled = True

    def refuse(self, text: str) -> None:
        """Refuse messages with this text."""
        self.link.refused = text

    def lose_answer(self) -> None:
        """Store all, and answer nothing."""

        def play(messages: Sequence[Outgoing]) -> Sequence[Outcome]:
            for message in messages:
                self.link.take(message)
            return [Unavailable("no PubAck in time")] * len(messages)

        self.link.play = play

    def store_half(self) -> None:
        """Store the first half, and answer nothing to the rest."""

        def play(messages: Sequence[Outgoing]) -> Sequence[Outcome]:
            half = len(messages) // 2
            stored = [self.link.take(message) for message in messages[:half]]
            return [*stored, *[Unavailable("it has closed the connection")] * (len(messages) - half)]

        self.link.play = play

    def quote_secret(self) -> None:
        """Quote the password in an error."""
        self.link.answer = refusal(500, 10001, f"wrong: {self.shown_secret()}")

    def test_known_messages_are_counted(self) -> None:
        """Messages that the stream had already are counted, and stored."""
        observer = self.make_observer()
        observer.open()
        self.store(observer, "one", "two")

        self.assertIsNone(self.store(observer, "one", "two", "three"))

        self.assertEqual(2, observer.counts.take().known)
        observer.close()

    def test_others_are_stored_beside_a_failure(self) -> None:
        """What the stream has taken is not sent again because of another message that it takes later."""
        observer = self.opened()
        self.store_half()
        self.time.at(0.0, self.break_observer)

        fates = self.fates(observer, "one", "two", "three", "four")

        self.assertEqual(["stored", "stored", "later", "later"], fates)
        observer.close()

    def test_promise(self) -> None:
        """A PubAck means written, with a reason; the operator's word that servers sync makes it durable."""
        plain, synced = self.make_observer(), self.make_observer(synced="yes")

        self.assertEqual("written", plain.promise)
        self.assertIn("synced=yes", plain.promise_reason)
        self.assertEqual(("durable", ""), (synced.promise, synced.promise_reason))


class ReasonTests(SynchronousTestCase):
    """What is said of an error of the connection."""

    def test_nothing_is_quoted_after_a_secret(self) -> None:
        """Of an unknown error only its type is named once a password was sent; without one its words are."""
        error = Exception("nats: 'whatever hunter2'")

        self.assertEqual("'whatever hunter2'", reason_of(error, excerpt=True))
        self.assertEqual("Exception", reason_of(error, excerpt=False))

    def test_phrases_of_the_protocol(self) -> None:
        """What the protocol knows is said also after a password was sent."""
        violation = Exception("nats: 'Authorization Violation' hunter2")

        self.assertIn("user, password, creds or nkey are wrong", reason_of(violation, excerpt=False))
        self.assertEqual("it says stale connection", reason_of(Exception("Stale Connection"), excerpt=False))

    def test_one_short_line(self) -> None:
        """It is one printable line of some 200 characters."""
        reason = reason_of(Exception("a\nb\x1b" + "x" * 1000), excerpt=True)

        self.assertTrue(reason.isprintable())
        self.assertLess(len(reason), 220)
