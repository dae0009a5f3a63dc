"""What goes to JetStream in which order, and what its answers mean; with a client that is played."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import nats.errors
from nats.aio.subscription import Subscription
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.item_outcomes import Ack
from webhookrx.observers.nats.client import LEAST_PAYLOAD, LONGEST_LINE, LONGEST_MESSAGE, BoundedParser, NatsClient
from webhookrx.observers.nats.publisher import Flight, Outgoing, Publisher, header_of, size_with_header


class Answer(NamedTuple):
    """What comes back on an inbox."""

    subject: str
    data: bytes
    headers: dict[str, str] | None = None


class PlayedClient:
    """
    A connection: C{answer} is called with each message, and returns what comes back, or None.

    @ivar sent: the subject and payload of each message.
    @ivar held: the most messages that waited for an answer at a time.
    """

    max_payload = 1000

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, dict[str, str] | None]] = []
        self.answer: Callable[[str, bytes], bytes | dict[str, str] | None] = self.store
        self.waiting: list[Answer] = []
        self.held = 0
        self.sequence = 0

    def new_inbox(self) -> str:
        """Return a name."""
        return "_INBOX.played"

    async def subscribe(self, subject: str, cb: Callable[[Any], Awaitable[None]]) -> None:
        """Remember who listens."""
        assert subject == "_INBOX.played.*"
        self.listener = cb

    async def publish(self, subject: str, payload: bytes, reply: str, headers: dict[str, str] | None) -> None:
        """Take a message, and answer later."""
        self.sent.append((subject, payload, headers))
        answer = self.answer(subject, payload)
        if answer is not None:
            came = Answer(reply, answer) if isinstance(answer, bytes) else Answer(reply, b"", answer)
            self.waiting.append(came)
            self.held = max(self.held, len(self.waiting))
            asyncio.get_running_loop().call_soon(self.deliver)

    def deliver(self) -> None:
        """Bring all answers."""
        waiting, self.waiting = self.waiting, []
        for answer in waiting:
            asyncio.get_running_loop().create_task(self.bring(answer))

    async def bring(self, answer: Answer) -> None:
        """Bring one."""
        await self.listener(answer)

    def store(self, subject: str, payload: bytes) -> bytes:
        """Answer with a PubAck."""
        self.sequence += 1
        return json.dumps({"stream": "LOGS", "seq": self.sequence}).encode()


def outgoing(*values: bytes, subject: str = "logs.a") -> list[Outgoing]:
    """Return messages with numbers as ids."""
    return [Outgoing(subject, str(number), value) for number, value in enumerate(values)]


class PublisherTests(SynchronousTestCase):
    """Publishing over one connection."""

    def setUp(self) -> None:
        """Make a connection."""
        self.client = PlayedClient()

    def publish(self, messages: list[Outgoing], batch: int = 4, size: int = 10_000, **more: Any) -> Flight:
        """Publish messages, and return their flight."""
        flight = Flight(messages)

        async def run() -> None:
            publisher: Any = Publisher(self.client, "LOGS", batch, size, excerpt=True)  # type: ignore[arg-type]
            await publisher.begin()
            if "meanwhile" in more:
                more["meanwhile"](publisher)
            await asyncio.wait_for(publisher.publish(flight), 60.0)

        asyncio.run(run())
        return flight

    def test_order_and_window(self) -> None:
        """Messages go in order, and no more than C{batch} wait for their PubAck."""
        values = [b"%d" % number for number in range(50)]

        flight = self.publish(outgoing(*values))

        self.assertEqual(values, [value for _, value, _ in self.client.sent])
        self.assertEqual([Ack.STORED] * 50, flight.outcomes)
        self.assertLessEqual(self.client.held, 4)
        self.assertGreater(self.client.held, 1)

    def test_window_in_bytes(self) -> None:
        """Not many large messages wait at a time, and one that is larger than the window goes alone."""
        flight = self.publish(outgoing(*[b"x" * 400] * 6, b"y" * 800), batch=100, size=700)

        self.assertEqual([Ack.STORED] * 7, flight.outcomes)
        self.assertEqual(1, self.client.held)

    def test_header(self) -> None:
        """Id and stream are in the header; an empty id is left out."""
        self.publish([Outgoing("logs.a", "id-1", b"x"), Outgoing("logs.a", "", b"y")])

        self.assertEqual(
            [{"Nats-Msg-Id": "id-1", "Nats-Expected-Stream": "LOGS"}, {"Nats-Expected-Stream": "LOGS"}],
            [headers for _, _, headers in self.client.sent],
        )

    def test_max_payload_counts_the_header(self) -> None:
        """A message that fits only without its header is refused here: a server would end the connection for it."""
        room = 1000 - size_with_header(Outgoing("logs.a", "0", b""), header_of(Outgoing("logs.a", "0", b""), "LOGS"))

        flight = self.publish(outgoing(b"x" * room, b"x" * (room + 1), b"x"))

        self.assertEqual(Ack.STORED, flight.outcomes[0])
        self.assertIsInstance(flight.outcomes[1], Rejected)
        self.assertEqual(Ack.STORED, flight.outcomes[2])
        self.assertEqual(2, len(self.client.sent))

    def test_failed_subject_is_left_alone(self) -> None:
        """After a message was not taken, later ones of its subject are not sent, and those of others are."""
        self.client.answer = lambda subject, payload: (
            {"Status": "503"} if payload == b"bad" else self.client.store(subject, payload)
        )
        messages = [
            Outgoing("logs.a", "1", b"bad"),
            Outgoing("logs.b", "2", b"x"),
            Outgoing("logs.a", "3", b"x"),
            Outgoing("logs.b", "4", b"x"),
        ]

        flight = self.publish(messages, batch=1)

        self.assertEqual(
            [("logs.a", b"bad"), ("logs.b", b"x"), ("logs.b", b"x")], [each[:2] for each in self.client.sent]
        )
        outcomes = [type(outcome) for outcome in flight.outcomes]
        self.assertEqual([Unavailable, Ack, Unavailable, Ack], outcomes)

    def test_refused_message_holds_nothing_up(self) -> None:
        """One that is refused for good does not keep later ones of its subject back."""
        error = b'{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}'
        self.client.answer = lambda subject, payload: (
            error if payload == b"bad" else self.client.store(subject, payload)
        )

        flight = self.publish(outgoing(b"x", b"bad", b"x"), batch=1)

        self.assertEqual([Ack.STORED, Ack.STORED], [flight.outcomes[0], flight.outcomes[2]])
        self.assertIsInstance(flight.outcomes[1], Rejected)

    def test_missing_right(self) -> None:
        """A missing right, which the server says beside its answers, is told at once, and of that subject alone."""

        def play(publisher: Publisher) -> None:
            def answer(subject: str, payload: bytes) -> bytes | None:
                if subject != "logs.Secret":
                    return self.client.store(subject, payload)
                error = Exception('nats: permissions violation for publish to "logs.secret"')
                asyncio.get_running_loop().call_soon(publisher.on_error, error)
                return None

            self.client.answer = answer

        messages = [Outgoing("logs.Secret", "1", b"x"), Outgoing("logs.b", "2", b"x")]
        flight = self.publish(messages, meanwhile=play)

        self.assertIn("Permissions Violation", str(flight.outcomes[0]))
        self.assertEqual(Ack.STORED, flight.outcomes[1])

    def test_connection_ends(self) -> None:
        """When the connection ends, what was answered before is known, and the rest is not stored as far as we know."""

        def play(publisher: Publisher) -> None:
            def answer(subject: str, payload: bytes) -> bytes | None:
                if payload == b"x":
                    return self.client.store(subject, payload)
                asyncio.get_running_loop().call_later(0.01, publisher.end, nats.errors.UnexpectedEOF())
                return None

            self.client.answer = answer

        flight = Flight(outgoing(b"x", b"y", b"z"))

        async def run() -> None:
            publisher = Publisher(self.client, None, 2, 1000, excerpt=True)  # type: ignore[arg-type]
            await publisher.begin()
            play(publisher)
            await asyncio.wait_for(publisher.publish(flight), 60.0)

        self.assertRaises(nats.errors.UnexpectedEOF, asyncio.run, run())
        outcomes = flight.all_outcomes("gone")
        self.assertEqual(Ack.STORED, outcomes[0])
        self.assertEqual(["gone", "gone"], [str(outcome) for outcome in outcomes[1:]])

    def test_late_answers_are_passed_over(self) -> None:
        """An answer to an earlier batch, or to nothing that was sent, says nothing about this one."""

        def play(publisher: Any) -> None:
            def answer(subject: str, payload: bytes) -> bytes:
                for number in ("0", "99", "-1", "x", "٣", ""):
                    late = Answer(f"_INBOX.played.{number}", b'{"error":{"code":400,"err_code":10054}}')
                    asyncio.get_running_loop().create_task(self.client.bring(late))
                return self.client.store(subject, payload)

            self.client.answer = answer

        self.assertEqual([Ack.STORED] * 2, self.publish(outgoing(b"x", b"y"), meanwhile=play).outcomes)

    def test_limit_of_the_user(self) -> None:
        """A message over the limit of the user is refused as one over that of the server, and no other is."""
        flight = Flight(outgoing(b"x" * 300, b"x"))

        async def run() -> None:
            publisher = Publisher(self.client, None, 4, 1000, excerpt=True, limit=200)  # type: ignore[arg-type]
            await publisher.begin()
            await asyncio.wait_for(publisher.publish(flight), 60.0)

        asyncio.run(run())

        self.assertIn("max_payload, 200", str(flight.outcomes[0]))
        self.assertEqual(Ack.STORED, flight.outcomes[1])

    def test_known_outcomes_stay(self) -> None:
        """What is known already of a batch is not sent again."""
        flight = Flight(outgoing(b"x", b"y"))
        flight.outcomes[0] = known = Unavailable("reset")

        async def run() -> None:
            publisher = Publisher(self.client, None, 4, 1000, excerpt=True)  # type: ignore[arg-type]
            await publisher.begin()
            await asyncio.wait_for(publisher.publish(flight), 60.0)

        asyncio.run(run())

        self.assertEqual([known, Ack.STORED], flight.outcomes)
        self.assertEqual([b"y"], [value for _, value, _ in self.client.sent])

    def test_culprit(self) -> None:
        """With one message under way, the one for which the server has ended the connection is known."""
        for count, found in ((1, True), (2, False)):
            publisher = Publisher(self.client, None, 4, 1000, excerpt=True)  # type: ignore[arg-type]
            publisher._flight = flight = Flight(outgoing(b"x", b"y"))
            publisher._waiting = dict(enumerate(range(count)))

            self.assertEqual(found, publisher.settle_only_one(Rejected("too large")))
            self.assertEqual(found, isinstance(flight.outcomes[0], Rejected))
            self.assertEqual({}, flight.failed)


class PlayedInfo(NatsClient):
    """A client that is told what a server says of itself."""

    def hear(self, **info: Any) -> dict[str, Any]:
        """Hear it before anything is sent."""
        self._current_server = object()  # type: ignore[assignment]
        asyncio.run(self._process_info(info, initial_connection=True))
        return info


class ServerInfoTests(SynchronousTestCase):
    """What is believed of a server before the connection is encrypted."""

    def test_no_tls(self) -> None:
        """With tls:// nothing is sent to a server that offers no TLS: somebody between may have left that out."""
        self.assertRaises(nats.errors.Error, PlayedInfo(needs_tls=True).hear, version="2.10.0")

    def test_tls_is_used_where_it_is_offered(self) -> None:
        """With tls:// it is encrypted, whether the server asks for that or only allows it."""
        self.assertTrue(PlayedInfo(needs_tls=True).hear(tls_available=True)["tls_required"])
        self.assertTrue(PlayedInfo(needs_tls=True).hear(tls_required=True)["tls_required"])
        self.assertNotIn("tls_required", PlayedInfo(needs_tls=False).hear())

    def test_other_servers_are_not_believed(self) -> None:
        """Servers that are named in the clear are not connected to."""
        self.assertNotIn("connect_urls", PlayedInfo(needs_tls=False).hear(connect_urls=["evil.example:4222"]))

    def test_limit_that_none_has(self) -> None:
        """A limit under which all messages would be refused for good is not believed, nor one that is no number."""
        for limit in (0, -1, 1, 1023, True, 1e9, "1048576", None, []):
            with self.subTest(repr(limit)):
                client = PlayedInfo(needs_tls=False)
                self.assertRaises(nats.errors.Error, client.hear, max_payload=limit)
                self.assertGreaterEqual(client.max_payload, LEAST_PAYLOAD)
        PlayedInfo(needs_tls=False).hear(max_payload=LEAST_PAYLOAD)

    def test_version_that_is_none(self) -> None:
        """What is no version is none: an error of the library would quote it."""
        for version in ("hunter2", "hunter2.1.1", "9" * 5000 + ".1.1", 7, "", None):
            with self.subTest(str(version)[:9]):
                client = PlayedInfo(needs_tls=False)
                client._current_server = SimpleNamespace(server_version=version)  # type: ignore[assignment]
                self.assertEqual((0, 0, 0), client.version)

    def test_answer_without_end(self) -> None:
        """Neither a message nor a line is gathered that no server sends."""
        for data in (b"MSG _INBOX.1 1 %d\r\n" % (LONGEST_MESSAGE + 1), b"-ERR '" + b"x" * LONGEST_LINE):
            parser = BoundedParser(NatsClient(needs_tls=False))
            self.assertRaises(nats.errors.ProtocolError, asyncio.run, parser.parse(data))
        asyncio.run(BoundedParser(NatsClient(needs_tls=False)).parse(b"MSG _INBOX.1 1 %d\r\n" % LONGEST_MESSAGE))

    def test_answer_that_is_none(self) -> None:
        """What trips nats-py over ends the connection at once, and nothing of it goes to stderr."""
        for data in (
            b"HMSG _INBOX.1 1 5 2\r\nab\r\n",
            b"INFO hunter2\r\n",
            b'INFO {"max_payload":0}\r\n',
            b"INFO 7\r\n",
        ):
            with self.subTest(data.decode()):
                client = NatsClient(needs_tls=False)
                client._subs[1] = Subscription(client, 1, "_INBOX.1")
                error = self.assertRaises(nats.errors.ProtocolError, asyncio.run, BoundedParser(client).parse(data))
                self.assertNotIn("hunter2", str(error))
                self.assertIsNone(error.__cause__)

    def test_not_asked(self) -> None:
        """Should a release of nats-py not tell us what the server says, no secret is sent where TLS is wanted."""
        self.assertRaises(nats.errors.Error, NatsClient(needs_tls=True).check)
        NatsClient(needs_tls=False).check()
